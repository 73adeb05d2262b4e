package agentrun

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/api/v1alpha1"
)

// projected is one tool of the run and who may call it.
type projected struct {
	contract.Grant
	direct, notFromCode bool
}

// native reports whether the run's model calls tools itself.
func (l *look) native() bool {
	a := l.Run.Spec.Agent
	return a != nil && a.Protocol == contract.ProtocolTools
}

// recipeNamed finds a Recipe of the run's namespace.
func (l *look) recipeNamed(name string) *v1alpha1.Recipe {
	for i := range l.Recipes {
		if r := &l.Recipes[i]; r.Namespace == l.Run.Namespace && r.Name == name {
			return r
		}
	}
	return nil
}

// agentRecipes are those that the model is offered and that are there.
func (l *look) agentRecipes() (out []*v1alpha1.Recipe) {
	if !l.native() {
		return nil
	}
	for _, name := range slices.Sorted(slices.Values(l.Run.Spec.Agent.Recipes)) {
		if r := l.recipeNamed(name); r != nil {
			out = append(out, r)
		}
	}
	return out
}

// agentRecipesRefused waits for the recipes that the model is offered.
func agentRecipesRefused(l *look) *Plan {
	if !l.native() {
		return nil
	}
	for _, name := range l.Run.Spec.Agent.Recipes {
		r := l.recipeNamed(name)
		if r == nil {
			return l.wait(contract.ReasonRecipeNotFound, fmt.Sprintf("there is no Recipe %s in this namespace", name))
		}
		if why := l.unready(r); why != "" {
			return l.waitFor(r, why)
		}
	}
	named := map[string]string{}
	for _, r := range l.agentRecipes() {
		tool := r.EffectiveToolName()
		if other, twice := named[tool]; twice {
			return l.wait(contract.ReasonRecipeNotReady, fmt.Sprintf("Recipes %s and %s both have the tool name %q; rename one of the two", other, r.Name, tool))
		}
		named[tool] = r.Name
		if n, most := int64(len(r.Spec.Source)), l.recipeLimits(r).SourceBytes; n > most {
			return settle(failed(contract.ReasonSourceTooLarge, "the source of Recipe %s has %d bytes, more than limits.sourceBytes, %d", r.Name, n, most))
		}
	}
	return nil
}

// unready says why a recipe cannot be used at its present generation, or "".
func (l *look) unready(r *v1alpha1.Recipe) string {
	c := meta.FindStatusCondition(r.Status.Conditions, v1alpha1.ConditionReady)
	switch {
	case c == nil || c.ObservedGeneration != r.Generation:
		return fmt.Sprintf("Recipe %s has not been checked yet", r.Name)
	case v1alpha1.IsReady(r.Status.Conditions, r.Generation) || c.Reason == string(contract.ReasonToolsNotGranted):
		return l.unlike[r.Name]
	}
	return fmt.Sprintf("Recipe %s is not Ready: %s: %s", r.Name, c.Reason, c.Message)
}

func (l *look) recipeLimits(r *v1alpha1.Recipe) contract.Limits {
	return l.op.Limits(r.Spec.Limits, l.Run.Spec.Limits)
}

// tools are the tools of the run, sorted by name, and why others that it asks for
// are not among them.
func (l *look) tools() (out []projected, refused []string) {
	own := l.projection()
	for _, g := range own.Tools {
		out = append(out, projected{Grant: g, direct: l.native()})
	}
	if !l.native() {
		return out, refusals("", own.Refused)
	}
	var asked []string
	for _, r := range own.Refused {
		asked = append(asked, r.Name)
	}
	grants, offered := v1alpha1.ContractGrants(l.Grants), map[string]string{}
	for _, r := range l.agentRecipes() {
		offered[r.EffectiveToolName()] = r.Name
	}
	direct := contract.EligibleDirect(l.subject(), grants, asked, offered)
	for _, g := range direct.Tools {
		out = append(out, projected{Grant: g, direct: true, notFromCode: true})
	}
	refused = refusals("", direct.Refused)
	for _, r := range l.agentRecipes() {
		s := l.subject()
		s.Recipe = r.Name
		p := contract.Eligible(s, l.op.Eligibility(), grants, r.Spec.Tools)
		refused = append(refused, refusals("Recipe "+r.Name+": ", p.Refused)...)
		for _, g := range p.Tools {
			i := slices.IndexFunc(out, func(x projected) bool { return x.Tool.Name == g.Tool.Name })
			switch {
			case i < 0:
				out = append(out, projected{Grant: g, notFromCode: true})
			case out[i].UID != g.UID:
				refused = append(refused, fmt.Sprintf("%s: ToolGrant %s gives it to Recipe %s, and ToolGrant %s to another part of this run; a run has one grant of a tool",
					g.Tool.Name, g.Name, r.Name, out[i].Name))
			}
		}
	}
	slices.SortFunc(out, func(a, b projected) int { return strings.Compare(a.Tool.Name, b.Tool.Name) })
	return out, refused
}

func refusals(of string, list []contract.Refusal) (out []string) {
	for _, r := range list {
		out = append(out, fmt.Sprintf("%s%s (rule %s): %s", of, r.Name, r.Rule, r.Message))
	}
	return out
}

// pinRecipes pins the recipes that the model is offered.
func (l *look) pinRecipes() (out []contract.PinnedRecipeTool, err error) {
	for _, r := range l.agentRecipes() {
		x := contract.PinnedRecipeTool{
			Description: r.Spec.Description, Source: r.Spec.Source, SourceDigest: r.SourceDigest(), InputSchema: r.InputSchema(), OutputSchema: r.OutputSchema(),
			Limits: l.recipeLimits(r), Tools: slices.Sorted(slices.Values(r.Spec.Tools)),
		}
		x.PinnedRecipe = contract.PinnedRecipe{Name: r.Name, UID: string(r.UID), Generation: r.Generation, ToolName: r.EffectiveToolName()}
		if x.ManifestDigest, err = r.ManifestDigest(); err != nil {
			return nil, err
		}
		out = append(out, x)
	}
	return out, nil
}
