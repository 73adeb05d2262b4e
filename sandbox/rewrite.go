package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
)

// pageSize is the size of a WebAssembly page, in bytes.
const pageSize = 65536

// fuelPerPoll is how many loop heads and function entries pass between two
// looks at the context: about 0.4 ms of JavaScript.
const fuelPerPoll = 50_000

// Facts about the examined build; rewrite verifies each of them.
const (
	imagePages = 3      // static data, ends where dlmalloc's first segment ends
	imageSP    = 165408 // where its 64 KiB stack begins
)

// Global variables of the rewritten module. The first is QuickJS's own.
const (
	globalSP   = iota // C stack pointer, grows down
	globalFuel        // loop heads left until the next poll
	globalLow         // lowest legal stack pointer
	globalOver        // 1 after a stack pointer below globalLow
)

// Names under which the host reaches the globals.
const (
	exportSP   = "__sp"
	exportLow  = "__low"
	exportOver = "__over"
)

// prepared is a module that is ready to be compiled.
type prepared struct {
	wasm []byte
	// data is the module's static data. It is not in wasm: an instance gets it
	// with the snapshot, and would otherwise pay for it twice.
	data []extent
}

// rewrite adds what the build lacks. Every `global.set $sp` becomes a call that
// traps below globalLow: the build itself runs over its static data. Every loop
// head, and every entry of a function that calls others, spends one unit of
// fuel; at zero the host function that exists anyway is called with a null
// context, which no JavaScript call can do. The function that says how large an
// allocation is answers zero in this build; it learns to, so that the garbage
// collector runs by bytes. No index of a function, import or global moves:
// everything new is appended.
func rewrite(in []byte) (*prepared, error) {
	secs, err := splitSections(in)
	if err != nil {
		return nil, err
	}
	at := map[byte]*section{}
	for i := range secs {
		at[secs[i].id] = &secs[i]
	}
	for _, id := range []byte{secType, secImport, secFunction, secMemory, secGlobal, secExport, secCode, secData} {
		if at[id] == nil {
			return nil, fmt.Errorf("no section %d", id)
		}
	}
	proxy, imports, err := findProxy(at[secImport].body)
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(at[secMemory].body, []byte{1, 0, imagePages}) {
		return nil, errors.New("unexpected memory section")
	}
	if err := addGlobals(at[secGlobal], at[secExport]); err != nil {
		return nil, err
	}
	add := addFunctions(at[secType], at[secFunction], imports)
	if at[secCode].body, err = rewriteCode(at[secCode].body, add, proxy); err != nil {
		return nil, err
	}
	data, err := readData(at[secData].body)
	if err != nil {
		return nil, err
	}
	secs = slices.DeleteFunc(secs, func(s section) bool { return s.id == secData || s.id == secCount })
	return &prepared{wasm: joinSections(secs), data: data}, nil
}

// readData lists the data segments, which all have a constant place.
func readData(body []byte) ([]extent, error) {
	r := &reader{b: body}
	var out []extent
	for n := r.uleb(); n > 0 && !r.bad; n-- {
		kind, op := r.byte(), r.byte()
		off := r.sleb()
		end := r.byte()
		x := extent{off: int(off), data: r.bytes(int(r.uleb()))}
		if r.bad || off < 0 || kind != 0 || op != opI32Const || end != opEnd || x.off+len(x.data) > imagePages*pageSize {
			return nil, errors.New("unexpected data segment")
		}
		out = append(out, x)
	}
	if r.bad {
		return nil, errors.New("cut data section")
	}
	return out, nil
}

// findProxy returns the index of the one import from env and how many there are.
func findProxy(body []byte) (proxy, imports uint64, err error) {
	r := &reader{b: body}
	n, found := r.uleb(), false
	for i := range n {
		mod, name, kind := r.name(), r.name(), r.byte()
		r.uleb()
		if kind != 0 {
			return 0, 0, errors.New("an import is not a function")
		}
		if mod == "env" && name == "jsFunctionProxy" {
			proxy, found = i, true
		}
	}
	if r.bad || !found {
		return 0, 0, errors.New("no import env.jsFunctionProxy")
	}
	return proxy, n, nil
}

// addGlobals appends the three new globals and exports all but the fuel.
func addGlobals(globals, exports *section) error {
	want := append(appendSleb([]byte{1, typeI32, 1, opI32Const}, imageSP), opEnd)
	if !bytes.Equal(globals.body, want) {
		return errors.New("unexpected global section")
	}
	g := append([]byte{4}, want[1:]...)
	for _, init := range []int64{globalFuel: fuelPerPoll, globalLow: 0, globalOver: 0}[1:] {
		g = append(g, typeI32, 1, opI32Const)
		g = append(appendSleb(g, init), opEnd)
	}
	globals.body = g

	r := &reader{b: exports.body}
	e := appendUleb(nil, r.uleb()+3)
	e = append(e, r.rest()...)
	for _, x := range []struct {
		name  string
		index byte
	}{{exportSP, globalSP}, {exportLow, globalLow}, {exportOver, globalOver}} {
		e = append(e, byte(len(x.name)))
		e = append(e, x.name...)
		e = append(e, exportGlobal, x.index)
	}
	exports.body = e
	return nil
}

