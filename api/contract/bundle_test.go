package contract

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func someBundle(t testing.TB) Bundle {
	t.Helper()
	tool := Tool{Name: "pay", InputSchema: json.RawMessage(`{"type":"object"}`), Capabilities: []string{CapabilityAuth}}.Defaulted()
	digest, err := tool.Digest()
	if err != nil {
		t.Fatal(err)
	}
	const source = "function main(i){return '<&>'}"
	return Bundle{
		Version: BundleVersion,
		Run:     RunRef{Namespace: "team-a", Name: "r", UID: "u", Generation: 2},
		Source:  source, SourceDigest: Digest([]byte(source)),
		Input:  json.RawMessage(`{"a":9007199254740993,"b":1.0}`),
		Limits: DefaultLimits(), TimeoutMs: 600_000,
		Tools: []PinnedTool{{
			Tool: tool, Digest: digest, Grant: GrantRef{Name: "g", UID: "gu", Generation: 1},
			Backend: Backend{HTTP: &HTTPBackend{URL: "http://pay/"}}, Auth: Auth{Type: AuthSecretRef, SecretName: "s", SecretKey: "k"},
		}},
		CodeAct: Switch{Enabled: true, From: LayerOperator}, Recipes: Switch{From: LayerNamespace},
	}
}

func TestBundleRoundTrip(t *testing.T) {
	want := someBundle(t)
	raw, digest, err := want.Encode()
	if err != nil {
		t.Fatal(err)
	}
	got, err := DecodeBundle(raw, digest)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("bundle (-want +got):\n%s", diff)
	}
	again, second, err := got.Encode()
	if err != nil || second != digest || !bytes.Equal(again, raw) {
		t.Errorf("the bundle has other bytes the second time, %v", err)
	}
}

func TestBundleWithoutInputHasNull(t *testing.T) {
	b := someBundle(t)
	b.Input = nil
	raw, digest, err := b.Encode()
	if err != nil {
		t.Fatal(err)
	}
	got, err := DecodeBundle(raw, digest)
	if err != nil || string(got.Input) != "null" {
		t.Errorf("input %s, %v", got.Input, err)
	}
}

func TestBundleTooLarge(t *testing.T) {
	b := someBundle(t)
	b.Input = json.RawMessage(`"` + strings.Repeat("x", MaxBundleBytes) + `"`)
	_, _, err := b.Encode()
	if f, ok := AsFault(err); !ok || f.Reason != ReasonBundleTooLarge {
		t.Errorf("error %v", err)
	}
	raw, _, err := someBundle(t).Encode()
	if err != nil {
		t.Fatal(err)
	}
	b.Input = json.RawMessage(`"` + strings.Repeat("x", MaxBundleBytes-len(raw)+len(someBundle(t).Input)-2) + `"`)
	if raw, _, err = b.Encode(); err != nil || len(raw) != MaxBundleBytes {
		t.Errorf("exactly the bound: %d bytes, %v", len(raw), err)
	}
}

func TestDecodeBundleRefuses(t *testing.T) {
	tests := map[string]struct {
		change func(*Bundle)
		// rewrite changes the bytes, and the digest with them.
		rewrite func([]byte) []byte
		digest  string
		want    string
	}{
		"another digest":            {digest: Digest(nil), want: "not the pinned"},
		"no digest":                 {digest: "-", want: "malformed"},
		"another version":           {rewrite: replace(BundleVersion, "codeact.dev/bundle.v2"), want: "version"},
		"unknown field":             {rewrite: replace(`{"codeAct"`, `{"evil":1,"codeAct"`), want: "cannot be read"},
		"unknown field of a switch": {rewrite: replace(`"codeAct":{`, `"codeAct":{"evil":1,`), want: "cannot be read"},
		"no JSON":                   {rewrite: func([]byte) []byte { return []byte("{") }, want: "cannot be read"},
		"another source":            {change: func(b *Bundle) { b.Source = "function main(){}" }, want: "source"},
		"another declaration":       {change: func(b *Bundle) { b.Tools[0].Tool.Effect = EffectReadOnly }, want: "tool pay"},
		"no declaration digest":     {change: func(b *Bundle) { b.Tools[0].Digest = "" }, want: "tool pay"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			b := someBundle(t)
			if tc.change != nil {
				tc.change(&b)
			}
			raw, digest, err := b.Encode()
			if err != nil {
				t.Fatal(err)
			}
			if tc.rewrite != nil {
				raw = tc.rewrite(raw)
				digest = Digest(raw)
			}
			if tc.digest != "" {
				digest = tc.digest
			}
			_, err = DecodeBundle(raw, digest)
			f, ok := AsFault(err)
			if !ok || f.Reason != ReasonDigestMismatch || !strings.Contains(f.Message, tc.want) {
				t.Errorf("error %v, want DigestMismatch and %q", err, tc.want)
			}
		})
	}
}

func replace(old, by string) func([]byte) []byte {
	return func(b []byte) []byte { return bytes.Replace(b, []byte(old), []byte(by), 1) }
}

func TestCallID(t *testing.T) {
	if got := (RunRef{UID: "u", Generation: 2}).CallID(3); got != "u:2:3" {
		t.Errorf("call id %s", got)
	}
}
