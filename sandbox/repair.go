package sandbox

import (
	"bytes"
	"fmt"
)

// repair is one correction of the engine's compiled code: in the body of one
// function, a sequence of instructions that stands there exactly once.
type repair struct {
	function int // place in the code section
	old, new []byte
}

// repairs corrects faults of the pinned build that JavaScript alone cannot mend,
// because they are in an operator or in the memory management. RATIONALE.md,
// "Faults of the pinned engine", tells what each did.
var repairs = []repair{
	{
		// js_bigint_float64_cmp: of two negative numbers the one with the larger
		// exponent is the smaller one. f < e becomes (f < e) != negative.
		function: 622,
		old:      []byte{opI32Const, 0x7f, opI32Const, 1, opLocalGet, 0, opLocalGet, 2, opI32LtS, opSelect},
		new:      []byte{opI32Const, 0x7f, opI32Const, 1, opLocalGet, 0, opLocalGet, 2, opI32LtS, opLocalGet, 5, opI32Xor, opSelect},
	},
	{
		// js_generator_mark: what a suspended generator holds is never taken for
		// garbage, because closures point into its frame without the collector
		// knowing. `if s == 0 return` becomes `return`. The generator's own end
		// still frees what it holds.
		function: 583,
		old:      []byte{opLocalTee, 3, opI32Eqz, opBrIf, 0, opLocalGet, 3, opI32Load, 2, 0, opI32Const, 4},
		new:      []byte{opLocalTee, 3, opDrop, opI32Const, 1, opBrIf, 0, opLocalGet, 3, opI32Load, 2, 0, opI32Const, 4},
	},
	{
		// js_proxy_get_own_property_names: the size of its table is 8 times the
		// length that the trap answered, modulo 2^32. The length is cut so that a
		// too large table is a heap that is exhausted.
		function: 673,
		old:      []byte{opLocalGet, 9, opI32Const, 3, opI32Shl, opLocalTee, 5},
		new: []byte{opLocalGet, 9, opI32Const, 0xff, 0xff, 0xff, 0xff, 0, opLocalGet, 9, opI32Const, 0xff, 0xff, 0xff, 0xff, 0, opI32LtU, opSelect,
			opI32Const, 3, opI32Shl, opLocalTee, 5},
	},
	{
		// js_array_buffer_resize: the memory stays where it is, because functions
		// hold its address while they call the program. The prelude gives every such
		// buffer its largest size at once. js_realloc(ctx, data, size) becomes data.
		function: 1004,
		old:      []byte{opSelect, opCall, 0xff, 0x01, opLocalTee, 3, opI32Eqz},
		new:      []byte{opSelect, opDrop, opLocalSet, 3, opDrop, opLocalGet, 3, opI32Eqz},
	},
	// JS_CallInternal, where it takes its part of the stack and where it gives it
	// back: 384 bytes instead of 256. wazero's own stack has about 16 KB for each
	// of these calls and grows by doubling; so that 1 MiB of stackBytes needs 42 MB
	// of it and not 60, and the last growth, which nothing can interrupt, copies
	// half as much.
	{
		function: 242,
		old:      []byte{opGlobalGet, globalSP, opI32Const, 0x80, 0x02, opI32Sub, opLocalTee, 10, opLocalSet, 20},
		new:      []byte{opGlobalGet, globalSP, opI32Const, 0x80, 0x03, opI32Sub, opLocalTee, 10, opLocalSet, 20},
	},
	{
		function: 242,
		old:      []byte{opLocalGet, 20, opI32Const, 0x80, 0x02, opI32Add, opGlobalSet, globalSP},
		new:      []byte{opLocalGet, 20, opI32Const, 0x80, 0x03, opI32Add, opGlobalSet, globalSP},
	},
}

// repairBody applies the repairs of one function. A body in which the place is
// not found exactly once is not the one that was examined.
func repairBody(function int, body []byte) ([]byte, error) {
	for _, x := range repairs {
		if x.function != function {
			continue
		}
		if n := bytes.Count(body, x.old); n != 1 {
			return nil, fmt.Errorf("the place of a repair is found %d times", n)
		}
		body = bytes.Replace(body, x.old, x.new, 1)
	}
	return body, nil
}
