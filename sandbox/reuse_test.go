package sandbox

import (
	"bytes"
	"testing"
)

// TestReusedIsFresh: an instance that waits for its next execution has, byte for
// byte, the memory and the variables that a new one has, whatever it ran before.
func TestReusedIsFresh(t *testing.T) {
	e, err := New(t.Context(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = e.Close(t.Context()) }()
	first, err := e.place(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer first.close()
	if err := e.restore(first); err != nil {
		t.Fatal(err)
	}
	want, _ := first.mem.Read(0, first.mem.Size())

	reused := 0
	for _, v := range readVectors[vector](t, "sandbox.json") {
		if slow(v) {
			continue
		}
		p := v.program(t)
		p.Limits.Fuel = tracedFuel
		_, _ = e.Execute(t.Context(), p, &stubs{tools: v.Tools, limits: p.Limits}) // another test judges it
		in := e.takeIdle()
		if in == nil {
			continue
		}
		reused++
		got, ok := in.mem.Read(0, in.mem.Size())
		if !ok || !bytes.Equal(got, want) {
			t.Errorf("%s: the memory differs from a new one's", v.ID)
		}
		if in.overran() || in.fixed != e.fixed {
			t.Errorf("%s: the variables differ from a new one's", v.ID)
		}
		e.idle = append(e.idle, in)
	}
	if reused < 50 {
		t.Errorf("%d instances were kept, want most", reused)
	}
}
