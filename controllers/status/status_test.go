package status_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/api/v1alpha1"
	"github.com/codeact-dev/codeact-operator/controllers/status"
	"github.com/codeact-dev/codeact-operator/test/builders"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func TestConditions(t *testing.T) {
	var list []metav1.Condition
	status.On(&list, 1, now).Set("A", metav1.ConditionTrue, "X", strings.Repeat("é", contract.MaxMessageBytes))
	if len(list[0].Message) > contract.MaxMessageBytes {
		t.Errorf("the message has %d bytes", len(list[0].Message))
	}
	status.On(&list, 2, now.Add(time.Hour)).Set("A", metav1.ConditionTrue, "Y", "")
	if c := list[0]; c.Reason != "Y" || c.ObservedGeneration != 2 || !c.LastTransitionTime.Time.Equal(now) {
		t.Errorf("without a transition: %+v", c)
	}
	status.On(&list, 2, now.Add(time.Hour)).Set("A", metav1.ConditionFalse, "Z", "")
	if c := list[0]; !c.LastTransitionTime.Time.Equal(now.Add(time.Hour)) {
		t.Errorf("with one: %+v", c)
	}
	status.On(&list, 3, now).Observed()
	if list[0].ObservedGeneration != 3 || list[0].Reason != "Z" {
		t.Errorf("observed: %+v", list[0])
	}
}

func TestCheckKstatus(t *testing.T) {
	tests := map[string]struct {
		write    func(status.Conditions)
		observed int64
		wantErr  string
	}{
		"done": {write: func(c status.Conditions) {
			c.Working("W", "")
			c.Set(v1alpha1.ConditionReady, metav1.ConditionTrue, "R", "")
			c.Done()
		}},
		"working": {write: func(c status.Conditions) {
			c.Stuck("S", "")
			c.Set(v1alpha1.ConditionReady, metav1.ConditionFalse, "R", "")
			c.Working("W", "")
		}},
		"stuck": {write: func(c status.Conditions) {
			c.Working("W", "")
			c.Set(v1alpha1.ConditionReady, metav1.ConditionFalse, "R", "")
			c.Stuck("S", "")
		}},
		"no outcome": {write: func(c status.Conditions) { c.Working("W", "") }, wantErr: "no condition Ready"},
		"both": {write: func(c status.Conditions) {
			c.Working("W", "")
			c.Set(v1alpha1.ConditionStalled, metav1.ConditionTrue, "S", "")
		}, wantErr: "both"},
		"False alone": {write: func(c status.Conditions) { c.Set(v1alpha1.ConditionReady, metav1.ConditionFalse, "R", "") }, wantErr: "without"},
		"Unknown and stuck": {write: func(c status.Conditions) {
			c.Set(v1alpha1.ConditionReady, metav1.ConditionUnknown, "R", "")
			c.Stuck("S", "")
		}, wantErr: "without Reconciling"},
		"True and working": {write: func(c status.Conditions) {
			c.Set(v1alpha1.ConditionReady, metav1.ConditionTrue, "R", "")
			c.Working("W", "")
		}, wantErr: "beside"},
		"kept while False": {write: func(c status.Conditions) {
			c.Set(v1alpha1.ConditionReady, metav1.ConditionTrue, "R", "")
			c.Set(v1alpha1.ConditionStalled, metav1.ConditionFalse, "S", "")
		}, wantErr: "only present while"},
		"an old look": {write: func(c status.Conditions) {}, observed: 6, wantErr: "observedGeneration"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var list []metav1.Condition
			tc.write(status.On(&list, 7, now))
			observed := int64(7)
			if tc.observed != 0 {
				observed = tc.observed
			}
			err := status.CheckKstatus(7, observed, list, v1alpha1.ConditionReady)
			if (err != nil) != (tc.wantErr != "") {
				t.Fatalf("error %v, want %q", err, tc.wantErr)
			}
			if err != nil && !strings.Contains(err.Error(), tc.wantErr) {
				t.Errorf("error %q, want %q in it", err, tc.wantErr)
			}
		})
	}
}

func TestLocate(t *testing.T) {
	for _, tc := range []struct {
		line, column int
		want         string
	}{{0, 0, "x"}, {0, 5, "x"}, {3, 0, "main.js:3: x"}, {3, 7, "main.js:3:7: x"}} {
		if got := status.Locate(tc.line, tc.column, "x"); got != tc.want {
			t.Errorf("%d:%d: %q", tc.line, tc.column, got)
		}
	}
}

func TestReadyChanged(t *testing.T) {
	p := status.ReadyChanged()
	plain, ready := builders.MakeGrant("g", "x").Obj(), builders.MakeGrant("g", "x").Ready("", "").Obj()
	refused, older := builders.MakeGrant("g", "x").Ready("Expired", "").Obj(), builders.MakeGrant("g", "x").Ready("", "").Obj()
	older.Status.Conditions[0].ObservedGeneration = 0
	for name, tc := range map[string]struct {
		old, now *v1alpha1.ToolGrant
		want     bool
	}{
		"first verdict": {plain, ready, true}, "another verdict": {ready, refused, true}, "a new generation": {older, ready, true},
		"the same": {ready, ready, false}, "none": {plain, plain, false},
	} {
		if got := p.Update(event.UpdateEvent{ObjectOld: tc.old, ObjectNew: tc.now}); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
