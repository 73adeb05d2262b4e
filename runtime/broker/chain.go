package broker

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

// chain is the hooks of a broker, for each moment those that care for it, in
// their order.
type chain struct {
	admits, dispatches, results, observes []*link

	told sync.Mutex // held while hooks observe: progress comes from elsewhere
}

// hang puts the hooks into their order.
func (b *Broker) hang() {
	c := &b.hooks
	if b.constrained() {
		l := &link{Hook: constraints{b: b}, own: true}
		c.admits, c.results = append(c.admits, l), append(c.results, l)
	}
	for _, h := range b.cfg.Hooks {
		l := &link{Hook: h}
		c.admits, c.dispatches = append(c.admits, l), append(c.dispatches, l)
		c.results, c.observes = append(c.results, l), append(c.observes, l)
	}
	if b.cfg.Journal != nil {
		l := &link{Hook: writeThrough{b: b}, own: true}
		c.dispatches, c.results = append(c.dispatches, l), append(c.results, l)
	}
	if b.cfg.Observe != nil {
		c.observes = append(c.observes, &link{Hook: observer{f: b.cfg.Observe}, own: true})
	}
}

// link is one hook. The own ones are the broker's, which change nothing that
// they get.
type link struct {
	Hook
	own bool
	// lost is set while an Observe has not returned: it is not told more.
	lost atomic.Bool
}

// copyOf is the moment as the hook may have it.
func (l *link) copyOf(m Moment) Moment {
	if l.own {
		return m
	}
	m.Arguments, m.Result = bytes.Clone(m.Arguments), bytes.Clone(m.Result)
	if m.Fault != nil {
		f := *m.Fault
		m.Fault = &f
	}
	return m
}

var (
	errHookFailed = errors.New("it did not return")
	errLeftBehind = errors.New("it was left behind")
)

// bounded runs f and returns what it returns, or an error when ctx is done
// before it does: an f that hangs is left behind. after is called when f really
// ends. A panic of f is an error.
func bounded[T any](ctx context.Context, f func() (T, error), after func()) (T, error) {
	type result struct {
		v   T
		err error
	}
	c := make(chan result, 1)
	go func() {
		r := result{err: errHookFailed}
		defer func() {
			if recover() != nil {
				r.err = errHookFailed
			}
			after()
			c <- r
		}()
		r.v, r.err = f()
	}()
	select {
	case r := <-c:
		return r.v, r.err
	case <-ctx.Done():
		var none T
		return none, errLeftBehind
	}
}

// call runs one moment of one hook for as long as ctx lasts.
func call[T any](ctx context.Context, f func() (T, error)) (T, error) {
	if ctx.Err() != nil {
		var none T
		return none, errLeftBehind
	}
	return bounded(ctx, f, func() {})
}

// faultAt is the fault of a moment that ended with err. That the run was stopped
// comes before everything.
func faultAt(ctx context.Context, err error) *contract.Fault {
	if err == nil {
		return nil
	}
	if f := stopped(ctx); f != nil {
		return f
	}
	if f, ok := contract.AsFault(err); ok {
		return f
	}
	return contract.Faultf(contract.ReasonBrokerUnavailable, "the call could not be watched as it must be, so it was not let through")
}

func (c *chain) admit(ctx context.Context, m Moment) *contract.Fault {
	for _, l := range c.admits {
		_, err := call(ctx, func() (any, error) { return nil, l.Admit(ctx, l.copyOf(m)) })
		if err != nil {
			return faultAt(ctx, err)
		}
	}
	return nil
}

// dispatch returns the context with the values of all hooks.
func (c *chain) dispatch(ctx context.Context, m Moment) (context.Context, *contract.Fault) {
	for _, l := range c.dispatches {
		next, err := call(ctx, func() (context.Context, error) { return l.Dispatch(ctx, l.copyOf(m)) })
		if err != nil {
			return ctx, faultAt(ctx, err)
		}
		if next != nil && next != ctx {
			ctx = derived{ctx, next}
		}
	}
	return ctx, nil
}

func (c *chain) result(ctx context.Context, m Moment) *contract.Fault {
	for _, l := range c.results {
		_, err := call(ctx, func() (any, error) { return nil, l.Result(ctx, l.copyOf(m)) })
		if err != nil {
			return faultAt(ctx, err)
		}
	}
	return nil
}

// observe tells every hook, one after another. What is told of progress is left
// out when something else is being told.
func (c *chain) observe(ctx context.Context, m Moment) {
	if m.Progress == nil {
		c.told.Lock()
	} else if !c.told.TryLock() {
		return
	}
	defer c.told.Unlock()
	for _, l := range c.observes {
		if l.own {
			l.Observe(ctx, m)
			continue
		}
		if !l.lost.CompareAndSwap(false, true) {
			continue
		}
		own, cancel := context.WithTimeout(context.WithoutCancel(ctx), ObserveFor)
		_, _ = bounded(own, func() (any, error) { l.Observe(own, l.copyOf(m)); return nil, nil }, func() { l.lost.Store(false) })
		cancel()
	}
}

// derived has the deadline and the end of its Context, and the values of another.
type derived struct {
	context.Context
	values context.Context
}

// Value implements context.Context.
func (d derived) Value(key any) any { return d.values.Value(key) }
