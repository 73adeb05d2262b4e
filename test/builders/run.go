// Package builders makes objects for tests: each call sets one thing, and Obj
// returns the object.
package builders

import (
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/api/v1alpha1"
)

// Namespace is where objects are when nothing else is said.
const Namespace = "team-a"

// Run makes an AgentRun.
type Run struct{ o v1alpha1.AgentRun }

// MakeRun makes a run with a UID of its own and generation 1.
func MakeRun(name string) *Run {
	return &Run{v1alpha1.AgentRun{ObjectMeta: metav1.ObjectMeta{
		Namespace: Namespace, Name: name, UID: types.UID("uid-of-" + name), Generation: 1,
	}}}
}

// Obj returns a copy of the object.
func (b *Run) Obj() *v1alpha1.AgentRun { return b.o.DeepCopy() }

// In puts it into a namespace.
func (b *Run) In(namespace string) *Run { b.o.Namespace = namespace; return b }

// UID sets its UID; empty leaves it to the API server.
func (b *Run) UID(uid string) *Run { b.o.UID = types.UID(uid); return b }

// Label sets one label.
func (b *Run) Label(k, v string) *Run {
	if b.o.Labels == nil {
		b.o.Labels = map[string]string{}
	}
	b.o.Labels[k] = v
	return b
}

// Recipe has it run a Recipe.
func (b *Run) Recipe(name string) *Run {
	b.o.Spec.Recipe = &v1alpha1.RecipeReference{Name: name}
	return b
}

// Code has it run a program of its own.
func (b *Run) Code(source string, tools ...string) *Run {
	b.o.Spec.Code = &v1alpha1.CodeSpec{Source: source, Tools: tools}
	return b
}

// Agent has a model write its programs.
func (b *Run) Agent(model, prompt string, tools ...string) *Run {
	b.o.Spec.Agent = &v1alpha1.AgentSpec{Model: model, Prompt: prompt, Tools: tools}
	return b
}

// AgentWith changes its agent.
func (b *Run) AgentWith(edit func(*v1alpha1.AgentSpec)) *Run { edit(b.o.Spec.Agent); return b }

// Input sets the JSON text of the input.
func (b *Run) Input(json string) *Run {
	b.o.Spec.Input = &apiextensionsv1.JSON{Raw: []byte(json)}
	return b
}

// Limits sets its limits.
func (b *Run) Limits(l contract.Limits) *Run { b.o.Spec.Limits = &l; return b }

// Timeout bounds the run.
func (b *Run) Timeout(d time.Duration) *Run {
	b.o.Spec.Timeout = &metav1.Duration{Duration: d}
	return b
}

// StartDeadline bounds its wait.
func (b *Run) StartDeadline(d time.Duration) *Run {
	b.o.Spec.StartDeadline = &metav1.Duration{Duration: d}
	return b
}

// TTL has it deleted after its end.
func (b *Run) TTL(d time.Duration) *Run {
	b.o.Spec.TTLAfterFinished = &metav1.Duration{Duration: d}
	return b
}

// Cancel asks for its end.
func (b *Run) Cancel() *Run { b.o.Spec.Cancel = true; return b }

// Pod sets its pod options.
func (b *Run) Pod(p v1alpha1.PodOptions) *Run { b.o.Spec.Pod = &p; return b }

// Resources sets the resources of its pod.
func (b *Run) Resources(r v1alpha1.PodResources) *Run {
	if b.o.Spec.Pod == nil {
		b.o.Spec.Pod = &v1alpha1.PodOptions{}
	}
	b.o.Spec.Pod.Resources = &r
	return b
}

// Status sets its status.
func (b *Run) Status(s v1alpha1.AgentRunStatus) *Run { b.o.Status = s; return b }
