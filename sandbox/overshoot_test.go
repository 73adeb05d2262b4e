package sandbox

import (
	"context"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

// What RATIONALE.md promises of the time between a deadline, or a cancellation,
// and the return of Execute, over all hostile programs.
const (
	overshootMedian = 50 * time.Millisecond
	overshootWorst  = overshoot
)

// dear are programs whose work is done by the engine's own functions, in long
// instructions and loops of its own, between few steps of JavaScript.
var dear = map[string]string{
	"fill":             `const a=new Uint8Array(50e6);function main(){for(;;)a.fill(1)}`,
	"copyWithin":       `const a=new Uint8Array(50e6);function main(){for(;;)a.copyWithin(0,1)}`,
	"set":              `const a=new Uint8Array(25e6),b=new Uint8Array(25e6);function main(){for(;;)a.set(b)}`,
	"slice":            `const a=new Uint8Array(25e6);function main(){for(;;)a.slice()}`,
	"slice of buffer":  `const a=new ArrayBuffer(25e6);function main(){for(;;)a.slice(0)}`,
	"new buffer":       `function main(){for(;;)new Uint8Array(50e6)}`,
	"resize":           `const b=new ArrayBuffer(8,{maxByteLength:25e6});function main(){for(;;){b.resize(25e6);b.resize(8)}}`,
	"shift":            `const a=Array(3e6).fill(1);function main(){for(;;){a.shift();a.push(1)}}`,
	"unshift":          `const a=Array(1e6).fill(1);function main(){for(;;){a.unshift(1);a.pop()}}`,
	"concat":           `const a=Array(1e6).fill(1);function main(){for(;;)a.concat(a)}`,
	"join":             `const a=Array(1e6).fill(1);function main(){for(;;)a.join()}`,
	"parts of text":    `const s="x".repeat(20e6);function main(){for(;;)(s.slice(1)+s.slice(2)).length}`,
	"comparing text":   `const a="x".repeat(20e6)+"a",b="x".repeat(20e6)+"b";function main(){for(;;)a<b}`,
	"searching text":   `const a="x".repeat(20e6);function main(){for(;;)a.indexOf("y")}`,
	"searching backs":  `const a="x".repeat(2e6);function main(){for(;;)a.lastIndexOf("xxxxxxxxxxxxxxxxy")}`,
	"searching bytes":  `const a=new Uint8Array(50e6);function main(){for(;;)a.indexOf(1)}`,
	"upper case":       `const a="é".repeat(5e6);function main(){for(;;)a.toUpperCase()}`,
	"writing JSON":     `const a=Array(1e6).fill("x");function main(){for(;;)JSON.stringify(a)}`,
	"writing text":     `const a="x\n".repeat(5e6);function main(){for(;;)JSON.stringify(a)}`,
	"reading JSON":     `const a=JSON.stringify("x".repeat(10e6));function main(){for(;;)JSON.parse(a)}`,
	"large arguments":  `const a="\u1234".repeat(1e6);function main(){for(;;)try{tools.call("echo",a)}catch{}}`,
	"large numbers":    `const a=3n**200000n;function main(){for(;;)a*a}`,
	"number to text":   `const a=3n**60000n;function main(){for(;;)String(a)}`,
	"large power":      `function main(){for(;;)3n**500000n}`,
	"garbage":          `const a=[];for(let i=0;i<4e5;i++)a.push({});function main(){for(let i=0;;i++){a[i%4e5]={a:a[(i*7)%4e5]}}}`,
	"large map":        `const m=new Map();for(let i=0;i<3e5;i++)m.set(i,i);function main(){for(;;)new Map(m)}`,
	"sorting":          `const a=new Float64Array(3e6).map((_,i)=>-i);function main(){for(;;)a.slice().sort()}`,
	"a regex's search": `const a="a".repeat(1e6);function main(){for(;;)/a*b/.test(a)}`,
	"split":            `const a="a,".repeat(2e5);function main(){for(;;)a.split(",")}`,
	"decoding":         `const a="%41".repeat(1e6);function main(){for(;;)decodeURIComponent(a)}`,
	"normalize":        `const a="\u1e9b\u0323".repeat(1e6);function main(){for(;;)a.normalize("NFKD")}`,
	"a large result":   `function main(){return {toJSON(){return "\u1234".repeat(15e6)}}}`,
	"recursion":        `function f(n){return n?f(n-1):0} function main(){for(;;)f(2000)}`,
	"compiling regex":  `function main(){for(let i=0;;i++)new RegExp("(?:a{1,500}|b){1,500}[a-z]".repeat(50)+i,"iu")}`,
}

// late is how long after its end was asked for an execution returned, in time and
// in what the process computed meanwhile.
type late struct {
	program    string
	wall, used time.Duration
}

// mark notes the moment, when it comes.
type mark struct{ wall, used atomic.Int64 }

func (m *mark) now(start time.Time) {
	m.used.Store(int64(cpuTime()))
	m.wall.Store(int64(time.Since(start)))
}

// stopAt runs a program that is to be stopped after d, and answers how late it
// was. ok is false if it ended by itself.
func stopAt(t *testing.T, e *Engine, source string, d time.Duration, cancelled bool) (l late, ok bool) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	limits, want := hostileLimits(), contract.ReasonTimeout
	limits.WallClockMs = d.Milliseconds()
	start := time.Now()
	var m mark
	stop := func() { m.now(start) }
	if cancelled {
		limits.WallClockMs, want = 60_000, contract.ReasonCancelled
		stop = func() { m.now(start); cancel() }
	}
	timer := time.AfterFunc(d, stop)
	_, err := e.Execute(ctx, Program{Source: source, Limits: limits}, &hostileTools{})
	end, used := time.Since(start), cpuTime()
	timer.Stop()
	f, failed := contract.AsFault(err)
	if !failed || f.Reason != want || m.wall.Load() == 0 {
		return late{}, false
	}
	return late{wall: end - time.Duration(m.wall.Load()), used: used - time.Duration(m.used.Load())}, true
}

