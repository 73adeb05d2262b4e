package broker

import (
	"context"
	"encoding/json"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

// admit takes a call through every step that comes before its id, in this
// order: latch, evidence budget, name, effects in doubt, arguments, withheld,
// hooks, budgets. It returns the tool as soon as it is known, and the arguments'
// canonical JSON: two readers of it cannot see different members, as they can where
// a key is there twice.
func (b *Broker) admit(ctx context.Context, name string, args json.RawMessage) (*tool, json.RawMessage, *contract.Fault) {
	if f := b.latched(); f != nil {
		return nil, nil, f
	}
	if f := stopped(ctx); f != nil {
		return nil, nil, f
	}
	if b.outputBytes < contract.EvidenceFloorBytes {
		return nil, nil, contract.Faultf(contract.ReasonEvidenceBudgetTooSmall,
			"limits.outputBytes is %d; below %d no tool may be called, since its failure could not be reported", b.outputBytes, contract.EvidenceFloorBytes)
	}
	t, ok := b.tools[name]
	if !ok {
		return nil, nil, contract.Faultf(contract.ReasonToolNotAllowed, "tool %q is not granted to this run", contract.Truncate(name, maxNameBytes))
	}
	if f := b.scope.reaches(t); f != nil {
		return t, nil, f
	}
	if f := b.doubted(t); f != nil {
		return t, nil, f
	}
	canonical, f := t.arguments(args)
	if f != nil {
		return t, nil, f
	}
	if f := b.withheld(t); f != nil {
		return t, nil, f
	}
	m := Moment{Call: t.fill(contract.Call{Tool: name, ArgumentsDigest: contract.Digest(canonical)}), Arguments: canonical}
	if f := b.hooks.admit(ctx, m); f != nil {
		return t, nil, f
	}
	return t, canonical, b.budget(t)
}

// arguments checks the arguments of a call and returns their canonical JSON.
// Nothing has happened yet, so the program may correct itself.
func (t *tool) arguments(args json.RawMessage) (json.RawMessage, *contract.Fault) {
	name := t.Tool.Tool.Name
	tooLarge := func(n int) *contract.Fault {
		return contract.Faultf(contract.ReasonInvalidArguments, "the arguments of tool %s have %d bytes, more than %d", name, n, contract.MaxArgumentBytes)
	}
	if n := len(args); n > contract.MaxArgumentBytes {
		return nil, tooLarge(n)
	}
	if !contract.WellFormed(args) {
		return nil, contract.Faultf(contract.ReasonInvalidArguments, "the arguments of tool %s are not well-formed Unicode in UTF-8", name)
	}
	if err := t.input.Validate(args); err != nil {
		return nil, contract.Faultf(contract.ReasonInvalidArguments, "the arguments of tool %s do not match its schema: %v", name, err)
	}
	canonical, err := contract.Canonical(args)
	if err != nil {
		return nil, contract.Faultf(contract.ReasonInvalidArguments, "the arguments of tool %s are not JSON", name)
	}
	if n := len(canonical); n > contract.MaxArgumentBytes { // some characters are longer as escapes
		return nil, tooLarge(n)
	}
	return canonical, nil
}

// budget checks the budgets; charging them is the journal's doing.
func (b *Broker) budget(t *tool) *contract.Fault {
	b.mu.Lock()
	defer b.mu.Unlock()
	if most := b.cfg.Limits.Calls(); b.book.admitted >= most {
		return contract.Faultf(contract.ReasonCallLimitExceeded, "the run has made its %d tool calls (limits.childCalls)", most)
	}
	name := t.Tool.Tool.Name
	if s := b.scope; s.Recipe != "" && b.book.admitted-b.before >= s.Limits.Calls() {
		b.own = true
		return contract.Faultf(contract.ReasonCallLimitExceeded, "recipe %s has made its %d tool calls (limits.childCalls)", s.Recipe, s.Limits.Calls())
	}
	if most := t.MaxCalls; most > 0 && b.book.used[name] != nil && b.book.used[name].Calls >= most {
		return contract.Faultf(contract.ReasonCallLimitExceeded, "the run has made its %d calls of tool %s (grant.maxCallsPerRun)", most, name)
	}
	return nil
}

// refuse records a call that was turned away, and latches a terminal fault. What
// the journal has no room for is not told either: a program may be refused
// without end.
func (b *Broker) refuse(ctx context.Context, name string, t *tool, f *contract.Fault) {
	latched := b.hold(f)
	b.mu.Lock()
	c, listed := b.book.refuse(name, t, f.Reason, stamp(b.cfg.Now()))
	b.mu.Unlock()
	if listed || latched {
		b.hooks.observe(ctx, Moment{Call: c, Fault: f, Latched: latched})
	}
}
