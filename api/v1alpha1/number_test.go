package v1alpha1_test

import (
	"encoding/json"
	"testing"

	kjson "k8s.io/apimachinery/pkg/util/json"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/api/v1alpha1"
)

// TestNumber: every number that the API server lets pass is read, by Go's decoder
// and by the one of clients, and is written as it was spelled.
func TestNumber(t *testing.T) {
	tests := map[string]struct {
		text    string
		want    v1alpha1.Number
		wantErr bool
	}{
		"a fraction":       {text: `0.2`, want: "0.2"},
		"trailing zeros":   {text: `0.20`, want: "0.20"},
		"whole":            {text: `1`, want: "1"},
		"zero":             {text: `0`, want: "0"},
		"negative":         {text: `-0.5`, want: "-0.5"},
		"with an exponent": {text: `1e-07`, want: "1e-07"},
		"beyond doubles":   {text: `1e400`, want: "1e400"},
		"null is none":     {text: `null`},
		"a string":         {text: `"0.2"`, wantErr: true},
		"a boolean":        {text: `true`, wantErr: true},
		"a list":           {text: `[1]`, wantErr: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			body := []byte(`{"model":"m","prompt":"p","temperature":` + tc.text + `}`)
			var a, b v1alpha1.AgentSpec
			err := json.Unmarshal(body, &a)
			kerr := kjson.Unmarshal(body, &b)
			if (err != nil) != tc.wantErr || (kerr != nil) != tc.wantErr {
				t.Fatalf("errors %v, %v", err, kerr)
			}
			if tc.wantErr {
				return
			}
			if a.Temperature != tc.want || b.Temperature != tc.want {
				t.Errorf("%q and %q, want %q", a.Temperature, b.Temperature, tc.want)
			}
			got, err := contract.Canonical(a)
			want := `{"model":"m","prompt":"p","temperature":` + tc.text + `}`
			if tc.want == "" {
				want = `{"model":"m","prompt":"p"}`
			}
			if err != nil || string(got) != want {
				t.Errorf("%s, want %s (%v)", got, want, err)
			}
		})
	}
}