// TestOvershoot: Execute returns soon after the deadline and after a cancellation
// at a random moment, over the hostile programs and those of dear work. What the
// process computes after that moment is judged always; the time that passes, only
// where the process had the processor for at least three quarters of it.
func TestOvershoot(t *testing.T) {
	e := testEngine(t)
	sources := map[string]string{}
	for _, v := range readVectors[hostileVector](t, "hostile.json") {
		if len(v.Source) < 100_000 && v.Input == nil {
			sources[v.ID] = v.Source
		}
	}
	for name, source := range dear {
		sources["dear: "+name] = source
	}
	names := make([]string, 0, len(sources))
	for name := range sources {
		names = append(names, name)
	}
	slices.Sort(names)
	deepest(t, e)
	random := rand.New(rand.NewPCG(3, 5))
	for _, cancelled := range []bool{false, true} {
		var judged, all []late
		for _, name := range names {
			for try := 0; ; try++ {
				d := 100 * time.Millisecond
				if cancelled {
					d = time.Duration(1+random.IntN(150)) * time.Millisecond
				}
				l, ok := stopAt(t, e, sources[name], d, cancelled)
				if !ok {
					break
				}
				l.program = name
				starved := l.wall > overshootMedian/2 && l.used < l.wall*3/4
				if starved && try < 3 {
					continue
				}
				all = append(all, l)
				if !starved {
					judged = append(judged, l)
				}
				break
			}
		}
		what := map[bool]string{false: "deadline", true: "cancellation"}[cancelled]
		report(t, what+", time passed", judged, func(l late) time.Duration { return l.wall })
		// The garbage collector works on the other processors meanwhile.
		report(t, what+", computed", all, func(l late) time.Duration { return l.used / time.Duration(runtime.GOMAXPROCS(0)) })
		if len(all) < 30 {
			t.Errorf("%s: only %d programs were stopped", what, len(all))
		}
	}
}

// deepest recurses as deep as the stack allows, so that the process has had the
// memory of the native stack once: what the kernel takes for new pages is a matter
// of the machine, up to 220 ms where a fault takes 20 us, and is said in
// RATIONALE.md.
func deepest(t *testing.T, e *Engine) {
	t.Helper()
	start, used := time.Now(), cpuTime()
	for range 2 {
		_, err := e.Execute(t.Context(), Program{Source: `function f(){return f()+1} function main(){return f()}`, Limits: hostileLimits()}, nil)
		if f, ok := contract.AsFault(err); !ok || f.Reason != contract.ReasonStackExhausted {
			t.Fatalf("error %v, want StackExhausted", err)
		}
	}
	t.Logf("the deepest recursion, twice: %v, computed %v", time.Since(start), cpuTime()-used)
}

// report judges one set of figures and logs it.
func report(t *testing.T, what string, all []late, figure func(late) time.Duration) {
	t.Helper()
	if len(all) == 0 {
		t.Logf("%s: nothing could be judged", what)
		return
	}
	slices.SortFunc(all, func(a, b late) int { return int(figure(a) - figure(b)) })
	median, worst := figure(all[len(all)/2]), all[len(all)-1]
	var slowest []string
	for _, l := range all[max(0, len(all)-4):] {
		slowest = append(slowest, l.program+" "+figure(l).Round(100*time.Microsecond).String())
	}
	t.Logf("%s: %d programs, median %v, the latest: %s", what, len(all), median.Round(100*time.Microsecond), strings.Join(slowest, ", "))
	if median > overshootMedian || figure(worst) > overshootWorst {
		t.Errorf("%s: median %v, worst %v (%s), want at most %v and %v", what, median, figure(worst), worst.program, overshootMedian, overshootWorst)
	}
}

// TestHeapOvershoot: the memory of the VM never has a page more than the limit.
func TestHeapOvershoot(t *testing.T) {
	e := testEngine(t)
	for _, limit := range []int64{1 << 20, 1<<20 + 1, 3_300_000, 16 << 20} {
		for name, source := range map[string]string{
			"small objects": `function main(){const a=[];for(let i=0;;i++)a.push({i})}`,
			"growing text":  `function main(){let s="x";for(;;)s+=s}`,
			"large buffers": `function main(){const a=[];for(;;)a.push(new ArrayBuffer(7e5))}`,
			"a deep value":  `function main(){let a=[];for(;;)a=[a]}`,
			"a wide result": `function main(){return Array(1e6).fill("\u1234")}`,
			"atoms":         `function main(){const o={};for(let i=0;;i++)o["k"+i]=i}`,
		} {
			limits := hostileLimits()
			limits.HeapBytes, limits.WallClockMs, limits.Fuel = limit, 120_000, 300_000_000
			res, err := e.Execute(t.Context(), Program{Source: source, Limits: limits}, nil)
			if f, ok := contract.AsFault(err); !ok || f.Reason != contract.ReasonHeapExhausted {
				t.Errorf("%s in %d bytes: error %v, want HeapExhausted", name, limit, err)
			}
			if res.Usage.HeapBytes > limit || res.Usage.HeapBytes%pageSize != 0 {
				t.Errorf("%s in %d bytes: had %d", name, limit, res.Usage.HeapBytes)
			}
		}
	}
}
