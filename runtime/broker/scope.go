package broker

import (
	"slices"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

// Scope says who opens a way to the tools of a run, and which of them he may
// reach. The zero value is a program of the run's own or of its model.
type Scope struct {
	// Direct is for one call that the model makes itself. It reaches the tools that
	// are Direct, and it alone may wait at the Desk.
	Direct bool
	// Recipe is the name of a recipe that an agent's model has called. It reaches
	// exactly Tools, also those that are NotFromCode, and is bounded by Limits, whose
	// ChildCalls are its own.
	Recipe string
	Tools  []string
	Limits contract.Limits
}

// reaches says why the scope does not reach a tool of the projection, or nil.
func (s Scope) reaches(t *tool) *contract.Fault {
	name := t.Tool.Tool.Name
	switch {
	case s.Direct && !t.Direct:
		return contract.Faultf(contract.ReasonToolNotAllowed, "tool %q is not one that the model may call itself", name)
	case s.Direct:
		return nil
	case s.Recipe != "" && !s.declares(name):
		return contract.Faultf(contract.ReasonToolNotAllowed, "recipe %s does not declare the tool %q", s.Recipe, name)
	case s.Recipe == "" && t.NotFromCode:
		return contract.Faultf(contract.ReasonToolNotAllowed, "tool %q is not callable from code", name)
	}
	return nil
}

func (s Scope) declares(name string) bool {
	return slices.Contains(s.Tools, name)
}

// enter puts the scope of the next program into force. The Broker's mutex is held.
func (b *Broker) enter(s Scope) {
	b.scope, b.outputBytes, b.before, b.own = s, b.cfg.Limits.OutputBytes, b.book.admitted, false
	if s.Recipe != "" {
		b.outputBytes = s.Limits.OutputBytes
	}
}

// recipe is the name that constraints see. The Broker's mutex is held.
func (b *Broker) recipe() string {
	if b.scope.Recipe != "" {
		return b.scope.Recipe
	}
	return b.cfg.Recipe
}
