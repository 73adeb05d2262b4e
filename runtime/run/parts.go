package run

import (
	"context"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/runtime/broker"
	"github.com/codeact-dev/codeact-operator/runtime/broker/backend/egress"
	toolhttp "github.com/codeact-dev/codeact-operator/runtime/broker/backend/http"
	"github.com/codeact-dev/codeact-operator/runtime/broker/backend/mcp"
	"github.com/codeact-dev/codeact-operator/runtime/loop"
	"github.com/codeact-dev/codeact-operator/runtime/model"
	"github.com/codeact-dev/codeact-operator/sandbox"
)

// engine is a sandbox that starts while the pod does something else.
type engine struct {
	done   chan struct{}
	engine *sandbox.Engine
	err    error
}

func startEngine(ctx context.Context, o sandbox.Options) *engine {
	e := &engine{done: make(chan struct{})}
	go func() {
		defer close(e.done)
		e.engine, e.err = sandbox.New(ctx, o)
	}()
	return e
}

// get waits for the engine.
func (e *engine) get(ctx context.Context) (loop.Sandbox, *contract.Fault) {
	select {
	case <-e.done:
	case <-ctx.Done():
		return nil, contract.Stopped(ctx, contract.ReasonDeadlineExceeded, "run")
	}
	if e.err != nil {
		return nil, contract.Faultf(contract.ReasonWorkerLost, "the JavaScript engine did not start: %v", e.err)
	}
	return e.engine, nil
}

// close gives the engine back. A process that ends waits for nothing, so an
// engine that still starts is left to it.
func (e *engine) close(ctx context.Context) {
	select {
	case <-e.done:
		if e.err == nil {
			_ = e.engine.Close(context.WithoutCancel(ctx))
		}
	default:
	}
}

// after calls f once stop is closed. The returned function gives that up, ends
// the context of an f that runs, and waits for it.
func after(ctx context.Context, stop <-chan struct{}, f func(context.Context)) (giveUp func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	go func() {
		defer close(done)
		select {
		case <-stop:
			f(ctx)
		case <-ctx.Done():
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

// Tools gives every tool of the bundle its backend. The returned function ends
// the sessions that calls opened; it is never nil, and takes at most two seconds.
// The fault is BrokerUnavailable.
func Tools(b contract.Bundle, creds egress.Credentials) ([]broker.Tool, func(context.Context), *contract.Fault) {
	sessions := mcp.NewSessions(b, creds)
	var out []broker.Tool
	for _, t := range b.Tools {
		backend, err := backendOf(b, t, creds, sessions)
		if err != nil {
			return nil, sessions.Close, contract.Faultf(contract.ReasonBrokerUnavailable, "%v", err)
		}
		out = append(out, broker.Tool{PinnedTool: t, Backend: backend})
	}
	return out, sessions.Close, nil
}

func backendOf(b contract.Bundle, t contract.PinnedTool, creds egress.Credentials, sessions *mcp.Sessions) (broker.Backend, error) {
	if t.Backend.MCP != nil {
		return sessions.Backend(t)
	}
	return toolhttp.New(b, t, creds)
}

// Model makes the way to the model of a bundle with an agent. The fault is
// ModelError, unless the error says more.
func Model(b contract.Bundle, creds egress.Credentials) (loop.Model, *contract.Fault) {
	m, err := model.New(b, creds)
	if f, ok := contract.AsFault(err); ok {
		return nil, f
	}
	if err != nil {
		return nil, contract.Faultf(contract.ReasonModelError, "%v", err)
	}
	return m, nil
}
