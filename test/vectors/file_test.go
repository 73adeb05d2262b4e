package vectors_test

import (
	"encoding/json"
	"testing"
)

// casesOf reads the cases of one form of broker.json. The file has cases of other
// forms and shapes, so the form is looked at first.
func casesOf[C any](t *testing.T, form string) []C {
	t.Helper()
	var file struct {
		About string            `json:"about"`
		Cases []json.RawMessage `json:"cases"`
	}
	load(t, "broker.json", &file)
	var out []C
	for _, raw := range file.Cases {
		var head struct {
			Form string `json:"form"`
		}
		if err := json.Unmarshal(raw, &head); err != nil {
			t.Fatal(err)
		}
		if head.Form != form {
			continue
		}
		var c C
		if err := json.Unmarshal(raw, &c); err != nil {
			t.Fatal(err)
		}
		out = append(out, c)
	}
	return out
}
