package broker

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

// TestEvidenceOfACall shows what a terminal call leaves for the report.
func TestEvidenceOfACall(t *testing.T) {
	receipt := strings.Repeat("r", 300)
	with := func(body string) Answer {
		a := answerOf(body)
		a.Receipt = receipt
		return a
	}
	long := `"` + strings.Repeat("x", 4000) + `"`
	omitted := func(body string) string {
		return fmt.Sprintf(`"omitted":{"result":{"bytes":%d,"digest":%q}}`, len(body), contract.Digest([]byte(body)))
	}
	refuses := &watch{log: new([]string), at: map[string]func(context.Context, Moment) error{
		"result": func(context.Context, Moment) error { return contract.Faultf(contract.ReasonChildResultInvalid, "no") },
	}}
	tests := map[string]struct {
		answer  Answer
		failure *Failure
		hooks   []Hook
		want    string
		reason  contract.Reason
		message string
	}{
		"lost with a receipt": {
			failure: &Failure{Message: "the answer was lost", Receipt: receipt}, reason: contract.ReasonEffectUncertain,
			want: `{"seq":1,"tool":"x","reason":"EffectUncertain","receipt":"` + receipt + `"}`,
		},
		"lost with an answer": {
			failure: &Failure{Message: `it said {"error": "no such thing"}`, Result: json.RawMessage(`{"error": "no such thing"}`)}, reason: contract.ReasonEffectUncertain,
			want:    `{"seq":1,"tool":"x","reason":"EffectUncertain","result":{"error":"no such thing"}}`,
			message: "call 1 of tool x may have had its effect: its answer is in the evidence",
		},
		"lost with an answer that does not fit": {
			failure: &Failure{Message: "m", Result: json.RawMessage(long), Receipt: "r"}, reason: contract.ReasonEffectUncertain,
			want: `{"seq":1,"tool":"x","reason":"EffectUncertain","receipt":"r",` + omitted(long) + `}`,
		},
		"refused by its schema": {
			answer: with(`{"b":1}`), reason: contract.ReasonChildResultInvalid,
			want: `{"seq":1,"tool":"x","reason":"ChildResultInvalid","result":{"b":1},"receipt":"` + receipt + `"}`,
		},
		"said by a part of it": {
			failure: &Failure{Message: "it answered with status 500: the disk of the till is full", Result: json.RawMessage(`{"title":"no","details":[{"detail":"the disk\nof the till is full"}]}`)},
			reason:  contract.ReasonEffectUncertain, message: "call 1 of tool x may have had its effect: its answer is in the evidence",
			want: `{"seq":1,"tool":"x","reason":"EffectUncertain","result":{"title":"no","details":[{"detail":"the disk\nof the till is full"}]}}`,
		},
		"refused by a hook": {
			answer: with(`{"a":1}`), hooks: []Hook{refuses}, reason: contract.ReasonChildResultInvalid,
			want: `{"seq":1,"tool":"x","reason":"ChildResultInvalid","result":{"a":1},"receipt":"` + receipt + `"}`,
		},
		"too large": {
			answer: with(long), reason: contract.ReasonChildResultTooLarge,
			want: `{"seq":1,"tool":"x","reason":"ChildResultTooLarge","receipt":"` + receipt + `",` + omitted(long) + `}`,
		},
		"caught": {failure: &Failure{Proof: Answered, Message: "m", Result: json.RawMessage(`1`), Receipt: "r"}, reason: contract.ReasonToolFailed},
		"fine":   {answer: with(`{"a":1}`)},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			x := toolOf("x", contract.EffectEffectful, &fake{answer: func(context.Context, Request) (Answer, error) {
				if tc.failure != nil {
					return Answer{}, tc.failure
				}
				return tc.answer, nil
			}})
			x.Tool.OutputSchema = json.RawMessage(`{"type":"object","required":["a"]}`)
			limits := contract.DefaultLimits()
			limits.OutputBytes = 1000
			b := newBroker(t, Config{Limits: limits, Tools: []Tool{x}, Hooks: tc.hooks})
			_, err := b.Call(t.Context(), "x", json.RawMessage("{}"))
			if got := reasonOf(err); got != tc.reason {
				t.Errorf("error %v, want the reason %q", err, tc.reason)
			}
			r := b.End()
			if r.Evidence != tc.want {
				t.Errorf("evidence %s\nwant     %s", r.Evidence, tc.want)
			}
			if tc.message != "" && r.Fault.Message != tc.message {
				t.Errorf("message %q, want %q", r.Fault.Message, tc.message)
			}
			if tc.failure == nil && r.Calls[0].Receipt != receipt {
				t.Errorf("the journal has the receipt %q", r.Calls[0].Receipt)
			}
		})
	}
}

func mediaOf(t *testing.T, text string, width, height int) *contract.Media {
	t.Helper()
	var out bytes.Buffer
	if err := png.Encode(&out, image.NewGray(image.Rect(0, 0, width, height))); err != nil {
		t.Fatal(err)
	}
	return &contract.Media{
		Marker: contract.MediaMarker, Text: text, Geometry: contract.Geometry{Width: 4, Height: 3},
		Pictures: []contract.Picture{{MIMEType: "image/png", Data: out.Bytes()}},
	}
}

