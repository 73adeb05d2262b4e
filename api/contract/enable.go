package contract

// Layer says whose word on a switch counts.
// +kubebuilder:validation:Enum=Operator;Namespace
type Layer string

// The layers of a switch.
const (
	// LayerOperator is the operator's configuration.
	LayerOperator Layer = "Operator"
	// LayerNamespace is an annotation of the run's namespace, where the operator
	// lets it count.
	LayerNamespace Layer = "Namespace"
)

// Switch is the value of one switch as it was when an execution generation was
// pinned. The zero value is the closed one: nobody has switched anything on.
// +kubebuilder:object:generate=true
type Switch struct {
	// enabled is the effective value.
	// +required
	Enabled bool `json:"enabled"`
	// from is the layer that decided.
	// +required
	From Layer `json:"from"`
}

// CheckEnabled refuses a bundle whose program nobody has switched on. codeAct is
// about every program, recipes besides about the bundle's Recipe and its agent's.
// The fault is Disabled.
func (b Bundle) CheckEnabled() *Fault {
	if f := b.CodeAct.check("codeAct"); f != nil {
		return f
	}
	if b.Recipe != nil || b.Agent != nil && len(b.Agent.Recipes) > 0 {
		return b.Recipes.check("recipes")
	}
	return nil
}

func (s Switch) check(name string) *Fault {
	switch {
	case s.From != LayerOperator && s.From != LayerNamespace:
		return Faultf(ReasonDisabled, "the bundle does not say who has enabled %s", name)
	case !s.Enabled:
		return Faultf(ReasonDisabled, "%s is not enabled in the bundle (decided by: %s)", name, s.From)
	}
	return nil
}
