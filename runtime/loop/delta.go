package loop

import (
	"context"
	"strings"
	"time"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

const (
	// deltaBytes and deltaTime are what is gathered of an answer before it is told:
	// a stream of single tokens would be thousands of lines.
	deltaBytes = 256
	deltaTime  = 200 * time.Millisecond
)

// deltas gathers the parts of an answer that come one by one. It is used by one
// request at a time.
type deltas struct {
	now func() time.Time
	// tell is told what was gathered; two empty texts say that all of it is void.
	tell            func(text, reasoning string)
	text, reasoning strings.Builder
	since           time.Time
	told            bool
}

// add takes a part, or with two empty texts the word that all parts are void.
func (d *deltas) add(text, reasoning string) {
	if text == "" && reasoning == "" {
		d.text.Reset()
		d.reasoning.Reset()
		if d.told {
			d.tell("", "")
		}
		d.told = false
		return
	}
	now := d.now()
	if d.text.Len()+d.reasoning.Len() == 0 {
		d.since = now
	}
	d.text.WriteString(text)
	d.reasoning.WriteString(reasoning)
	if d.text.Len()+d.reasoning.Len() >= deltaBytes || now.Sub(d.since) >= deltaTime {
		d.end()
	}
}

// end tells what is left.
func (d *deltas) end() {
	if d.text.Len()+d.reasoning.Len() == 0 {
		return
	}
	d.told = true
	d.tell(d.text.String(), d.reasoning.String())
	d.text.Reset()
	d.reasoning.Reset()
}

// request asks the model with its answer told as it comes, unless nothing of what
// is said is kept.
func (a *agent) request(ctx context.Context, r ModelRequest, step int64) (ModelAnswer, error) {
	if a.Events == nil || a.Bundle.Transcript == contract.TranscriptNone {
		return a.Model.Ask(ctx, r)
	}
	d := deltas{now: a.Now, tell: func(text, reasoning string) {
		x := contract.Event{Type: contract.EventModelRetried, Step: step}
		if text != "" || reasoning != "" {
			x.Type, x.Content = contract.EventModelDelta, &contract.EventContent{Text: text, Reasoning: reasoning}
		}
		a.Events.step(a.Bundle, x)
	}}
	r.Delta = d.add
	defer d.end()
	return a.Model.Ask(ctx, r)
}
