package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/api/v1alpha1"
)

// The node of the test cluster is this machine, so the runtime's process can be
// looked at from here.
var _ = Describe("measured on the node", Label("measure"), Serial, func() {
	It("a runtime starts fast and stays small", func(ctx SpecContext) {
		if os.Getenv("MEASURE") == "" {
			Skip("MEASURE is not set")
		}
		var starts []time.Duration
		var peaks []int64
		for i := range 21 {
			s := newScene(ctx)
			r := s.held(ctx, contract.EffectReadOnly)
			p := processOf(r)
			start, peak := programStart(ctx, r).Sub(p.started()), p.peak()
			s.release(ctx)
			succeeds(ctx, r)
			if i > 0 { // the first one warms the caches
				starts, peaks = append(starts, start), append(peaks, peak)
			}
		}
		AddReportEntry("process start to program", fmt.Sprintf("median %v, max %v", median(starts), slices.Max(starts)))
		AddReportEntry("peak resident set", fmt.Sprintf("median %d KiB, max %d KiB", median(peaks), slices.Max(peaks)))
	}, SpecTimeout(10*time.Minute))
})

// process is the directory of a process in /proc.
type process string

// processOf finds the runtime process of a run.
func processOf(r *v1alpha1.AgentRun) process {
	GinkgoHelper()
	dirs, err := filepath.Glob("/proc/[0-9]*")
	Expect(err).NotTo(HaveOccurred())
	want := []byte(contract.EnvPodName + "=" + r.Status.Execution.Claim.PodName + "\x00")
	for _, dir := range dirs {
		env, err := os.ReadFile(filepath.Join(dir, "environ"))
		if err == nil && bytes.Contains(env, want) {
			return process(dir)
		}
	}
	Fail("no process of pod " + r.Status.Execution.Claim.PodName)
	return ""
}

func (p process) read(name string) string {
	GinkgoHelper()
	b, err := os.ReadFile(filepath.Join(string(p), name))
	Expect(err).NotTo(HaveOccurred())
	return string(b)
}

// started is known to the kernel's tick of 10 ms (proc(5), field 22 of stat).
func (p process) started() time.Time {
	GinkgoHelper()
	stat := p.read("stat")
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	ticks, err := strconv.ParseInt(fields[19], 10, 64)
	Expect(err).NotTo(HaveOccurred())
	uptime, err := time.ParseDuration(strings.Fields(process("/proc").read("uptime"))[0] + "s")
	Expect(err).NotTo(HaveOccurred())
	return time.Now().Add(time.Duration(ticks)*10*time.Millisecond - uptime)
}

// peak is the process's greatest resident set in KiB.
func (p process) peak() int64 {
	GinkgoHelper()
	for line := range strings.Lines(p.read("status")) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kib, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			Expect(err).NotTo(HaveOccurred())
			return kib
		}
	}
	Fail("no VmHWM in " + string(p))
	return 0
}

// programStart is when the runtime said that it runs the program.
func programStart(ctx context.Context, r *v1alpha1.AgentRun) time.Time {
	GinkgoHelper()
	var e struct {
		Time time.Time
		Type string
	}
	first, _, _ := strings.Cut(kubectl(ctx, "-n", r.Namespace, "logs", r.Status.Execution.Claim.PodName), "\n")
	Expect(json.Unmarshal([]byte(first), &e)).To(Succeed())
	Expect(e.Type).To(Equal("execution.started"))
	return e.Time
}