// TestMediaIsHeld makes one call with media, and then another one.
func TestMediaIsHeld(t *testing.T) {
	first, second, broken := mediaOf(t, "first", 4, 3), mediaOf(t, "second", 4, 3), mediaOf(t, "broken", 9, 9)
	tests := map[string]struct {
		effect  contract.Effect
		answer  Answer
		failure *Failure
		want    string
		wantSeq int64
	}{
		"a newer one":                       {effect: contract.EffectEffectful, answer: Answer{Media: second}, want: "second", wantSeq: 2},
		"none":                              {effect: contract.EffectEffectful, want: "first", wantSeq: 1},
		"none, harmless":                    {effect: contract.EffectReadOnly, want: "first", wantSeq: 1},
		"an incomplete one":                 {effect: contract.EffectEffectful, answer: Answer{Media: broken}, want: "first", wantSeq: 1},
		"a failure":                         {effect: contract.EffectEffectful, failure: &Failure{Proof: Answered}},
		"a failure, uncertain":              {effect: contract.EffectIdempotent, failure: &Failure{}},
		"a failure with a picture":          {effect: contract.EffectEffectful, failure: &Failure{Media: second}, want: "second", wantSeq: 2},
		"a failure with a broken one":       {effect: contract.EffectEffectful, failure: &Failure{Proof: Answered, Media: broken}},
		"a failure, harmless":               {effect: contract.EffectReadOnly, failure: &Failure{}, want: "first", wantSeq: 1},
		"a failure before anything left":    {effect: contract.EffectEffectful, failure: &Failure{Proof: NeverSent}, want: "first", wantSeq: 1},
		"an answer that is too large":       {effect: contract.EffectEffectful, answer: Answer{Bytes: 1 << 30}},
		"an answer too large, with picture": {effect: contract.EffectEffectful, answer: Answer{Bytes: 1 << 30, Media: second}, want: "second", wantSeq: 2},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			look := toolOf("look", contract.EffectReadOnly, &fake{answer: func(context.Context, Request) (Answer, error) {
				return Answer{Body: []byte("1"), Bytes: 1, Media: first}, nil
			}})
			click := toolOf("click", tc.effect, &fake{answer: func(context.Context, Request) (Answer, error) {
				if tc.failure != nil {
					return Answer{}, tc.failure
				}
				tc.answer.Body = []byte("2")
				return tc.answer, nil
			}})
			b := newBroker(t, Config{Tools: []Tool{look, click}})
			for _, name := range []string{"look", "click"} {
				body, _ := b.Call(t.Context(), name, json.RawMessage("{}"))
				if bytes.Contains(body, []byte("PNG")) {
					t.Errorf("the program gets %q", body)
				}
			}
			r := b.End()
			got := ""
			if r.Media != nil {
				got = r.Media.Text
			}
			if got != tc.want || r.MediaSeq != tc.wantSeq {
				t.Errorf("media %q of call %d, want %q of %d", got, r.MediaSeq, tc.want, tc.wantSeq)
			}
		})
	}
}

func TestUsageOfTools(t *testing.T) {
	b := newBroker(t, Config{Tools: []Tool{
		toolOf("z", contract.EffectReadOnly, &fake{}), toolOf("a", contract.EffectEffectful, failing(&Failure{Proof: Answered})),
		toolOf("never", contract.EffectReadOnly, &fake{}),
	}})
	for _, name := range []string{"z", "a", "z"} {
		_, _ = b.Call(t.Context(), name, json.RawMessage(`{"n":1}`))
	}
	want := []contract.ToolUsage{
		{Name: "a", Calls: 1, ArgumentBytes: 7, WallMs: 1},
		{Name: "z", Calls: 2, ArgumentBytes: 14, ResultBytes: 2, WallMs: 2},
	}
	if diff := cmp.Diff(want, b.End().Tools); diff != "" {
		t.Errorf("usage (-want +got):\n%s", diff)
	}
}

// TestProgress shows which reports of a tool's progress are told.
func TestProgress(t *testing.T) {
	var kept func(done, total float64)
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	backend := &fake{answer: func(_ context.Context, r Request) (Answer, error) {
		kept = r.Progress
		for _, p := range []Progress{{math.NaN(), 1}, {1, math.Inf(1)}, {-1, 1}, {1, 4}, {2, 4}} {
			r.Progress(p.Done, p.Total)
		}
		now = now.Add(ProgressEvery)
		r.Progress(3, 0)
		return answerOf("1"), nil
	}}
	var got []Progress
	b := newBroker(t, Config{
		Tools: []Tool{toolOf("x", contract.EffectReadOnly, backend)},
		Observe: func(e Event) {
			if e.Progress != nil {
				got = append(got, *e.Progress)
			}
		},
	})
	b.cfg.Now = func() time.Time { return now }
	if _, err := b.Call(t.Context(), "x", json.RawMessage("{}")); err != nil {
		t.Fatal(err)
	}
	now = now.Add(time.Hour)
	kept(4, 4) // behind the end
	if diff := cmp.Diff([]Progress{{1, 4}, {3, 0}}, got); diff != "" {
		t.Errorf("progress (-want +got):\n%s", diff)
	}
}
