package contract

import (
	"cmp"
	"fmt"
	"math"
	"time"
	"unicode/utf8"
)

// Limits bounds one execution. Every size is in UTF-8 bytes of the serialised
// text and every limit is inclusive. Zero means "not set" in a Limits that was
// read from an object, except for ChildCalls, where 0 is a legal bound and nil
// means "not set".
// +kubebuilder:object:generate=true
type Limits struct {
	// sourceBytes bounds the program text, in bytes.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=262144
	SourceBytes int64 `json:"sourceBytes,omitempty"`
	// inputBytes bounds the JSON text of the input, in bytes.
	// +optional
	// +kubebuilder:validation:Minimum=2
	// +kubebuilder:validation:Maximum=262144
	InputBytes int64 `json:"inputBytes,omitempty"`
	// outputBytes bounds the JSON text of the result, and of every child
	// call's result, in bytes.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=262144
	OutputBytes int64 `json:"outputBytes,omitempty"`
	// heapBytes bounds the memory of the JavaScript heap, in bytes.
	// +optional
	// +kubebuilder:validation:Minimum=1048576
	// +kubebuilder:validation:Maximum=268435456
	HeapBytes int64 `json:"heapBytes,omitempty"`
	// stackBytes bounds the native stack of the interpreter, in bytes.
	// +optional
	// +kubebuilder:validation:Minimum=65536
	// +kubebuilder:validation:Maximum=1048576
	StackBytes int64 `json:"stackBytes,omitempty"`
	// wallClockMs bounds the time of one execution, child calls included, in
	// milliseconds.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=3600000
	WallClockMs int64 `json:"wallClockMs,omitempty"`
	// fuel bounds the work of one execution in units that no machine's speed
	// changes: one for every loop head and function entry of the interpreter,
	// about 10 ns each. Without it the wall clock is the only bound of work.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000000000
	Fuel int64 `json:"fuel,omitempty"`
	// childCalls bounds how many tool calls one run may make; 0 forbids them.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=256
	ChildCalls *int64 `json:"childCalls,omitempty"`
}

// Fixed bounds of the product. They are not configurable.
const (
	// MaxBundleBytes is the size of the canonical bundle that still fits a ConfigMap.
	MaxBundleBytes = 1_000_000
	// MaxSchemaBytes bounds one JSON Schema.
	MaxSchemaBytes = 256 << 10
	// MaxArgumentBytes bounds the JSON text of one child call's arguments.
	MaxArgumentBytes = 1 << 20
	// MaxManifestBytes bounds the manifest of a recipe, without its program, its tests
	// and what it takes from elsewhere.
	MaxManifestBytes = 64 << 10
	// MaxDescriptionBytes bounds the description of a tool or recipe.
	MaxDescriptionBytes = 8 << 10
	// MaxRecipeTools bounds the tools that a recipe or a run may name.
	MaxRecipeTools = 64
	// EvidenceFloorBytes is the smallest output limit under which a child call
	// is still admitted: below it a terminal failure could not be reported.
	EvidenceFloorBytes = 128
)

// DefaultTimeout bounds a whole run when its spec does not say.
const DefaultTimeout = 10 * time.Minute

// DefaultStartDeadline bounds how long a run waits for its recipe and grants.
const DefaultStartDeadline = 60 * time.Second

// DefaultLimits returns the limits of a program that asks for none. They are
// the operator's ceilings, too, unless its flags say otherwise. Fuel is not
// bounded.
func DefaultLimits() Limits {
	calls := int64(64)
	return Limits{
		SourceBytes: 65536, InputBytes: 65536, OutputBytes: 262144,
		HeapBytes: 32 << 20, StackBytes: 512 << 10, WallClockMs: 30000, ChildCalls: &calls,
	}
}

// Ceilings returns the highest limits that an operator may allow. They are the
// maxima of the CRDs; what a run may really use is the operator's to say.
func Ceilings() Limits {
	calls := int64(256)
	return Limits{
		SourceBytes: 256 << 10, InputBytes: 256 << 10, OutputBytes: 256 << 10,
		HeapBytes: 256 << 20, StackBytes: 1 << 20, WallClockMs: 3_600_000, Fuel: 1_000_000_000_000, ChildCalls: &calls,
	}
}

// WallClock returns WallClockMs as a duration.
func (l Limits) WallClock() time.Duration { return time.Duration(l.WallClockMs) * time.Millisecond }

// Calls returns ChildCalls, or 0 when it is not set.
func (l Limits) Calls() int64 {
	if l.ChildCalls == nil {
		return 0
	}
	return *l.ChildCalls
}

// Lower returns l with every limit that o sets and that is lower.
func (l Limits) Lower(o Limits) Limits {
	low := func(a *int64, b int64) {
		if b > 0 && (*a == 0 || b < *a) {
			*a = b
		}
	}
	low(&l.SourceBytes, o.SourceBytes)
	low(&l.InputBytes, o.InputBytes)
	low(&l.OutputBytes, o.OutputBytes)
	low(&l.HeapBytes, o.HeapBytes)
	low(&l.StackBytes, o.StackBytes)
	low(&l.WallClockMs, o.WallClockMs)
	low(&l.Fuel, o.Fuel)
	if o.ChildCalls != nil && (l.ChildCalls == nil || *o.ChildCalls < *l.ChildCalls) {
		n := *o.ChildCalls
		l.ChildCalls = &n
	}
	return l
}

// CheckWithin reports the first limit of l that is above the ceiling c, as a
// LimitsTooHigh fault, or nil.
func (l Limits) CheckWithin(c Limits) *Fault {
	for _, p := range []struct {
		name      string
		got, most int64
	}{
		{"sourceBytes", l.SourceBytes, c.SourceBytes}, {"inputBytes", l.InputBytes, c.InputBytes},
		{"outputBytes", l.OutputBytes, c.OutputBytes}, {"heapBytes", l.HeapBytes, c.HeapBytes},
		{"stackBytes", l.StackBytes, c.StackBytes}, {"wallClockMs", l.WallClockMs, c.WallClockMs},
		{"childCalls", l.Calls(), c.Calls()},
		{"fuel", l.Fuel, cmp.Or(c.Fuel, math.MaxInt64)},
	} {
		if p.got > p.most {
			return Faultf(ReasonLimitsTooHigh, "limits.%s is %d, more than the operator's %d; lower it", p.name, p.got, p.most)
		}
	}
	return nil
}

// Set changes one limit by its JSON name; it serves command lines and may raise
// a limit. The error names the limits that exist.
func (l *Limits) Set(name string, v int64) error {
	if v < 0 || v == 0 && name != "childCalls" {
		return fmt.Errorf("limit %s: %d is too low", name, v)
	}
	switch name {
	case "sourceBytes":
		l.SourceBytes = v
	case "inputBytes":
		l.InputBytes = v
	case "outputBytes":
		l.OutputBytes = v
	case "heapBytes":
		l.HeapBytes = v
	case "stackBytes":
		l.StackBytes = v
	case "wallClockMs":
		l.WallClockMs = v
	case "fuel":
		l.Fuel = v
	case "childCalls":
		l.ChildCalls = &v
	default:
		return fmt.Errorf("unknown limit %q: want sourceBytes, inputBytes, outputBytes, heapBytes, stackBytes, wallClockMs, fuel or childCalls", name)
	}
	return nil
}

// Truncate cuts s to at most n bytes without splitting a UTF-8 sequence.
func Truncate(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
