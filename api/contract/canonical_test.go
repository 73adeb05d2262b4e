package contract

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestCanonical(t *testing.T) {
	tests := map[string]struct {
		in      string
		want    string
		wantErr bool
	}{
		"keys are sorted, blanks go":  {in: "{ \"b\" : 1,\n \"a\" : [ 1 , 2 ] }", want: `{"a":[1,2],"b":1}`},
		"numbers keep their spelling": {in: `[9007199254740993, 1.50, 1e400, -0]`, want: `[9007199254740993,1.50,1e400,-0]`},
		"no escapes for HTML":         {in: `"<a href=\"x\">&</a>"`, want: `"<a href=\"x\">&</a>"`},
		"escapes that say nothing go": {in: `"\u0061\u00e9"`, want: `"aé"`},
		"null":                        {in: `null`, want: `null`},
		"nested":                      {in: `{"z":{"y":null,"x":{}}}`, want: `{"z":{"x":{},"y":null}}`},
		"cut short":                   {in: `{"a":`, wantErr: true},
		"two values":                  {in: `1 2`, wantErr: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := Canonical(json.RawMessage(tc.in))
			if (err != nil) != tc.wantErr {
				t.Fatalf("error %v", err)
			}
			if string(got) != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
			if err != nil {
				return
			}
			again, err := Canonical(json.RawMessage(got))
			if err != nil || string(again) != string(got) {
				t.Errorf("the canonical text of %s is %s (%v)", got, again, err)
			}
		})
	}
}

func TestDigest(t *testing.T) {
	const empty = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	if got := Digest(nil); got != empty {
		t.Errorf("digest of nothing: %s", got)
	}
	for s, want := range map[string]bool{
		empty: true, strings.ToUpper(empty): false, empty[:70]: false, empty + "0": false, "md5:" + empty[7:]: false, "": false, empty + "\n": false,
	} {
		if ValidDigest(s) != want {
			t.Errorf("ValidDigest(%q) is %v", s, !want)
		}
	}
}
