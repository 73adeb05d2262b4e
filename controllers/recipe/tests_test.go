package recipe_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/api/v1alpha1"
	"github.com/codeact-dev/codeact-operator/controllers/recipe"
	"github.com/codeact-dev/codeact-operator/controllers/settings"
	"github.com/codeact-dev/codeact-operator/controllers/status"
	"github.com/codeact-dev/codeact-operator/test/builders"
	"github.com/codeact-dev/codeact-operator/test/golden"
)

func fixtures(names ...string) (out []contract.Fixture) {
	for _, n := range names {
		out = append(out, contract.Fixture{Name: n, Input: []byte(`{"q":"x"}`), Expect: contract.FixtureEnd{Output: []byte(`null`)},
			Calls: []contract.FixtureCall{{Tool: "search", Args: []byte(`{"q":"x"}`)}}})
	}
	return out
}

// world is one recipe with its check pods, looked at again and again.
type world struct {
	t    *testing.T
	op   settings.Operator
	snap recipe.Snapshot
	// launched counts the pods, lose drops status writes.
	launched int
	plan     recipe.Plan
}

func newWorld(t *testing.T, b *builders.Recipe, grants ...*builders.Grant) *world {
	w := &world{t: t, op: settings.Default(), snap: recipe.Snapshot{Now: now, Recipe: b.Obj()}}
	w.op.Runtime.Image = "registry.example/codeact:v0"
	for _, g := range grants {
		w.snap.Grants = append(w.snap.Grants, *g.Obj())
	}
	return w
}

// look decides, does what is planned, and writes the status unless it is lost.
func (w *world) look(lose bool) metav1.Condition {
	w.t.Helper()
	p := recipe.Decide(w.op, w.snap)
	w.plan = p
	for _, gone := range p.Tests.Remove {
		w.snap.Pods = slices.DeleteFunc(w.snap.Pods, func(x corev1.Pod) bool { return x.Name == gone.Name })
	}
	if c := p.Tests.Launch; c != nil {
		pod := recipe.NewCheckPod(w.op.Runtime, w.snap.Recipe, c, p.Tests.Record.Attempts)
		if !slices.ContainsFunc(w.snap.Pods, func(x corev1.Pod) bool { return x.Name == pod.Name }) {
			pod.UID, pod.CreationTimestamp, pod.Status.Phase = types.UID("uid-of-"+pod.Name), metav1.NewTime(w.snap.Now), corev1.PodRunning
			w.snap.Pods = append(w.snap.Pods, *pod)
			w.launched++
		}
	}
	after := w.snap.Recipe.DeepCopy()
	after.Status = recipe.Settle(w.snap, p)
	if err := status.CheckKstatus(after.Generation, after.Status.ObservedGeneration, after.Status.Conditions, v1alpha1.ConditionReady); err != nil {
		w.t.Error(err)
	}
	if !lose {
		w.snap.Recipe = after
	}
	for _, c := range after.Status.Conditions {
		if c.Type == v1alpha1.ConditionTestsPassed {
			return c
		}
	}
	w.t.Fatal("no condition TestsPassed")
	return metav1.Condition{}
}

// expect looks, and holds what TestsPassed says.
func (w *world) expect(s metav1.ConditionStatus, reason, message string) {
	w.t.Helper()
	if c := w.look(false); c.Status != s || c.Reason != reason || !strings.Contains(c.Message, message) {
		w.t.Errorf("TestsPassed is %s %s (%s), want %s %s (%s)", c.Status, c.Reason, c.Message, s, reason, message)
	}
}

func (w *world) ready(want string) {
	w.t.Helper()
	for _, c := range w.snap.Recipe.Status.Conditions {
		if c.Type == v1alpha1.ConditionReady && c.Reason == want {
			return
		}
	}
	w.t.Errorf("Ready is not %s: %+v", want, w.snap.Recipe.Status.Conditions)
}

func (w *world) step(d time.Duration) { w.snap.Now = w.snap.Now.Add(d) }

// end has the last pod end, as a kubelet would tell.
func (w *world) end(code int32, message string) {
	p := &w.snap.Pods[len(w.snap.Pods)-1]
	p.Status.Phase = corev1.PodFailed
	if code == 0 {
		p.Status.Phase = corev1.PodSucceeded
	}
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: contract.RuntimeContainer,
		State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Completed", ExitCode: code, Message: message}}}}
}

