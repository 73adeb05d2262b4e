// Package run is the life of a runtime pod: load the bundle, claim the
// execution, execute, report.
package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/runtime/broker/backend/egress"
	"github.com/codeact-dev/codeact-operator/runtime/loop"
	"github.com/codeact-dev/codeact-operator/runtime/report"
	"github.com/codeact-dev/codeact-operator/runtime/trace"
	"github.com/codeact-dev/codeact-operator/sandbox"
)

// Exit codes of the runtime. Nobody takes them for a result: only a verified
// report means success.
const (
	// ExitSucceeded: the execution succeeded, and its report says so.
	ExitSucceeded = 0
	// ExitFailed: the execution failed, and its report says why.
	ExitFailed = 1
	// ExitNotClaimed: the execution is not this pod's, or its bundle cannot be
	// verified; nothing was executed and nothing reported.
	ExitNotClaimed = 2
)

// askFor bounds the question why the pod is being stopped: the program goes on
// until it is answered.
const askFor = 2 * time.Second

// Config is what a runtime pod knows when it starts.
type Config struct {
	// BundlePath is the file of the bundle, whose digest must be BundleDigest.
	BundlePath, BundleDigest string
	// Pod is the pod that this process runs in.
	Pod report.Pod
	// TerminationPath is where the report's second way out is written.
	TerminationPath string
	// CacheDir holds the sandbox's compilation cache.
	CacheDir string
	// API says how the API server is reached.
	API func() (report.API, error)
	// Credentials gives the tools' credentials at call time.
	Credentials egress.Credentials
	// Model makes the way to the model of an agent; nil means Model.
	Model func(contract.Bundle, egress.Credentials) (loop.Model, *contract.Fault)
	// Events gets the events as JSON lines; Log gets one line for what a person
	// must know.
	Events, Log io.Writer
	// Trace sends spans to the collector that the environment names.
	Trace bool
	// Now tells the time.
	Now func() time.Time
	// Stop is closed when the pod is told to end.
	Stop <-chan struct{}

	// ReportFor bounds how long the report is tried; 60 s.
	ReportFor time.Duration
	// GraceFor bounds the same once the pod is told to end; 10 s, which leaves
	// room in the grace of 15 s that the pod has.
	GraceFor time.Duration
	// Client changes how the API server is talked to, for tests.
	Client func(*report.Config)
}

// Run lives through one pod and returns its exit code.
func Run(ctx context.Context, c Config) int {
	if c.ReportFor == 0 {
		c.ReportFor = 60 * time.Second
	}
	if c.GraceFor == 0 {
		c.GraceFor = (contract.PodGraceSeconds - 5) * time.Second
	}
	if c.Model == nil {
		c.Model = Model
	}
	p := &process{Config: c}
	code, err := p.run(ctx)
	if err != nil {
		_, _ = fmt.Fprintf(c.Log, "codeact-runtime: %v\n", err)
	}
	return code
}

// process is one pod on its way.
type process struct {
	Config
	bundle  contract.Bundle
	client  *report.Client
	claimed *report.Claimed
	events  *loop.Events
	end     func(context.Context) // ends the sessions with tools
	tracer  *trace.Tracer         // nil without a collector
}

func (p *process) run(ctx context.Context) (int, error) {
	if err := p.load(); err != nil {
		return p.notClaimed(err)
	}
	started := startEngine(ctx, sandbox.Options{CacheDir: p.CacheDir, Ceiling: p.bundle.Limits})
	defer started.close(ctx)
	if err := p.claim(ctx); err != nil {
		return p.notClaimed(err)
	}
	noTrace := p.trace(ctx)
	// Nobody waits for a tool's server, or a collector, to be told that the run is
	// over: the report comes first.
	defer p.tracer.Close(ctx)
	e, o := p.execute(ctx, started)
	defer p.end(context.WithoutCancel(ctx))
	code, err := p.deliver(ctx, e, o)
	return code, errors.Join(noTrace, err)
}

// load reads the bundle and believes nothing of it before its digest holds.
func (p *process) load() error {
	if p.Pod.Name == "" || p.Pod.UID == "" {
		return fmt.Errorf("%s and %s must name this pod", contract.EnvPodName, contract.EnvPodUID)
	}
	f, err := os.Open(p.BundlePath)
	if err != nil {
		return fmt.Errorf("bundle: %w", err)
	}
	defer func() { _ = f.Close() }()
	raw, err := io.ReadAll(io.LimitReader(f, contract.MaxBundleBytes+1))
	if err != nil {
		return fmt.Errorf("bundle: %w", err)
	}
	p.bundle, err = contract.DecodeBundle(raw, p.BundleDigest)
	return err
}

