package agentrun

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/api/v1alpha1"
)

// Pin is the bundle of one execution generation with its bytes and digest.
type Pin struct {
	// Name is the ConfigMap's, and the pod's.
	Name   string
	Bundle contract.Bundle
	// Raw are the canonical bytes of Bundle, Digest is their digest.
	Raw    []byte
	Digest string
	// ExecutionDigest is the digest of the spec that it was made for.
	ExecutionDigest string
}

// newPin gathers all that the run may see.
func newPin(l *look) (*Pin, error) {
	b := contract.Bundle{
		Run:       runRef(l.Run, l.generation),
		Input:     l.Run.Input(),
		Limits:    l.limits(),
		TimeoutMs: l.Run.Timeout().Milliseconds(),
		Tools:     []contract.PinnedTool{},
		Operator:  l.op.Egress,
		CodeAct:   l.codeAct().Switch,
		Recipes:   l.recipes().Switch,
	}
	// Nobody's run fails for a trace: what is no traceparent is left out.
	if parent := l.Run.Annotations[v1alpha1.AnnotationTraceParent]; contract.ValidTraceParent(parent) {
		b.TraceParent = parent
	}
	if l.Run.Spec.Transcript == contract.TranscriptNone {
		b.Transcript = contract.TranscriptNone // Full is what an absent one means
	}
	switch {
	case l.Run.Spec.Code != nil:
		b.Source = l.Run.Spec.Code.Source
	case l.Recipe != nil:
		d, err := l.Recipe.ManifestDigest()
		if err != nil {
			return nil, err
		}
		b.Source, b.InputSchema, b.OutputSchema = l.Recipe.Spec.Source, l.Recipe.InputSchema(), l.Recipe.OutputSchema()
		b.Recipe = &contract.PinnedRecipe{
			Name: l.Recipe.Name, UID: string(l.Recipe.UID), Generation: l.Recipe.Generation,
			ToolName: l.Recipe.EffectiveToolName(), ManifestDigest: d,
		}
	}
	if l.Run.Spec.Agent != nil {
		var err error
		if b.Agent, err = l.agent(); err != nil {
			return nil, err
		}
	}
	b.SourceDigest = contract.Digest([]byte(b.Source))
	tools, _ := l.tools()
	for _, g := range tools {
		t, err := pinnedTool(l.Run.Namespace, g.Grant)
		if err != nil {
			return nil, err
		}
		if l.native() {
			t.Direct, t.NotFromCode, t.Approval = g.direct, g.notFromCode, g.Authority.Approval
		}
		if t.Has(contract.CapabilityRunLabels) || len(t.Constraints)+len(t.ResultConstraints) > 0 {
			b.Labels = l.Run.Labels
		}
		b.Tools = append(b.Tools, t)
	}
	if err := l.catalogue(&b); err != nil {
		return nil, err
	}
	raw, digest, err := b.Encode()
	if err != nil {
		return nil, err
	}
	return &Pin{Name: Name(l.Run, l.generation), Bundle: b, Raw: raw, Digest: digest, ExecutionDigest: l.digest}, nil
}

func runRef(run *v1alpha1.AgentRun, generation int64) contract.RunRef {
	return contract.RunRef{Namespace: run.Namespace, Name: run.Name, UID: string(run.UID), Generation: generation}
}

// pinnedTool pins a grant for a run of the namespace.
func pinnedTool(namespace string, g contract.Grant) (contract.PinnedTool, error) {
	d, err := g.Tool.Digest()
	if err != nil {
		return contract.PinnedTool{}, err
	}
	a := g.Authority
	t := contract.PinnedTool{
		Tool: g.Tool, Digest: d, Backend: g.Backend, Auth: g.Auth,
		Grant:    grantRef(namespace, g),
		MaxCalls: a.MaxCallsPerRun, TimeoutMs: a.Timeout.Milliseconds(),
		Retry: a.Retry, Constraints: a.Constraints, ResultConstraints: a.ResultConstraints,
	}
	return t, nil
}

// grantRef names a grant to a run of the namespace.
func grantRef(namespace string, g contract.Grant) contract.GrantRef {
	ref := contract.GrantRef{Name: g.Name, UID: g.UID, Generation: g.Generation}
	if g.Namespace != namespace {
		ref.Namespace = g.Namespace
	}
	return ref
}

// ConfigMap returns the immutable ConfigMap that holds the pin.
func (p *Pin) ConfigMap(run *v1alpha1.AgentRun) *corev1.ConfigMap {
	yes := true
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: run.Namespace, Name: p.Name,
			Labels:          labelsOf(run, p.Bundle.Run.Generation),
			Annotations:     p.annotations(),
			OwnerReferences: ownedBy(run),
		},
		Immutable: &yes,
		Data:      map[string]string{contract.BundleKey: string(p.Raw)},
	}
}

func (p *Pin) annotations() map[string]string {
	return map[string]string{
		v1alpha1.AnnotationBundleDigest:    p.Digest,
		v1alpha1.AnnotationExecutionDigest: p.ExecutionDigest,
	}
}

// Status says in the run's status what is pinned.
func (p *Pin) Status() *v1alpha1.PinnedStatus {
	st := &v1alpha1.PinnedStatus{
		ConfigMap: p.Name, Digest: p.Digest, Model: modelStatus(p.Bundle.Agent), CodeAct: &p.Bundle.CodeAct, Recipes: &p.Bundle.Recipes,
	}
	if r := p.Bundle.Recipe; r != nil {
		st.Recipe = &v1alpha1.PinnedRecipeStatus{Name: r.Name, UID: r.UID, Generation: r.Generation, ManifestDigest: r.ManifestDigest}
	}
	for _, t := range p.Bundle.Tools {
		st.Tools = append(st.Tools, t.Tool.Name)
	}
	return st
}

// ReadPin reads the ConfigMap of one execution generation, which must hold
// exactly the bundle with the wanted digest. The error says what is wrong with it.
func ReadPin(run *v1alpha1.AgentRun, generation int64, cm *corev1.ConfigMap, want string) (*Pin, error) {
	name := Name(run, generation)
	if cm == nil {
		return nil, fmt.Errorf("the pinned ConfigMap %s is gone, and a generation is never pinned twice", name)
	}
	raw := []byte(cm.Data[contract.BundleKey])
	b, err := contract.DecodeBundle(raw, want)
	if err != nil || b.Run != runRef(run, generation) {
		return nil, fmt.Errorf("ConfigMap %s does not hold the bundle that was pinned (%s)", name, want)
	}
	return &Pin{
		Name: cm.Name, Bundle: b, Raw: raw, Digest: want,
		ExecutionDigest: cm.Annotations[v1alpha1.AnnotationExecutionDigest],
	}, nil
}

// Held reports whether the ConfigMap is this pin, already made: the same bytes,
// immutable and owned by the run.
func (p *Pin) Held(run *v1alpha1.AgentRun, cm *corev1.ConfigMap) bool {
	return metav1.IsControlledBy(cm, run) && cm.Immutable != nil && *cm.Immutable &&
		contract.Digest([]byte(cm.Data[contract.BundleKey])) == p.Digest
}
