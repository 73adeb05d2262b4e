package agentrun_test

import (
	"testing"

	"github.com/codeact-dev/codeact-operator/api/v1alpha1"
	"github.com/codeact-dev/codeact-operator/controllers/agentrun"
	"github.com/codeact-dev/codeact-operator/controllers/settings"
	"github.com/codeact-dev/codeact-operator/test/builders"
)

// TestTraceParent: the annotation goes into the pin and is no part of the spec.
func TestTraceParent(t *testing.T) {
	const good = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	plain := agentrun.Decide(settings.Default(), agentrun.Snapshot{Now: now, Run: builders.MakeRun("r").Code(echo).Obj()})
	tests := map[string]struct{ annotation, want string }{
		"valid":   {good, good},
		"invalid": {good + "x", ""},
		"empty":   {"", ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			run := builders.MakeRun("r").Code(echo).Obj()
			run.Annotations = map[string]string{v1alpha1.AnnotationTraceParent: tc.annotation}
			p := agentrun.Decide(settings.Default(), agentrun.Snapshot{Now: now, Run: run})
			if p.Verb != agentrun.VerbLaunch || p.Pin.Bundle.TraceParent != tc.want {
				t.Fatalf("verb %s, parent %q, want %q", p.Verb, p.Pin.Bundle.TraceParent, tc.want)
			}
			if p.Pin.ExecutionDigest != plain.Pin.ExecutionDigest {
				t.Error("the annotation changes what the spec asks for")
			}
			if same := p.Pin.Digest == plain.Pin.Digest; same != (tc.want == "") {
				t.Errorf("the bundle is the same: %v", same)
			}
		})
	}
}

// TestTraceParentIsReadOnce: a later change of the annotation makes no new execution.
func TestTraceParentIsReadOnce(t *testing.T) {
	op := settings.Default()
	s := agentrun.Snapshot{Now: now, Run: builders.MakeRun("r").Code(echo).Obj()}
	s.Run.Status = agentrun.Settle(op, s, agentrun.Decide(op, s), agentrun.Done{Pinned: true, Launched: true})
	s.Run.Annotations = map[string]string{v1alpha1.AnnotationTraceParent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}
	after := agentrun.Settle(op, s, agentrun.Decide(op, s), agentrun.Done{})
	if after.ExecutionGeneration != s.Run.Status.ExecutionGeneration || after.Pinned.Digest != s.Run.Status.Pinned.Digest {
		t.Errorf("the status has become %+v", after)
	}
}
