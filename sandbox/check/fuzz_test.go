package check_test

import (
	"encoding/json"
	"os"
	"runtime/metrics"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/sandbox/check"
)

// seeds are the cases of the grammar and the programs of the vectors.
func seeds(f *testing.F) []string {
	f.Helper()
	b, err := os.ReadFile("testdata/grammar.txt")
	if err != nil {
		f.Fatal(err)
	}
	var out []string
	for line := range strings.SplitSeq(string(b), "\n") {
		if len(line) > 19 && line[0] != '#' {
			out = append(out, strings.ReplaceAll(line[19:], "⏎", "\n"))
		}
	}
	for _, name := range []string{"sandbox.json", "hostile.json"} {
		b, err := os.ReadFile("../../test/vectors/" + name)
		if err != nil {
			f.Fatal(err)
		}
		var file struct{ Cases []struct{ Source any } }
		if err := json.Unmarshal(b, &file); err != nil {
			f.Fatal(err)
		}
		for _, c := range file.Cases {
			if s, ok := c.Source.(string); ok && len(s) < 4096 {
				out = append(out, s)
			}
		}
	}
	return out
}

// fuzzedBytes is how long a source is made by repeating a part of it.
const fuzzedBytes = 8 << 10

// FuzzCheck: whatever the bytes, the check answers with a fault or without, in
// time and memory that grow with the source and not faster: the source is also
// tried with its two parts repeated, which is where another growth shows.
func FuzzCheck(f *testing.F) {
	for i, s := range seeds(f) {
		f.Add(s, uint16(i*7))
	}
	f.Fuzz(func(t *testing.T, src string, cut uint16) {
		judge(t, src)
		if len(src) == 0 || len(src) > fuzzedBytes/2 {
			return
		}
		n := int(cut) % (len(src) + 1)
		times := fuzzedBytes / len(src)
		judge(t, strings.Repeat(src[:n], times)+strings.Repeat(src[n:], times))
	})
}

// judge checks one source and what it costs.
func judge(t *testing.T, src string) {
	t.Helper()
	timer := time.AfterFunc(20*time.Second, func() { panic("the check does not end: " + src) })
	defer timer.Stop()
	before := allocated()
	_, err := check.Source(src, 1<<16)
	if got, most := allocated()-before, uint64(2<<20+2000*len(src)); got > most {
		t.Errorf("%.200q, %d bytes: %d bytes allocated, want at most %d", src, len(src), got, most)
	}
	if err == nil {
		return
	}
	fault, ok := contract.AsFault(err)
	switch {
	case !ok, strings.Contains(fault.Message, "cannot be read from here"):
		t.Errorf("%.200q: %v", src, err)
	case !utf8.ValidString(fault.Message), strings.ContainsAny(fault.Message, "\n\r"):
		t.Errorf("%.200q: message %q", src, fault.Message)
	case fault.Reason != contract.ReasonSourceTooLarge && (fault.Line < 1 || fault.Column < 1):
		t.Errorf("%.200q: no place in %v", src, fault)
	}
}

// allocated is how many bytes the process has ever allocated.
func allocated() uint64 {
	s := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}
