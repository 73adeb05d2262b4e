package contract

import (
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLower(t *testing.T) {
	base := Limits{SourceBytes: 10, InputBytes: 10, OutputBytes: 10, HeapBytes: 10, StackBytes: 10, WallClockMs: 10, Fuel: 10, ChildCalls: new(int64(10))}
	tests := map[string]struct {
		by   Limits
		want func(*Limits)
	}{
		"nothing":         {},
		"one":             {by: Limits{HeapBytes: 5}, want: func(l *Limits) { l.HeapBytes = 5 }},
		"never higher":    {by: Limits{HeapBytes: 11, WallClockMs: 99, ChildCalls: new(int64(11))}},
		"no calls at all": {by: Limits{ChildCalls: new(int64(0))}, want: func(l *Limits) { l.ChildCalls = new(int64(0)) }},
		"zero is not set": {by: Limits{SourceBytes: 0}},
		"all":             {by: Limits{1, 2, 3, 4, 5, 6, 7, new(int64(8))}, want: func(l *Limits) { *l = Limits{1, 2, 3, 4, 5, 6, 7, new(int64(8))} }},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			want := base
			if tc.want != nil {
				tc.want(&want)
			}
			if d := cmp.Diff(want, base.Lower(tc.by)); d != "" {
				t.Error(d)
			}
			if *base.ChildCalls != 10 {
				t.Fatal("the base has changed")
			}
		})
	}
}

func TestCheckWithin(t *testing.T) {
	if f := DefaultLimits().CheckWithin(Ceilings()); f != nil {
		t.Errorf("the defaults are above the ceilings: %v", f)
	}
	if f := (Limits{}).CheckWithin(DefaultLimits()); f != nil {
		t.Errorf("nothing is too high: %v", f)
	}
	for _, name := range limitNames(t) {
		l := Ceilings()
		if f := l.CheckWithin(Ceilings()); f != nil {
			t.Fatalf("a limit is inclusive: %v", f)
		}
		if err := l.Set(name, 1<<40); err != nil {
			t.Fatal(err)
		}
		f := l.CheckWithin(Ceilings())
		if f == nil || f.Reason != ReasonLimitsTooHigh || !strings.Contains(f.Message, "limits."+name) {
			t.Errorf("%s: %v", name, f)
		}
	}
}

func TestSet(t *testing.T) {
	var l Limits
	for i, name := range limitNames(t) {
		if err := l.Set(name, int64(i+1)); err != nil {
			t.Error(err)
		}
	}
	if d := cmp.Diff(Limits{1, 2, 3, 4, 5, 6, 7, new(int64(8))}, l); d != "" {
		t.Error(d)
	}
	if err := l.Set("heap", 1); err == nil || !strings.Contains(err.Error(), "heapBytes") {
		t.Errorf("an unknown name: %v", err)
	}
	if err := l.Set("heapBytes", -1); err == nil {
		t.Error("a negative limit passes")
	}
}

// limitNames are the JSON names of all limits, from the type itself.
func limitNames(t *testing.T) []string {
	t.Helper()
	var out []string
	for f := range reflect.TypeFor[Limits]().Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		out = append(out, name)
	}
	return out
}

func TestTruncate(t *testing.T) {
	tests := map[string]struct {
		s    string
		n    int
		want string
	}{
		"fits":              {"abc", 3, "abc"},
		"cut":               {"abcd", 3, "abc"},
		"not inside a rune": {"aé", 2, "a"},
		"after a rune":      {"aéb", 3, "aé"},
		"nothing":           {"é", 0, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := Truncate(tc.s, tc.n); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