// report has the last pod end with a report.
func (w *world) report(passed int, failed ...contract.FailedTest) {
	w.t.Helper()
	p := w.snap.Pods[len(w.snap.Pods)-1]
	m, err := contract.CheckReport{Check: p.Annotations[v1alpha1.AnnotationCheckDigest], Passed: passed, Failed: failed}.TerminationMessage()
	if err != nil {
		w.t.Fatal(err)
	}
	w.end(0, string(m))
}

const (
	unknown = metav1.ConditionUnknown
	yes     = metav1.ConditionTrue
	no      = metav1.ConditionFalse
)

func TestTestsPass(t *testing.T) {
	w := newWorld(t, sweep().Tests(fixtures("a", "b")...), search())
	w.expect(unknown, v1alpha1.ReasonRunning, "runs 2 tests")
	w.ready(v1alpha1.ReasonRunning)
	w.expect(unknown, v1alpha1.ReasonRunning, "")
	w.report(2)
	w.expect(yes, v1alpha1.ReasonPassed, "all 2 tests passed")
	w.ready(v1alpha1.ReasonReady)
	if len(w.plan.Tests.Remove) != 0 || w.plan.Tests.RequeueAfter == 0 {
		t.Error("the pod is removed before the status has what it said")
	}
	w.expect(yes, v1alpha1.ReasonPassed, "")
	if len(w.snap.Pods) != 0 || w.launched != 1 {
		t.Errorf("%d pods are left of %d", len(w.snap.Pods), w.launched)
	}
	want := &v1alpha1.RecipeTests{Attempts: 1, Passed: 2, Results: []v1alpha1.RecipeTestResult{{Name: "a", Passed: true}, {Name: "b", Passed: true}}}
	got := w.snap.Recipe.Status.Tests
	want.ManifestDigest, want.LastAttemptTime = w.snap.Recipe.Status.ManifestDigest, got.LastAttemptTime
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}

	// Another digest is another matter, and the old record is none.
	w.snap.Recipe.Spec.Tests[1].Expect.Output = []byte(`1`)
	w.expect(unknown, v1alpha1.ReasonRunning, "")
	w.report(1, contract.FailedTest{Index: 1, Message: "the output differs"})
	w.expect(no, string(contract.ReasonTestsFailed), `1 of 2 tests failed: "b" (the output differs)`)
	w.ready(string(contract.ReasonTestsFailed))
	w.expect(no, string(contract.ReasonTestsFailed), "")
	if w.launched != 2 || w.snap.Recipe.Status.Tests.Failed != 1 {
		t.Errorf("%d pods, status %+v", w.launched, w.snap.Recipe.Status.Tests)
	}
}

// TestTestsDigests changes one thing at a time: whether the tests run again.
func TestTestsDigests(t *testing.T) {
	for name, tc := range map[string]struct {
		edit  func(*world)
		again bool
	}{
		"nothing":              {func(*world) {}, false},
		"the order of tests":   {func(w *world) { slices.Reverse(w.snap.Recipe.Spec.Tests) }, false},
		"labels":               {func(w *world) { w.snap.Recipe.Labels = map[string]string{"a": "b"} }, false},
		"a grant":              {func(w *world) { w.snap.Grants = nil }, false},
		"the operator's flags": {func(w *world) { w.op.Defaults.HeapBytes = 16 << 20 }, false},
		"the source":           {func(w *world) { w.snap.Recipe.Spec.Source += "\n" }, true},
		"a schema": {func(w *world) {
			w.snap.Recipe.Spec.OutputSchema = builders.MakeRecipe("x", "").OutputSchema("true").Obj().Spec.OutputSchema
		}, true},
		"the tools":  {func(w *world) { w.snap.Recipe.Spec.Tools = append(w.snap.Recipe.Spec.Tools, "more") }, true},
		"the limits": {func(w *world) { w.snap.Recipe.Spec.Limits = &contract.Limits{WallClockMs: 5} }, true},
		"a test":     {func(w *world) { w.snap.Recipe.Spec.Tests[0].Input = nil }, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, sweep().Tests(fixtures("a", "b")...), search())
			w.look(false)
			w.report(2)
			w.look(false)
			tc.edit(w)
			w.look(false)
			if again := w.launched == 2; again != tc.again {
				t.Errorf("run again: %v", again)
			}
		})
	}
}