func (p *process) claim(ctx context.Context) error {
	api, err := p.API()
	if err != nil {
		return err
	}
	cfg := report.Config{API: api, Run: p.bundle.Run, BundleDigest: p.BundleDigest, Pod: p.Pod, Now: p.Now}
	if p.Client != nil {
		p.Client(&cfg)
	}
	if p.client, err = report.New(cfg); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer after(ctx, p.Stop, func(context.Context) { cancel(errors.New("the pod was stopped")) })()
	p.claimed, err = p.client.Claim(ctx)
	return err
}

// execute runs the program under the run's own deadline, until the pod is told
// to stop.
func (p *process) execute(ctx context.Context, started *engine) (contract.Execution, loop.Outcome) {
	e := p.claimed.Execution
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if ms := p.bundle.TimeoutMs; ms > 0 {
		end := p.claimed.Time.Add(time.Duration(ms) * time.Millisecond)
		var stop context.CancelFunc
		ctx, stop = context.WithDeadlineCause(ctx, end, contract.Faultf(contract.ReasonDeadlineExceeded, "the run took longer than its timeout of %s", time.Duration(ms)*time.Millisecond))
		defer stop()
	}
	defer after(ctx, p.Stop, func(ctx context.Context) {
		ctx, done := context.WithTimeout(ctx, askFor)
		defer done()
		cancel(p.client.StopReason(ctx, p.claimed))
	})()

	ctx, ended := p.tracer.Execution(ctx)
	o := p.loop(ctx, started)
	ended(o)
	o.Report(&e, p.Now())
	return e, o
}

func (p *process) loop(ctx context.Context, started *engine) loop.Outcome {
	p.events = loop.NewEvents(p.Events, p.Now)
	if p.bundle.Transcript != contract.TranscriptNone {
		p.events.Record(contract.TranscriptOrigin{RunUID: p.bundle.Run.UID, Generation: p.bundle.Run.Generation, BundleDigest: p.BundleDigest})
	}
	w := newWriter(p.client, p.claimed.Execution, p.Now)
	c := loop.Config{
		Bundle: p.bundle, Journal: w, Steps: w.steps, Desk: w, Hooks: p.tracer.Hooks(), Spans: p.tracer.Spans(), Now: p.Now, Events: p.events,
	}
	tools, end, f := Tools(p.bundle, p.Credentials)
	p.end = end
	if off := p.bundle.CheckEnabled(); off != nil {
		f = off
	}
	if f != nil {
		return loop.Fail(c, f)
	}
	c.Tools = tools
	if p.bundle.Agent != nil {
		if c.Model, f = p.Model(p.bundle, p.Credentials); f != nil {
			return loop.Fail(c, f)
		}
	}
	if c.Sandbox, f = started.get(ctx); f != nil {
		return loop.Fail(c, f)
	}
	return loop.Run(ctx, c)
}

// trace makes the tracer. A run without one is as good as any other.
func (p *process) trace(ctx context.Context) (err error) {
	if p.Trace {
		p.tracer, err = trace.New(ctx, p.bundle)
	}
	return err
}

// deliver brings the report out on both ways: the termination message, which
// needs nobody, then the API. Between them, it stores what does not fit a status,
// and names that in a second message, so that no report names what is not there.
func (p *process) deliver(ctx context.Context, e contract.Execution, o loop.Outcome) (int, error) {
	code := ExitFailed
	if e.Result == contract.ResultSucceeded {
		code = ExitSucceeded
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.ReportFor)
	defer cancel()
	defer after(ctx, p.Stop, func(over context.Context) {
		t := time.AfterFunc(p.GraceFor, cancel)
		<-over.Done()
		t.Stop()
	})()
	err := p.leave(e)
	changed, lost := p.keep(ctx, &e, o)
	if changed {
		err = p.leave(e)
	}
	return code, errors.Join(lost, err, p.client.Final(ctx, e))
}

// leave writes the report as the termination message.
func (p *process) leave(e contract.Execution) error {
	message, err := e.TerminationMessage()
	if err != nil {
		return err
	}
	return writeMessage(p.TerminationPath, message)
}

// notClaimed says, where a person will look for it, why nothing was executed.
func (p *process) notClaimed(err error) (int, error) {
	text := contract.Truncate("codeact-runtime: "+err.Error(), contract.MaxTerminationBytes)
	return ExitNotClaimed, errors.Join(err, writeMessage(p.TerminationPath, []byte(text)))
}

func writeMessage(path string, message []byte) error {
	if err := os.WriteFile(path, message, 0o644); err != nil {
		return fmt.Errorf("termination message: %w", err)
	}
	return nil
}
