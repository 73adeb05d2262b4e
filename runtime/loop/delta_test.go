package loop

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

func TestDeltas(t *testing.T) {
	long := strings.Repeat("x", deltaBytes)
	for name, tc := range map[string]struct {
		// parts are text and reasoning; "later" is no part, but time that passes.
		parts [][2]string
		want  [][2]string
	}{
		"letters":                {parts: [][2]string{{"a", ""}, {"", "r"}, {"b", ""}}, want: [][2]string{{"ab", "r"}}},
		"enough":                 {parts: [][2]string{{"a", ""}, {long, ""}, {"b", ""}}, want: [][2]string{{"a" + long, ""}, {"b", ""}}},
		"late":                   {parts: [][2]string{{"a", ""}, {"later"}, {"b", ""}, {"c", ""}}, want: [][2]string{{"ab", ""}, {"c", ""}}},
		"void, and nothing told": {parts: [][2]string{{"a", ""}, {}, {"b", ""}}, want: [][2]string{{"b", ""}}},
		"void":                   {parts: [][2]string{{long, ""}, {"a", ""}, {}, {"b", ""}}, want: [][2]string{{long, ""}, {}, {"b", ""}}},
		"void twice":             {parts: [][2]string{{long, ""}, {}, {}}, want: [][2]string{{long, ""}, {}}},
		"nothing":                {},
	} {
		t.Run(name, func(t *testing.T) {
			at := time.Unix(0, 0)
			var got [][2]string
			d := deltas{now: func() time.Time { return at }, tell: func(text, reasoning string) { got = append(got, [2]string{text, reasoning}) }}
			for _, p := range tc.parts {
				if p[0] == "later" {
					at = at.Add(deltaTime)
					continue
				}
				d.add(p[0], p[1])
			}
			d.end()
			if x := cmp.Diff(tc.want, got); x != "" {
				t.Error(x)
			}
		})
	}
}

// TestDeltaEvents: the parts of an answer are events between the request and the
// answer, and a stream of letters is few of them.
func TestDeltaEvents(t *testing.T) {
	answer := `{"type":"final","output":"` + strings.Repeat("y", 2000) + `"}`
	c, _ := agentConfig(func(_ context.Context, _ int, r ModelRequest) (ModelAnswer, error) {
		r.Delta(strings.Repeat("z", deltaBytes), "")
		r.Delta("", "")
		for letter := range strings.SplitSeq(answer, "") {
			r.Delta(letter, "")
		}
		return ModelAnswer{Text: &answer, Attempts: 2}, nil
	})
	var out bytes.Buffer
	at := time.Unix(0, 0)
	c.Now = func() time.Time { return at }
	c.Events = NewEvents(&out, c.Now)
	if o := Run(t.Context(), c); o.Fault != nil {
		t.Fatal(o.Fault)
	}
	var types []contract.EventType
	var told strings.Builder
	for d := json.NewDecoder(&out); d.More(); {
		var x contract.Event
		if err := d.Decode(&x); err != nil {
			t.Fatal(err)
		}
		switch x.Type {
		case contract.EventModelRetried:
			told.Reset()
		case contract.EventModelDelta:
			if x.Content == nil || x.Step != 1 {
				t.Fatalf("event %+v", x)
			}
			told.WriteString(x.Content.Text)
		default:
			continue
		}
		types = append(types, x.Type)
	}
	if told.String() != answer {
		t.Errorf("told %q", told.String())
	}
	if len(types) != 10 || types[0] != contract.EventModelDelta || types[1] != contract.EventModelRetried {
		t.Errorf("events %v", types)
	}
}
