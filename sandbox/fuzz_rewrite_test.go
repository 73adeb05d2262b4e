package sandbox

import (
	"bytes"
	"runtime/metrics"
	"slices"
	"testing"
)

// smallModule is the examined module with only those functions that the rewriting
// looks for and a few more: a seed that mutations reach every part of.
func smallModule(tb testing.TB) []byte {
	tb.Helper()
	secs, err := splitSections(qjsWasm)
	if err != nil {
		tb.Fatal(err)
	}
	for i := range secs {
		if secs[i].id != secCode {
			continue
		}
		r := &reader{b: secs[i].body}
		var bodies [][]byte
		for n := r.uleb(); n > 0; n-- {
			if b := r.bytes(int(r.uleb())); wanted(b) || len(bodies) < 8 && len(b) < 200 {
				bodies = append(bodies, b)
			}
		}
		code := appendUleb(nil, uint64(len(bodies)))
		for _, b := range bodies {
			code = appendBody(code, b)
		}
		secs[i].body = code
	}
	for i := range secs {
		if secs[i].id == secData {
			secs[i].body = append(appendSleb([]byte{2, 0, opI32Const}, 1024), opEnd, 3, 'a', 'b', 'c', 0, opI32Const, 0, opEnd, 0)
		}
	}
	return joinSections(secs)
}

// wanted reports whether the rewriting looks for something in this body.
func wanted(body []byte) bool {
	if bytes.Equal(body, noUsableSize) || bytes.Contains(body, hashed) {
		return true
	}
	for _, x := range jsonPatches {
		if bytes.Contains(body, x.at) {
			return true
		}
	}
	r := &reader{b: body}
	for n := r.uleb(); n > 0; n-- {
		r.uleb()
		r.byte()
	}
	for r.p < len(body) {
		s := r.p
		if r.skip() != nil {
			return false
		}
		if body[s] == opPrefix && (body[s+1] == opMemoryCopy || body[s+1] == opMemoryFill) {
			return true
		}
	}
	return false
}

// FuzzRewrite: whatever the module, the rewriting answers with another or with an
// error, in memory that grows with the module: no number in it is believed before
// the bytes are there.
func FuzzRewrite(f *testing.F) {
	seed := smallModule(f)
	if _, err := rewrite(seed); err != nil {
		f.Fatalf("the seed is refused: %v", err)
	}
	f.Add(seed)
	secs, err := splitSections(seed)
	if err != nil {
		f.Fatal(err)
	}
	for i := range secs { // without, cut, and twice
		f.Add(joinSections(slices.Delete(slices.Clone(secs), i, i+1)))
		cut := slices.Clone(secs)
		cut[i].body = cut[i].body[:len(cut[i].body)/2]
		f.Add(joinSections(cut))
		f.Add(joinSections(append(slices.Clone(secs), secs[i])))
	}
	f.Add([]byte(wasmHeader))
	f.Fuzz(func(t *testing.T, module []byte) {
		ends(t)
		before := allocated()
		out, err := rewrite(module)
		if got, most := allocated()-before, uint64(4<<20+100*len(module)); got > most {
			t.Errorf("%d bytes allocated for a module of %d", got, len(module))
		}
		_, _ = staticData(module) // whatever it says of a module that is none
		if err != nil {
			return
		}
		if len(out) > 16*len(module) {
			t.Errorf("%d bytes made of %d", len(out), len(module))
		}
		if _, err := splitSections(out); err != nil {
			t.Errorf("the new module cannot be read: %v", err)
		}
		data, err := staticData(out)
		if err != nil {
			t.Fatalf("the new module's data: %v", err)
		}
		writeExtents(make([]byte, imagePages*pageSize), data)
	})
}

// allocated is how many bytes the process has ever allocated.
func allocated() uint64 {
	s := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}
