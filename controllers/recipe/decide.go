// Package recipe decides whether a Recipe may be used by runs.
package recipe

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/api/v1alpha1"
	"github.com/codeact-dev/codeact-operator/controllers/enable"
	"github.com/codeact-dev/codeact-operator/controllers/settings"
	"github.com/codeact-dev/codeact-operator/sandbox/check"
)

// Snapshot is all that the decision sees.
type Snapshot struct {
	// Now is the time of the look.
	Now time.Time
	// Recipe is the object.
	Recipe *v1alpha1.Recipe
	// Recipes are Recipes of the same namespace. Only those whose tool name the
	// recipe has, or calls, matter.
	Recipes []v1alpha1.Recipe
	// Grants are ToolGrants of the same namespace, and those that others offer. Only
	// those that declare the recipe's tool name, or a tool that it calls, matter.
	Grants []v1alpha1.ToolGrant
	// Pods are the check pods of the recipe.
	Pods []corev1.Pod
	// ConfigMaps are those that the recipe takes texts from, by name.
	ConfigMaps map[string]*corev1.ConfigMap
	// NamespaceLabels are those of the recipe's namespace.
	NamespaceLabels map[string]string
	// NamespaceAnnotations are those of the recipe's namespace that may switch it on
	// or off, where the operator lets them.
	NamespaceAnnotations map[string]string
}

// Verb says what a Plan does. The zero Verb is invalid.
type Verb string

// The verbs.
const (
	// VerbAccept makes the recipe Ready.
	VerbAccept Verb = "Accept"
	// VerbWait says that the tests run, which tools have no usable grant yet, or which
	// ConfigMap does not hold what it should.
	VerbWait Verb = "Wait"
	// VerbRefuse says what is wrong with the recipe.
	VerbRefuse Verb = "Refuse"
)

// Plan is the decision.
type Plan struct {
	Verb Verb
	// Fault is why the recipe is refused or waits; nil while it waits for its tests.
	Fault *contract.Fault
	// Tests is what is done about the tests, and what came of them.
	Tests Tests
	// Recipe is the recipe with the texts that were judged, and Texts what was wrong
	// with them from the start.
	Recipe *v1alpha1.Recipe
	Texts  v1alpha1.TextFaults
	// Source and Schema are the faults of these two parts, or nil.
	Source, Schema *contract.Fault
	// Note is what the static check saw beside faults; empty is nothing.
	Note string
	// Tools says of each declared tool whether it can be called, sorted by name.
	Tools []v1alpha1.RecipeTool
	// Disabled is why no run may execute recipes in the namespace; empty where they
	// may. It has no part in the Verb.
	Disabled string
}

// subject is a Snapshot with what the checks share.
type subject struct {
	Snapshot
	op   settings.Operator
	info check.Info
	bad  *contract.Fault
	// written is the recipe as it was written; Recipe has its texts inline.
	written *v1alpha1.Recipe
	texts   v1alpha1.TextFaults
	// input is what is wrong with the input schema.
	input *contract.Fault
}

// checks of the object as a whole are asked in this order, after source and
// schema; the first fault refuses the recipe. Then come the tests, and last the
// grants: that a recipe waits for grants says that all else is right.
var checks = []func(*subject) *contract.Fault{
	(*subject).source,
	(*subject).schemas,
	(*subject).manifest,
	(*subject).fixtures,
	(*subject).limits,
	(*subject).reserved,
	(*subject).conflict,
	(*subject).recursion,
}

// Decide judges one recipe.
func Decide(op settings.Operator, s Snapshot) Plan {
	x := &subject{Snapshot: s, op: op, written: s.Recipe}
	x.Recipe, x.texts = s.Recipe.Effective(s.ConfigMaps)
	x.input = x.inputSchema()
	s = x.Snapshot
	x.info, x.bad = inspect(s.Recipe.Spec.Source, op.Limits(s.Recipe.Spec.Limits, nil).SourceBytes)
	p := Plan{
		Verb: VerbAccept, Recipe: x.Recipe, Texts: x.texts, Source: x.source(), Schema: x.schemas(), Note: x.undeclared(),
		Tools: x.declared(), Disabled: x.disabled(),
	}
	for _, c := range checks {
		if p.Fault = c(x); p.Fault != nil {
			break
		}
	}
	p.Tests = x.tests(p.Fault)
	if p.Fault == nil {
		p.Fault = p.Tests.Fault
	}
	switch f := missing(p.Tools); {
	case p.Fault != nil && x.elsewhere(p.Fault):
		p.Verb = VerbWait
	case p.Fault != nil:
		p.Verb = VerbRefuse
	case p.Tests.Pending:
		p.Verb = VerbWait
	case f != nil:
		p.Verb, p.Fault = VerbWait, f
	}
	return p
}