// TestTestsLost loses pods, status writes, and both.
func TestTestsLost(t *testing.T) {
	w := newWorld(t, sweep().Tests(fixtures("a")...), search())
	w.look(true)
	w.look(true)
	w.expect(unknown, v1alpha1.ReasonRunning, "-1 runs")
	if w.launched != 1 {
		t.Fatalf("a lost status write launched %d pods", w.launched)
	}
	w.end(137, "")
	w.expect(unknown, v1alpha1.ReasonPending, "ended without a result (Completed, exit code 137); the tests run again")
	w.ready(v1alpha1.ReasonPending)
	w.look(false)
	if len(w.snap.Pods) != 0 || w.launched != 1 {
		t.Fatalf("%d pods are left, %d were launched", len(w.snap.Pods), w.launched)
	}
	w.step(10 * time.Second)
	w.expect(unknown, v1alpha1.ReasonRunning, "-2 runs")
	w.snap.Pods = nil
	w.expect(unknown, v1alpha1.ReasonPending, "-2 is gone")
	w.step(59 * time.Second)
	w.expect(unknown, v1alpha1.ReasonPending, "-2 is gone")
	w.step(time.Second)
	w.expect(unknown, v1alpha1.ReasonRunning, "-3 runs")
	w.end(0, `{"codeact":"check.v1"}`)
	w.expect(no, string(contract.ReasonWorkerLost), "3 check pods were lost")
	w.ready(string(contract.ReasonWorkerLost))
	w.step(time.Hour)
	w.expect(no, string(contract.ReasonWorkerLost), "exit code 0")
	if w.launched != 3 || len(w.snap.Pods) != 0 {
		t.Errorf("%d pods, %d left", w.launched, len(w.snap.Pods))
	}
}

func TestTestsPods(t *testing.T) {
	pod := func(w *world) *corev1.Pod { return &w.snap.Pods[len(w.snap.Pods)-1] }
	for name, tc := range map[string]struct {
		edit                    func(*world)
		wantReason, wantMessage string
	}{
		"a report of another check": {func(w *world) {
			w.report(1)
			w.end(0, strings.Replace(w.snap.Pods[0].Status.ContainerStatuses[0].State.Terminated.Message, "sha256:", "sha256:0", 1))
		}, v1alpha1.ReasonPending, "ended without a result"},
		"evicted": {func(w *world) {
			pod(w).Status = corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted", Message: "low on memory"}
		},
			v1alpha1.ReasonPending, "ended without a result (Evicted: low on memory)"},
		"killed for memory after its report": {func(w *world) { w.report(1); pod(w).Status.Phase = corev1.PodFailed }, v1alpha1.ReasonPassed, "all 1"},
		"being deleted":                      {func(w *world) { pod(w).DeletionTimestamp = &metav1.Time{Time: now} }, v1alpha1.ReasonPending, "is being deleted"},
		"a pod of somebody else": {func(w *world) { pod(w).Spec.ServiceAccountName = "default"; w.report(1) },
			v1alpha1.ReasonPending, "is gone"},
		"launched by another operator": {func(w *world) { w.op.Defaults.HeapBytes = 16 << 20; w.report(1) },
			v1alpha1.ReasonPending, "for other limits of the operator"},
		"cannot be scheduled": {func(w *world) {
			pod(w).Status = corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: "no nodes"}}}
		}, v1alpha1.ReasonPending, "cannot be scheduled: no nodes"},
		"does not start": {func(w *world) { pod(w).Status.Phase = corev1.PodPending; w.step(5 * time.Minute) },
			v1alpha1.ReasonPending, "has not started within 5m0s"},
		"does not end": {func(w *world) { w.step(5*time.Minute + 2*time.Minute) }, v1alpha1.ReasonPending, "does not end"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, sweep().Tests(fixtures("a")...), search())
			w.look(false)
			tc.edit(w)
			c := w.look(false)
			if c.Reason != tc.wantReason || !strings.Contains(c.Message, tc.wantMessage) {
				t.Errorf("TestsPassed is %s (%s), want %s (%s)", c.Reason, c.Message, tc.wantReason, tc.wantMessage)
			}
			if w.launched != 1 || w.plan.Tests.RequeueAfter <= 0 {
				t.Errorf("%d pods, next look after %s", w.launched, w.plan.Tests.RequeueAfter)
			}
		})
	}
}

