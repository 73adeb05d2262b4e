package agentrun

import (
	"fmt"
	"strings"
	"time"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/api/v1alpha1"
	"github.com/codeact-dev/codeact-operator/controllers/recipe"
)

// textsAgain is when texts that are not those of a verdict are read again.
const textsAgain = 5 * time.Second

func cancelledBeforeStart(l *look) *Plan {
	why := l.endAsked()
	if why == "" {
		return nil
	}
	return settle(failed(contract.ReasonCancelled, "%s; nothing was started", why))
}

// pinnedBefore launches from the pin of a launch that was refused: it is read,
// never made again. What was switched off since then is for later runs.
func pinnedBefore(l *look) *Plan {
	if l.Run.Status.Pinned == nil {
		return nil
	}
	if l.pinErr != nil {
		return settle(failed(contract.ReasonInterrupted, "%v", l.pinErr))
	}
	return l.launchPlan(l.pin)
}

// inputFarTooLarge does not wait to refuse what no recipe could allow.
func inputFarTooLarge(l *look) *Plan {
	if n, most := int64(len(l.Run.Input())), l.op.Ceilings.InputBytes; n > most {
		return settle(failed(contract.ReasonInputTooLarge, "spec.input has %d bytes, and no limits.inputBytes may be more than %d", n, most))
	}
	return nil
}

func limitsTooHigh(l *look) *Plan {
	return refuse(l.op.Check(l.Run.Spec.Limits))
}

// sourceRefused checks a program of the run's own. A recipe's is checked by its
// own controller.
func sourceRefused(l *look) *Plan {
	if l.Run.Spec.Code == nil {
		return nil
	}
	return refuse(recipe.Inspect(l.Run.Spec.Code.Source, l.limits().SourceBytes))
}

func recipeMissing(l *look) *Plan {
	if l.Run.Spec.Recipe == nil || l.Recipe != nil {
		return nil
	}
	return l.wait(contract.ReasonRecipeNotFound, fmt.Sprintf("there is no Recipe %s in this namespace", l.Run.Spec.Recipe.Name))
}

// recipeNotReady waits for the recipe's own verdict about exactly its present
// generation. That it lacks grants is no verdict about this run: the run's own
// eligibility is asked later, and names the tool.
func recipeNotReady(l *look) *Plan {
	if l.Recipe == nil {
		return nil
	}
	if why := l.unready(l.Recipe); why != "" {
		return l.waitFor(l.Recipe, why)
	}
	if n, most := int64(len(l.Recipe.Spec.Source)), l.limits().SourceBytes; n > most {
		return settle(failed(contract.ReasonSourceTooLarge, "the source of Recipe %s has %d bytes, more than limits.sourceBytes, %d", l.Recipe.Name, n, most))
	}
	return nil
}

func inputRefused(l *look) *Plan {
	in := l.Run.Input()
	if n, most := int64(len(in)), l.limits().InputBytes; n > most {
		return settle(failed(contract.ReasonInputTooLarge, "spec.input has %d bytes, more than limits.inputBytes, %d", n, most))
	}
	var text []byte
	if l.Recipe != nil {
		text = l.Recipe.InputSchema()
	}
	schema, err := contract.CompileSchema(text)
	if err != nil {
		return refuse(err)
	}
	if err := schema.Validate(in); err != nil {
		return settle(failed(contract.ReasonInvalidInput, "spec.input: %v", err))
	}
	return nil
}

func toolsRefused(l *look) *Plan {
	tools, why := l.tools()
	if n := len(tools); n > contract.MaxRecipeTools {
		return settle(failed(contract.ReasonInvalidInput, "the run and its recipes name %d tools, more than %d", n, contract.MaxRecipeTools))
	}
	if len(why) == 0 {
		return nil
	}
	return l.wait(contract.ReasonToolsNotGranted, strings.Join(why, "; "))
}

func launch(l *look) *Plan {
	pin, err := newPin(l)
	if err != nil {
		return refuse(err)
	}
	return l.launchPlan(pin)
}

func (l *look) launchPlan(pin *Pin) *Plan {
	return &Plan{Verb: VerbLaunch, Pin: pin, Reason: v1alpha1.ReasonRunning,
		Message: runningMessage(pin.Name), RequeueAfter: until(l.Now, l.Now.Add(l.Run.Timeout()+endSlack))}
}

// wait waits for r to be mended, at most until the run's startDeadline.
func (l *look) wait(r contract.Reason, why string) *Plan {
	if l.Now.Before(l.startBy()) {
		return &Plan{Verb: VerbWait, Reason: string(r), Message: why, RequeueAfter: until(l.Now, l.startBy())}
	}
	return settle(l.waited(string(r), why))
}

// waitFor waits for the verdict of a recipe. One that is Ready with other texts than
// its ConfigMaps have now is looked at again: where they are what they were before
// anybody judges them, no event tells of it.
func (l *look) waitFor(r *v1alpha1.Recipe, why string) *Plan {
	p := l.wait(contract.ReasonRecipeNotReady, why)
	if p.Verb == VerbWait && why == l.unlike[r.Name] {
		p.RequeueAfter = min(p.RequeueAfter, textsAgain)
	}
	return p
}

// waited ends a wait that was in vain.
func (l *look) waited(r, why string) *Outcome {
	return failed(contract.Reason(r), "%s (waited %s, spec.startDeadline)", why, l.Run.StartDeadline())
}

func settle(o *Outcome) *Plan { return &Plan{Verb: VerbSettle, Outcome: o} }

// refuse settles the run with an error that waiting cannot mend; nil for no error.
func refuse(err error) *Plan {
	if err == nil {
		return nil
	}
	if f, ok := contract.AsFault(err); ok {
		return settle(faulted(f))
	}
	return settle(failed(contract.ReasonInvalidInput, "%v", err))
}

// asked are the tools that the program names, or the agent.
func (l *look) asked() []string {
	switch {
	case l.Run.Spec.Code != nil:
		return l.Run.Spec.Code.Tools
	case l.Run.Spec.Agent != nil:
		return l.Run.Spec.Agent.Tools
	case l.Recipe != nil:
		return l.Recipe.Spec.Tools
	}
	return nil
}

func (l *look) projection() contract.Projection {
	return contract.Eligible(l.subject(), l.op.Eligibility(), v1alpha1.ContractGrants(l.Grants), l.asked())
}

// subject is the run as the rules of eligibility see it.
func (l *look) subject() contract.Subject {
	s := contract.Subject{
		Namespace: l.Run.Namespace, NamespaceLabels: l.NamespaceLabels, Labels: l.Run.Labels,
		RecipeTools: v1alpha1.RecipeTools(l.Run.Namespace, l.Recipes), Now: l.Now,
	}
	if l.Recipe != nil {
		s.Recipe = l.Recipe.Name
	}
	return s
}

func (l *look) limits() contract.Limits {
	var of *contract.Limits
	if l.Recipe != nil {
		of = l.Recipe.Spec.Limits
	}
	return l.op.Limits(of, l.Run.Spec.Limits)
}
