package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
)

// pageSize is the size of a WebAssembly page, in bytes.
const pageSize = 65536

// fuelPerPoll is how many loop heads and function entries, the units of fuel,
// pass at most between two looks at the context: about 0.4 ms of JavaScript.
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
	exportFuel = "__fuel"
	exportLow  = "__low"
	exportOver = "__over"
)

// dataName is the custom section that holds the module's data section. As such
// nothing would initialise an instance with it: an instance gets it with the
// snapshot, and would otherwise pay for it twice.
const dataName = "codeact.data"

// rewrite adds what the build lacks. Wherever the stack pointer may fall it is
// compared with globalLow: the build itself runs over its static data. Every loop
// head, and the entries of as many functions as every recursion passes, spend one
// unit of fuel; at zero the host function that exists anyway is called with a
// null context, which no JavaScript call can do, and answers how much there is
// now. The function that says how large an allocation is answers zero in this
// build; it learns to, so that the garbage collector runs by bytes. The data
// section becomes a custom one. No index of a function, import or global moves:
// everything new is appended.
func rewrite(in []byte) ([]byte, error) {
	secs, err := splitSections(in)
	if err != nil {
		return nil, err
	}
	at := map[byte]*section{}
	for i := range secs {
		at[secs[i].id] = &secs[i]
	}
	for _, id := range []byte{secType, secImport, secFunction, secMemory, secGlobal, secExport, secElement, secCode, secData} {
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
	calls, err := readCalls(at[secCode].body, at[secElement].body, imports)
	if err != nil {
		return nil, err
	}
	add := addFunctions(at[secType], at[secFunction], imports)
	if at[secCode].body, err = rewriteCode(at[secCode].body, add, proxy, calls.spenders()); err != nil {
		return nil, err
	}
	if _, err := readData(at[secData].body); err != nil {
		return nil, err
	}
	data := append(appendUleb(nil, uint64(len(dataName))), dataName...)
	data = append(data, at[secData].body...)
	secs = slices.DeleteFunc(secs, func(s section) bool { return s.id == secData || s.id == secCount })
	return joinSections(append(secs, section{secCustom, data})), nil
}

// staticData returns the data that rewrite has taken out of its way; it shares
// the module's memory.
func staticData(module []byte) ([]extent, error) {
	r := &reader{b: module, p: len(wasmHeader)}
	for r.p < len(module) {
		id := r.byte()
		body := &reader{b: r.bytes(int(r.uleb()))}
		if id == secCustom && body.name() == dataName {
			return readData(body.rest())
		}
	}
	return nil, errors.New("no data in the rewritten module")
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
		if r.bad || off < 0 || off > imagePages*pageSize || kind != 0 || op != opI32Const || end != opEnd || x.off+len(x.data) > imagePages*pageSize {
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
		if r.bad {
			break
		}
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

// addGlobals appends the three new globals and exports all of them.
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
	e := appendUleb(nil, r.uleb()+4)
	e = append(e, r.rest()...)
	for _, x := range []struct {
		name  string
		index byte
	}{{exportSP, globalSP}, {exportFuel, globalFuel}, {exportLow, globalLow}, {exportOver, globalOver}} {
		e = append(e, byte(len(x.name)))
		e = append(e, x.name...)
		e = append(e, exportGlobal, x.index)
	}
	exports.body = e
	return nil
}

// added holds the indexes of the new functions.
type added struct{ poll, overrun, plainRun, mix, fill, copy uint64 }

// addFunctions declares poll: () -> (), overrun: () -> (),
// plainRun: (i32, i32, i32) -> i32, mix: (i32) -> i32, bulkFill and bulkCopy:
// (i32, i32, i32) -> ().
func addFunctions(types, functions *section, imports uint64) added {
	r := &reader{b: types.body}
	nt := r.uleb()
	t := append(appendUleb(nil, nt+4), r.rest()...)
	types.body = append(t, typeFunc, 0, 0, typeFunc, 3, typeI32, typeI32, typeI32, 1, typeI32, typeFunc, 1, typeI32, 1, typeI32,
		typeFunc, 3, typeI32, typeI32, typeI32, 0)

	r = &reader{b: functions.body}
	nf := r.uleb()
	f := append(appendUleb(nil, nf+6), r.rest()...)
	for _, t := range []uint64{nt, nt, nt + 1, nt + 2, nt + 3, nt + 3} {
		f = appendUleb(f, t)
	}
	functions.body = f
	at := imports + nf
	return added{poll: at, overrun: at + 1, plainRun: at + 2, mix: at + 3, fill: at + 4, copy: at + 5}
}

// inserted is what the rewriting puts into the bodies of functions.
type inserted struct {
	spend   []byte // before anything else, and at the head of a loop
	checkSP []byte // after the stack pointer was set
	mix     []byte // see mixHash
	patches *patches
}

// rewriteCode rewrites every body and appends the bodies of the new functions.
func rewriteCode(in []byte, add added, proxy uint64, spenders []bool) ([]byte, error) {
	// if fuel == 0 { poll() }; fuel = fuel - 1
	spend := appendUleb([]byte{opGlobalGet, globalFuel, opI32Eqz, opIf, blockVoid, opCall}, add.poll)
	spend = append(spend, opEnd, opGlobalGet, globalFuel, opI32Const, 1, opI32Sub, opGlobalSet, globalFuel)
	// if sp < low { overrun() }
	checkSP := appendUleb([]byte{opGlobalGet, globalSP, opGlobalGet, globalLow, opI32LtU, opIf, blockVoid, opCall}, add.overrun)
	ins := &inserted{spend: spend, checkSP: append(checkSP, opEnd), mix: appendUleb([]byte{opCall}, add.mix),
		patches: &patches{plainRun: add.plainRun, bulk: bulkPatches{fill: add.fill, copy: add.copy}}}

	r := &reader{b: in}
	n := r.uleb()
	out := appendUleb(nil, n+6)
	for i := range n {
		body := r.bytes(int(r.uleb()))
		if r.bad {
			return nil, errors.New("cut code section")
		}
		body, err := repairBody(int(i), body)
		if err != nil {
			return nil, fmt.Errorf("function %d: %w", i, err)
		}
		nb, err := ins.rewriteBody(body, spenders[i])
		if err != nil {
			return nil, fmt.Errorf("function %d: %w", i, err)
		}
		out = appendBody(out, nb)
	}
	if err := ins.patches.check(); err != nil {
		return nil, err
	}
	// poll: fuel = proxy(null, 0, 0, null)
	b := []byte{0, opI32Const, 0, opI64Const, 0, opI32Const, 0, opI32Const, 0, opCall}
	b = append(appendUleb(b, proxy), opI32WrapI64, opGlobalSet, globalFuel, opEnd)
	out = appendBody(out, b)
	// overrun: over = 1; trap
	overrun := []byte{0, opI32Const, 1, opGlobalSet, globalOver, opUnreachable, opEnd}
	for _, b := range [][]byte{overrun, plainRun(spend), mixHash, bulkFill(add.poll), bulkCopy(add.poll)} {
		out = appendBody(out, b)
	}
	return out, nil
}

// appendBody appends the body of a function, which begins with its size.
func appendBody(out, body []byte) []byte {
	return append(appendUleb(out, uint64(len(body))), body...)
}

func (ins *inserted) rewriteBody(body []byte, spends bool) ([]byte, error) {
	if bytes.Equal(body, noUsableSize) {
		body = usableSize
		ins.patches.sizes++
	}
	r := &reader{b: body}
	r.locals()
	if err := r.err(); err != nil {
		return nil, err
	}
	out := append(make([]byte, 0, len(body)+len(body)/8), body[:r.p]...)
	if spends {
		out = append(out, ins.spend...)
	}
	last, before := r.p, r.p // where the two instructions before this one begin
	for r.p < len(body) {
		s := r.p
		if err := r.skip(); err != nil {
			return nil, err
		}
		if call := ins.patches.bulk.instead(body[s:r.p]); call != nil {
			out = append(out, call...)
			before, last = last, s
			continue
		}
		out = append(out, body[s:r.p]...)
		switch {
		case body[s] == opGlobalSet && body[s+1] == globalSP && !rises(body[before:s]):
			out = append(out, ins.checkSP...)
		case body[s] == opLoop:
			out = append(append(out, ins.spend...), ins.patches.insertAt(body[s:])...)
		case bytes.HasPrefix(body[s:], hashed):
			out = append(out, ins.mix...)
			ins.patches.hashes++
		}
		before, last = last, s
	}
	return out, nil
}

// rises reports whether two instructions are the addition of a positive
// constant: a function that gives its part of the stack back.
func rises(two []byte) bool {
	r := &reader{b: two}
	return r.byte() == opI32Const && r.sleb() > 0 && r.byte() == opI32Add && r.p == len(two)
}