func TestTestsWhen(t *testing.T) {
	skip := func(w *world) { w.op.RecipeTests.Run = false }
	many := fixtures("a", "b", "c", "d")
	for i := range many {
		many[i].Input = []byte(`"` + strings.Repeat("x", 80<<10) + `"`)
	}
	for name, tc := range map[string]struct {
		recipe                           *builders.Recipe
		edit                             func(*world)
		grants                           []*builders.Grant
		wantStatus                       metav1.ConditionStatus
		wantReason, wantMessage, wantEnd string
		wantLaunched                     int
	}{
		"no tests":              {recipe: sweep(), grants: []*builders.Grant{search()}, wantStatus: yes, wantReason: "NoTests", wantEnd: "Ready"},
		"skipped":               {recipe: sweep().Tests(fixtures("a")...), grants: []*builders.Grant{search()}, edit: skip, wantStatus: unknown, wantReason: "Skipped", wantMessage: "--recipe-tests=Skip", wantEnd: "Ready"},
		"without grants":        {recipe: sweep().Tests(fixtures("a")...), wantStatus: unknown, wantReason: "Running", wantEnd: "Running", wantLaunched: 1},
		"something else is bad": {recipe: builders.MakeRecipe("run_code", source, "search").Tests(fixtures("a")...), wantStatus: unknown, wantReason: "NotRun", wantEnd: "ReservedName"},
		"two of one name": {recipe: sweep().Tests(fixtures("a", "a")...), wantStatus: no, wantReason: "SchemaInvalid",
			wantMessage: `spec.tests: two tests have the name "a"`, wantEnd: "SchemaInvalid"},
		"one that contradicts itself": {recipe: sweep().Tests(contract.Fixture{Name: "odd", Expect: contract.FixtureEnd{Message: "x"}}),
			wantStatus: no, wantReason: "SchemaInvalid", wantMessage: `test "odd": expect has a message`, wantEnd: "SchemaInvalid"},
		"too many bytes": {recipe: sweep().Tests(many...), wantStatus: no, wantReason: "SchemaInvalid", wantMessage: "more than 262144", wantEnd: "SchemaInvalid"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tc.recipe, tc.grants...)
			if tc.edit != nil {
				tc.edit(w)
			}
			w.expect(tc.wantStatus, tc.wantReason, tc.wantMessage)
			w.ready(tc.wantEnd)
			if w.launched != tc.wantLaunched {
				t.Errorf("%d pods", w.launched)
			}
		})
	}
}

// TestTestsOrder holds that a recipe that waits for nothing but grants has passed its
// tests: runs take that reason for Ready.
func TestTestsOrder(t *testing.T) {
	w := newWorld(t, sweep().Tests(fixtures("a")...))
	w.look(false)
	w.ready(v1alpha1.ReasonRunning)
	w.report(0, contract.FailedTest{Index: 0, Message: "no"})
	w.look(false)
	w.ready(string(contract.ReasonTestsFailed))
	w.snap.Recipe.Spec.Tests[0].Input = nil
	w.look(false)
	w.report(1)
	w.look(false)
	w.ready(string(contract.ReasonToolsNotGranted))
	// The tests that were taken away leave nothing behind.
	w.snap.Recipe.Spec.Tests = nil
	w.expect(yes, v1alpha1.ReasonNoTests, "")
	if w.snap.Recipe.Status.Tests != nil || len(w.snap.Pods) != 0 {
		t.Errorf("status %+v, %d pods", w.snap.Recipe.Status.Tests, len(w.snap.Pods))
	}
}

// TestCheckGolden holds the whole pod and the whole ConfigMap.
func TestCheckGolden(t *testing.T) {
	w := newWorld(t, builders.MakeRecipe("look.up", source, "search").ToolName("look_up").Limits(contract.Limits{HeapBytes: 16 << 20, WallClockMs: 2000}).Tests(fixtures("a")...))
	w.op.Runtime.PullPolicy = corev1.PullIfNotPresent
	w.op.Egress.ProxyFromEnvironment, w.op.Runtime.Proxy.HTTPS, w.op.Runtime.TraceEndpoint = true, "http://proxy.example:3128", "http://collector:4318"
	c := recipe.Decide(w.op, w.snap).Tests.Launch
	pod := recipe.NewCheckPod(w.op.Runtime, w.snap.Recipe, c, 1)
	golden.CheckYAML(t, "check-pod.yaml", pod)
	pod.UID = "uid-of-pod"
	golden.CheckYAML(t, "check-configmap.yaml", c.ConfigMap(w.snap.Recipe, pod))
}

func TestCheckNames(t *testing.T) {
	seen := map[string]bool{}
	for _, name := range []string{"a", "a.b.c", strings.Repeat("x", 253), strings.Repeat("y-", 60)} {
		r := builders.MakeRecipe(name, source).Obj()
		for _, digest := range []string{"d", "e"} {
			for _, attempt := range []int64{1, 2} {
				got := recipe.CheckName(r, digest, attempt)
				if errs := validation.IsDNS1123Label(got); len(errs) > 0 || seen[got] {
					t.Errorf("%q: %v", got, errs)
				}
				seen[got] = true
			}
		}
	}
}
