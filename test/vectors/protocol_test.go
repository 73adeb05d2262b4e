package vectors_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/codeact-dev/codeact-operator/runtime/loop/protocol"
)

// protocolCase is one case of protocol.json.
type protocolCase struct {
	ID           string
	Group        string
	Note         string
	ModelText    json.RawMessage
	FinishReason string
	Expect       struct {
		Kind     protocol.Kind
		Output   json.RawMessage
		Language string
		Code     string
		Drift    bool
		Why      protocol.Why
	}
}

func TestProtocolVectors(t *testing.T) {
	var file struct {
		About string
		Cases []protocolCase
	}
	load(t, "protocol.json", &file)
	if len(file.Cases) != 60 {
		t.Errorf("there are %d cases, want 60", len(file.Cases))
	}
	for _, c := range file.Cases {
		t.Run(c.ID, func(t *testing.T) { c.run(t) })
	}
}

func (c protocolCase) run(t *testing.T) {
	m := protocol.Parse(modelText(t, c.ModelText), c.FinishReason)
	got := c.Expect
	got.Kind, got.Language, got.Code, got.Drift, got.Why = m.Kind, m.Language, m.Code, m.Drift, m.Why
	if diff := cmp.Diff(c.Expect, got); diff != "" {
		t.Errorf("message (-want +got):\n%s", diff)
	}
	if c.Expect.Output == nil || m.Output == nil {
		if c.Expect.Output != nil || m.Output != nil {
			t.Errorf("output %.100s, want %s", m.Output, c.Expect.Output)
		}
		return
	}
	if diff := cmp.Diff(doubles(t, c.Expect.Output), doubles(t, m.Output)); diff != "" {
		t.Errorf("output (-want +got):\n%s", diff)
	}
}

// modelText is the text of an answer: a string, nothing, or {"repeat", "times"}.
func modelText(t *testing.T, raw json.RawMessage) *string {
	t.Helper()
	var text *string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	var long struct {
		Repeat string
		Times  int
	}
	if err := json.Unmarshal(raw, &long); err != nil {
		t.Fatal(err)
	}
	s := strings.Repeat(long.Repeat, long.Times)
	return &s
}
