// Package settings holds what the operator's administrator decides for every
// namespace. It is plain data: the decisions take it as an argument.
package settings

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

// Operator is what the administrator decides.
type Operator struct {
	// CodeAct lets programs run: of runs, of agents and of recipes. Recipes lets
	// those of Recipes, besides. Without, a new run ends as Disabled.
	CodeAct, Recipes Switch
	// Defaults are the limits of a program that asks for none; Ceilings the
	// highest that it may ask for.
	Defaults, Ceilings contract.Limits
	// CodeActDefault is what a tool's codeAct: Inherit means.
	CodeActDefault contract.CodeActPolicy
	// HardDeny names tools that code may never call.
	HardDeny []string
	// Egress is how runs may reach their tools; it is pinned with each run.
	Egress contract.OperatorPolicy
	// RecipeTests says what becomes of the tests of Recipes.
	RecipeTests RecipeTests
	// Runtime says what runs in the pods.
	Runtime Runtime
}

// RecipeTests says what becomes of the tests of Recipes.
type RecipeTests struct {
	// Run has them run before a Recipe turns Ready; without it they are skipped.
	Run bool
	// Pods bounds how many check pods there are at once, in all namespaces; at least 1.
	Pods int
}

// Switch is one ability that is on or off in every namespace.
type Switch struct {
	Enabled bool
	// AllowNamespaceOverride lets an annotation of a namespace take the place of
	// Enabled there, in either direction.
	AllowNamespaceOverride bool
}

// Runtime says what runs in the runtime pods.
type Runtime struct {
	// Image is the image, Command its program; an empty Command is the image's own.
	Image   string
	Command []string
	// PullPolicy is the image's; empty leaves it to the API server.
	PullPolicy corev1.PullPolicy
	// TraceEndpoint is the collector that the pods send spans to, by OTLP over HTTP;
	// empty is none.
	TraceEndpoint string
	// Proxy is for the pods whose calls of tools may go through one.
	Proxy Proxy
}

// Default returns the settings of an operator without flags, but for the image.
func Default() Operator {
	return Operator{
		CodeAct: Switch{Enabled: true}, Recipes: Switch{Enabled: true},
		Defaults: contract.DefaultLimits(), Ceilings: contract.DefaultLimits(),
		CodeActDefault: contract.CodeActAllow,
		HardDeny:       contract.ReservedNames(),
		RecipeTests:    RecipeTests{Run: true, Pods: 4},
		Runtime:        Runtime{Command: []string{"/runtime"}},
	}
}

// Validate reports settings that contradict each other.
func (o Operator) Validate() error {
	var errs []error
	if err := check(o.Ceilings, contract.Ceilings()); err != nil {
		errs = append(errs, fmt.Errorf("the ceilings are above the product's own: %w", err))
	}
	if err := check(o.Defaults, o.Ceilings); err != nil {
		errs = append(errs, fmt.Errorf("the default limits are above the ceilings: %w", err))
	}
	if o.CodeActDefault != contract.CodeActAllow && o.CodeActDefault != contract.CodeActDeny {
		errs = append(errs, fmt.Errorf("the CodeAct default is %q: want Allow or Deny", o.CodeActDefault))
	}
	for _, n := range o.HardDeny {
		if !contract.ValidToolName(n) {
			errs = append(errs, fmt.Errorf("the hard-deny list holds %q, which is no tool name", n))
		}
	}
	if o.RecipeTests.Pods < 1 {
		errs = append(errs, fmt.Errorf("there may be %d check pods: want at least 1", o.RecipeTests.Pods))
	}
	if why := refuseAddress(o.Runtime.TraceEndpoint); why != "" {
		errs = append(errs, fmt.Errorf("the endpoint for traces %s", why))
	}
	if o.Egress.ProxyFromEnvironment {
		errs = append(errs, o.Runtime.Proxy.validate())
	}
	return errors.Join(errs...)
}

// Eligibility is the operator's part in the eligibility of tools.
func (o Operator) Eligibility() contract.Policy {
	return contract.Policy{CodeActDefault: o.CodeActDefault, HardDeny: o.HardDeny}
}

// Check reports the first limit that is above its ceiling, as a LimitsTooHigh
// fault, or nil.
func (o Operator) Check(asked *contract.Limits) error {
	if asked == nil {
		return nil
	}
	return check(*asked, o.Ceilings)
}

// check keeps a nil *Fault from becoming an error that is not nil.
func check(l, ceiling contract.Limits) error {
	if f := l.CheckWithin(ceiling); f != nil {
		return f
	}
	return nil
}

// Limits returns the limits of one execution: what the recipe asks for takes
// the place of the default, never above the ceiling, and a run may only lower
// what its recipe asks for. Either may be nil.
func (o Operator) Limits(recipe, run *contract.Limits) contract.Limits {
	asked := contract.Limits{}
	if recipe != nil {
		asked = asked.Lower(*recipe)
	}
	if run != nil {
		asked = asked.Lower(*run)
	}
	return fill(asked, o.Defaults).Lower(o.Ceilings)
}

// fill returns l with every limit that it does not set taken from d.
func fill(l, d contract.Limits) contract.Limits {
	set := func(v *int64, def int64) {
		if *v == 0 {
			*v = def
		}
	}
	set(&l.SourceBytes, d.SourceBytes)
	set(&l.InputBytes, d.InputBytes)
	set(&l.OutputBytes, d.OutputBytes)
	set(&l.HeapBytes, d.HeapBytes)
	set(&l.StackBytes, d.StackBytes)
	set(&l.WallClockMs, d.WallClockMs)
	set(&l.Fuel, d.Fuel)
	if l.ChildCalls == nil {
		n := d.Calls()
		l.ChildCalls = &n
	}
	return l
}