// added holds the indexes of the two new functions.
type added struct{ poll, setSP uint64 }

// addFunctions declares poll: () -> () and setSP: (i32) -> ().
func addFunctions(types, functions *section, imports uint64) added {
	r := &reader{b: types.body}
	nt := r.uleb()
	t := append(appendUleb(nil, nt+2), r.rest()...)
	types.body = append(t, typeFunc, 0, 0, typeFunc, 1, typeI32, 0)

	r = &reader{b: functions.body}
	nf := r.uleb()
	f := append(appendUleb(nil, nf+2), r.rest()...)
	functions.body = appendUleb(appendUleb(f, nt), nt+1)
	return added{poll: imports + nf, setSP: imports + nf + 1}
}

// rewriteCode rewrites every body and appends the bodies of the new functions.
func rewriteCode(in []byte, add added, proxy uint64) ([]byte, error) {
	// if fuel == 0 { poll() }; fuel = fuel - 1
	spend := appendUleb([]byte{opGlobalGet, globalFuel, opI32Eqz, opIf, blockVoid, opCall}, add.poll)
	spend = append(spend, opEnd, opGlobalGet, globalFuel, opI32Const, 1, opI32Sub, opGlobalSet, globalFuel)
	setSP := appendUleb([]byte{opCall}, add.setSP)

	r := &reader{b: in}
	n := r.uleb()
	out := appendUleb(nil, n+2)
	sizes := 0
	for i := range n {
		body := r.bytes(int(r.uleb()))
		if r.bad {
			return nil, errors.New("cut code section")
		}
		if bytes.Equal(body, noUsableSize) {
			body, sizes = usableSize, sizes+1
		}
		body, err := repairBody(int(i), body)
		if err != nil {
			return nil, fmt.Errorf("function %d: %w", i, err)
		}
		nb, err := rewriteBody(body, spend, setSP)
		if err != nil {
			return nil, fmt.Errorf("function %d: %w", i, err)
		}
		out = append(appendUleb(out, uint64(len(nb))), nb...)
	}
	if sizes != 1 {
		return nil, fmt.Errorf("%d functions could be malloc_usable_size", sizes)
	}
	// poll: fuel = fuelPerPoll; drop(proxy(null, 0, 0, null))
	b := append(appendSleb([]byte{0, opI32Const}, fuelPerPoll), opGlobalSet, globalFuel,
		opI32Const, 0, opI64Const, 0, opI32Const, 0, opI32Const, 0, opCall)
	b = append(appendUleb(b, proxy), opDrop, opEnd)
	out = append(appendUleb(out, uint64(len(b))), b...)
	// setSP(v): if v < low { over = 1; trap }; sp = v
	b = []byte{0, opLocalGet, 0, opGlobalGet, globalLow, opI32LtU, opIf, blockVoid,
		opI32Const, 1, opGlobalSet, globalOver, opUnreachable, opEnd, opLocalGet, 0, opGlobalSet, globalSP, opEnd}
	return append(appendUleb(out, uint64(len(b))), b...), nil
}

// noUsableSize is the body of js__malloc_usable_size in this build, and of no
// other function: it answers 0, as on every system without the call.
var noUsableSize = []byte{0, opI32Const, 0, opEnd}

// usableSize reads the size from the head of dlmalloc's chunk, 4 bytes before
// the allocation, as malloc_usable_size does there: the low three bits are
// flags, and the head itself does not count. Of a null pointer it is 0.
var usableSize = append(append([]byte{0, opLocalGet, 0, opI32Eqz, opIf, typeI32, opI32Const, 0, opElse,
	opLocalGet, 0, opI32Const, 4, opI32Sub, opI32Load, 2, 0, opI32Const}, appendSleb(nil, -8)...),
	opI32And, opI32Const, 4, opI32Sub, opEnd, opEnd)

func rewriteBody(body, spend, setSP []byte) ([]byte, error) {
	r := &reader{b: body}
	for n := r.uleb(); n > 0; n-- { // local declarations
		r.uleb()
		r.byte()
	}
	out := append(make([]byte, 0, len(body)+len(body)/8), body[:r.p]...)
	calls, err := callsOthers(reader{b: body, p: r.p})
	if err != nil {
		return nil, err
	}
	if calls {
		out = append(out, spend...)
	}
	for r.p < len(body) {
		s := r.p
		if err := r.skip(); err != nil {
			return nil, err
		}
		if body[s] == opGlobalSet && body[s+1] == globalSP {
			out = append(out, setSP...)
			continue
		}
		out = append(out, body[s:r.p]...)
		if body[s] == opLoop {
			out = append(out, spend...)
		}
	}
	return out, nil
}

// callsOthers reports whether a body has a call: recursion without a loop must
// spend fuel, too.
func callsOthers(r reader) (bool, error) {
	for r.p < len(r.b) {
		op := r.b[r.p]
		if op == opCall || op == opCallIndirect {
			return true, nil
		}
		if err := r.skip(); err != nil {
			return false, err
		}
	}
	return false, nil
}