// Inspect checks the text of a program statically: its size, its syntax, and
// that it declares main. The error is a *contract.Fault.
func Inspect(source string, maxBytes int64) error {
	if _, f := inspect(source, maxBytes); f != nil {
		return f
	}
	return nil
}

func inspect(source string, maxBytes int64) (check.Info, *contract.Fault) {
	info, err := check.Source(source, maxBytes)
	if err != nil {
		return info, asFault(err, contract.ReasonSyntaxError)
	}
	if !info.HasMain {
		return info, contract.Faultf(contract.ReasonJavaScriptError,
			"the program declares no main: add a plain function main(input) at its top level")
	}
	return info, nil
}

func asFault(err error, otherwise contract.Reason) *contract.Fault {
	if f, ok := contract.AsFault(err); ok {
		return f
	}
	return contract.Faultf(otherwise, "%v", err)
}

func (s *subject) disabled() string {
	v := enable.CodeAct(s.op, s.Recipe.Namespace, s.NamespaceAnnotations)
	if v.Enabled {
		v = enable.Recipes(s.op, s.Recipe.Namespace, s.NamespaceAnnotations)
	}
	return v.Why
}

func (s *subject) source() *contract.Fault {
	if s.texts.Source != nil {
		return s.texts.Source
	}
	return s.bad
}

// elsewhere reports whether the fault may be mended without a change of the
// recipe: in a ConfigMap whose content no digest holds yet.
func (s *subject) elsewhere(f *contract.Fault) bool {
	return s.written.Spec.SourceFrom != nil && f == s.texts.Source || s.written.Spec.InputSchemaFrom != nil && f == s.input
}

func (s *subject) inputSchema() *contract.Fault {
	if s.texts.InputSchema != nil {
		return s.texts.InputSchema
	}
	where := "spec.inputSchema"
	if ref := s.written.Spec.InputSchemaFrom; ref != nil {
		where = ref.String() + " (spec.inputSchemaFrom)"
	}
	return compile(where, s.Recipe.InputSchema())
}

func compile(where string, text []byte) *contract.Fault {
	_, err := contract.CompileSchema(text)
	if err == nil {
		return nil
	}
	f := asFault(err, contract.ReasonSchemaInvalid)
	return contract.Faultf(f.Reason, "%s: %s", where, f.Message)
}

func (s *subject) schemas() *contract.Fault {
	if s.input != nil {
		return s.input
	}
	return compile("spec.outputSchema", s.Recipe.OutputSchema())
}

func (s *subject) manifest() *contract.Fault {
	n := s.written.ManifestBytes()
	if n <= contract.MaxManifestBytes {
		return nil
	}
	return contract.Faultf(contract.ReasonManifestTooLarge,
		"the manifest has %d bytes beside the program, more than %d; move the input schema into a ConfigMap (spec.inputSchemaFrom), or shorten it",
		n, contract.MaxManifestBytes)
}

func (s *subject) limits() *contract.Fault {
	if err := s.op.Check(s.Recipe.Spec.Limits); err != nil {
		return asFault(err, contract.ReasonLimitsTooHigh)
	}
	return nil
}

func (s *subject) reserved() *contract.Fault {
	if name := s.Recipe.EffectiveToolName(); contract.ReservedName(name) {
		return contract.Faultf(contract.ReasonReservedName, "the tool name %q belongs to the runtime; set another spec.toolName", name)
	}
	return nil
}

