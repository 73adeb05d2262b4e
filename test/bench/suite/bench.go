package suite

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime/debug"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
)

// ColdEnv is set in a process that Bench starts to run one program and end.
// Its value is the directory that Prepare filled.
const ColdEnv = "CODEACT_BENCH_COLD"

// preparer is a subject that can start faster with something on disk.
type preparer interface{ Prepare(dir string) error }

// Main is TestMain of a subject. open gets the directory that Prepare filled,
// or nothing if there is none.
func Main(m *testing.M, open func(dir string) (Subject, error)) {
	dir, ok := os.LookupEnv(ColdEnv)
	if !ok {
		os.Exit(m.Run())
	}
	s, err := open(dir)
	if err == nil {
		err = check(s, "trivial")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// Test holds a subject to the values of all programs: only what computes the
// same can be compared.
func Test(t *testing.T, s Subject) {
	for _, name := range append([]string{"trivial"}, Compute...) {
		t.Run(name, func(t *testing.T) {
			if err := check(s, name); err != nil {
				t.Error(err)
			}
		})
	}
	t.Run("call", func(t *testing.T) {
		for _, rows := range []bool{false, true} {
			if err := call(s, 3, 1000, rows); err != nil {
				t.Error(err)
			}
		}
	})
	t.Run("fresh", func(t *testing.T) {
		if err := s.Fresh(); err != nil && !errors.Is(err, ErrUnsupported) {
			t.Error(err)
		}
	})
}

// Bench takes every measure of a subject. What a process does once, like
// compiling a module, has happened before.
func Bench(b *testing.B, s Subject) {
	if err := check(s, "trivial"); err != nil {
		b.Fatal(err)
	}
	b.Run("fresh", func(b *testing.B) { each(b, s.Fresh) })
	b.Run("trivial", func(b *testing.B) { each(b, func() error { return check(s, "trivial") }) })
	for _, c := range []struct {
		name  string
		bytes int
		rows  bool
	}{{"100B", 100, false}, {"100KB", 100_000, false}, {"100KB-rows", 100_000, true}} {
		b.Run("call/"+c.name, func(b *testing.B) {
			defer cpu(b)()
			if err := call(s, b.N, c.bytes, c.rows); err != nil {
				b.Fatal(err)
			}
		})
	}
	for _, name := range Compute {
		b.Run("compute/"+name, func(b *testing.B) { each(b, func() error { return check(s, name) }) })
	}
	for _, n := range []int{1, 2} {
		b.Run(fmt.Sprintf("goroutines/%d", n), func(b *testing.B) { parallel(b, s, n) })
	}
	b.Run("cold", func(b *testing.B) { cold(b, s) })
	b.Run("growth", func(b *testing.B) { growth(b, s) })
}

func each(b *testing.B, f func() error) {
	defer cpu(b)()
	for range b.N {
		err := f()
		if errors.Is(err, ErrUnsupported) {
			b.Skip(err)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
}

// cpu reports the processor time of all threads, until the returned function is
// called. On a machine that others use, too, it says more than the wall clock.
func cpu(b *testing.B) func() {
	used := func() int64 {
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
			b.Fatal(err)
		}
		return u.Utime.Nano() + u.Stime.Nano()
	}
	before := used()
	return func() { b.ReportMetric(float64(used()-before)/float64(b.N), "cpu-ns/op") }
}

// parallel runs trivial programs in n goroutines; the time is the wall clock's
// for one of them.
func parallel(b *testing.B, s Subject, n int) {
	var next atomic.Int64
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			for next.Add(1) <= int64(b.N) {
				if err := check(s, "trivial"); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// cold starts a process, which runs the smallest program and ends.
func cold(b *testing.B, s Subject) {
	dir := ""
	if p, ok := s.(preparer); ok {
		dir = b.TempDir()
		if err := p.Prepare(dir); err != nil {
			b.Fatal(err)
		}
	}
	exe, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	for range b.N {
		cmd := exec.CommandContext(b.Context(), exe)
		cmd.Env = append(os.Environ(), ColdEnv+"="+dir)
		if out, err := cmd.CombinedOutput(); err != nil {
			b.Fatalf("%v: %s", err, out)
		}
	}
}

// Executions is how many executions the measure growth makes.
const Executions = 10_000

// growth says how much resident memory Executions of the smallest program
// leave behind. It is meant for -benchtime 1x.
func growth(b *testing.B, s Subject) {
	some := func(n int) {
		for range n {
			if err := check(s, "trivial"); err != nil {
				b.Fatal(err)
			}
		}
	}
	some(200)
	before := resident(b)
	b.ResetTimer()
	for range b.N {
		some(Executions)
	}
	b.StopTimer()
	after := resident(b)
	b.ReportMetric(float64(before), "B-before")
	b.ReportMetric(float64(after), "B-after")
	b.ReportMetric(float64(after-before)/float64(b.N)/Executions, "B/execution")
}

// resident is the resident set in bytes, after giving back what Go can.
func resident(b *testing.B) int64 {
	debug.FreeOSMemory()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		b.Skip("the resident set is read from Linux's /proc")
	}
	_, rest, _ := bytes.Cut(status, []byte("VmRSS:"))
	line, _, _ := bytes.Cut(rest, []byte("kB"))
	kb, err := strconv.ParseInt(string(bytes.TrimSpace(line)), 10, 64)
	if err != nil {
		b.Fatal(err)
	}
	return kb << 10
}
