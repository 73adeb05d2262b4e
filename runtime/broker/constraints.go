package broker

import (
	"context"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

// constraints is the first hook: the conditions that the grants set for calls
// and results. Evaluating one stops with its context, and so does a call that
// waits for it.
type constraints struct {
	Pass
	b *Broker
}

// compileConstraints compiles what the tool's grant says, if it says anything.
func (t *tool) compileConstraints() (err error) {
	if t.before, err = contract.CompileConstraints(t.Constraints, false); err != nil {
		return err
	}
	t.after, err = contract.CompileConstraints(t.ResultConstraints, true)
	return err
}

func (b *Broker) constrained() bool {
	for _, t := range b.tools {
		if t.before != nil || t.after != nil {
			return true
		}
	}
	return false
}

// Admit implements Hook.
func (c constraints) Admit(ctx context.Context, m Moment) error {
	t := c.b.tools[m.Call.Tool]
	if t.before == nil {
		return nil
	}
	return ofTool(m.Call.Tool, t.before.Check(ctx, c.vars(m)))
}

// Result implements Hook. A failure has no result that could be looked at.
func (c constraints) Result(ctx context.Context, m Moment) error {
	if t := c.b.tools[m.Call.Tool]; t.after != nil && m.Fault == nil {
		return ofTool(m.Call.Tool, t.after.Check(ctx, c.vars(m)))
	}
	return nil
}

// ofTool names the tool in front of what a condition says: whoever reads how the
// run ended sees one sentence, and a run may have many tools.
func ofTool(name string, err error) error {
	f, ok := contract.AsFault(err)
	if !ok {
		return err
	}
	return contract.Faultf(f.Reason, "tool %s: %s", name, f.Message)
}

// vars is what an expression may look at. The call's own entry is not one of the
// previous ones, and neither are refused calls.
func (c constraints) vars(m Moment) contract.ConstraintVars {
	b := c.b
	b.mu.Lock()
	defer b.mu.Unlock()
	seq := m.Call.Seq
	if seq == 0 {
		seq = b.book.admitted + 1
	}
	v := contract.ConstraintVars{
		Args: m.Arguments, Result: m.Result,
		Run: contract.ConstraintRun{
			Namespace: b.cfg.Run.Namespace, Name: b.cfg.Run.Name, Labels: b.cfg.Labels, Recipe: b.recipe(),
		},
		Call: contract.ConstraintCall{Sequence: seq},
	}
	for _, p := range b.book.calls {
		if p.Seq > 0 && p.Seq < seq {
			v.Call.Previous = append(v.Call.Previous, contract.PreviousCall{Tool: p.Tool, State: p.State, Reason: p.Reason})
		}
	}
	return v
}