// conflict gives a tool name to the ToolGrant that declares it, else to the
// oldest Recipe, whatever the order of events was.
func (s *subject) conflict() *contract.Fault {
	name := s.Recipe.EffectiveToolName()
	if g := s.granter(name); g != "" {
		return contract.Faultf(contract.ReasonNameConflict,
			"ToolGrant %s declares a tool named %q; set another spec.toolName", g, name)
	}
	for _, o := range s.others() {
		if o.EffectiveToolName() == name && v1alpha1.Older(o, s.Recipe) {
			return contract.Faultf(contract.ReasonNameConflict,
				"Recipe %s, which is older, has the tool name %q already; set another spec.toolName", o.Name, name)
		}
	}
	return nil
}

// recursion refuses a recipe that calls itself. Another recipe among its tools is no
// tool, and one that has no grant.
func (s *subject) recursion() *contract.Fault {
	if name := s.Recipe.EffectiveToolName(); slices.Contains(s.Recipe.Spec.Tools, name) {
		return contract.Faultf(contract.ReasonRecursive, "spec.tools names the recipe itself, %q; take it out", name)
	}
	return nil
}

// granter names the ToolGrant of the namespace that declares the tool, of
// several the first by name, or "".
func (s *subject) granter(tool string) string {
	first := ""
	for i := range s.Grants {
		if g := &s.Grants[i]; g.Namespace == s.Recipe.Namespace && g.Spec.Tool.Name == tool && (first == "" || g.Name < first) {
			first = g.Name
		}
	}
	return first
}

func (s *subject) others() []*v1alpha1.Recipe {
	var out []*v1alpha1.Recipe
	for i := range s.Recipes {
		if o := &s.Recipes[i]; o.Namespace == s.Recipe.Namespace && o.Name != s.Recipe.Name {
			out = append(out, o)
		}
	}
	slices.SortFunc(out, func(a, b *v1alpha1.Recipe) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// declared asks the one eligibility function about the declared tools. Which runs a
// grant selects by their labels is the runs' matter: the recipe has a usable
// grant when some run may use it.
func (s *subject) declared() []v1alpha1.RecipeTool {
	grants := v1alpha1.ContractGrants(s.Grants)
	for i := range grants {
		grants[i].Authority.Selects = nil
	}
	p := contract.Eligible(contract.Subject{
		Namespace: s.Recipe.Namespace, NamespaceLabels: s.NamespaceLabels, Recipe: s.Recipe.Name,
		RecipeTools: v1alpha1.RecipeTools(s.Recipe.Namespace, s.Recipes), Now: s.Now,
	}, s.op.Eligibility(), grants, s.Recipe.Spec.Tools)
	var out []v1alpha1.RecipeTool
	for _, g := range p.Tools {
		t := v1alpha1.RecipeTool{Name: g.Tool.Name, Usable: true, Grant: g.Name}
		if g.Namespace != s.Recipe.Namespace {
			t.GrantNamespace = g.Namespace
		}
		out = append(out, t)
	}
	for _, r := range p.Refused {
		out = append(out, v1alpha1.RecipeTool{
			Name: contract.Truncate(r.Name, 64), Rule: string(r.Rule), Message: contract.Truncate(r.Message, contract.MaxMessageBytes),
		})
	}
	slices.SortFunc(out, func(a, b v1alpha1.RecipeTool) int { return strings.Compare(a.Name, b.Name) })
	return out
}

func missing(tools []v1alpha1.RecipeTool) *contract.Fault {
	var names []string
	for _, t := range tools {
		if !t.Usable {
			names = append(names, fmt.Sprintf("%s (%s: %s)", t.Name, t.Rule, t.Message))
		}
	}
	if len(names) == 0 {
		return nil
	}
	return contract.Faultf(contract.ReasonToolsNotGranted, "waiting for usable grants of: %s", strings.Join(names, "; "))
}

// undeclared names the literal tool names of the source that spec.tools lacks:
// such a call can never work, but the program may never reach it.
func (s *subject) undeclared() string {
	var names []string
	for _, n := range s.info.ToolNames {
		if !slices.Contains(s.Recipe.Spec.Tools, n) {
			names = append(names, fmt.Sprintf("%q", contract.Truncate(n, 64)))
		}
	}
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf("the source calls %s, which spec.tools does not name: such a call ends a run with %s",
		strings.Join(names, ", "), contract.ReasonToolNotAllowed)
}
