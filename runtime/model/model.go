// Package model asks a model behind an endpoint in OpenAI's form: one granted
// address, one model, one answer a request. What endpoints in the wild do
// differently, and what becomes of it, is in the RATIONALE.md.
package model

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/runtime/broker/backend/egress"
	"github.com/codeact-dev/codeact-operator/runtime/loop"
)

const (
	// defaultAttempts is how often a request is tried when the pin does not say.
	defaultAttempts = 2
	// defaultBackoff is the wait before the second attempt, likewise.
	defaultBackoff = time.Second
	// maxWait bounds the wait between two attempts, also one that the endpoint
	// asks for.
	maxWait = 30 * time.Second
)

// Client asks the one model of a run. It implements loop.Model, for one Ask at a
// time: what it learns of its endpoint's abilities counts for the rest of the run.
type Client struct {
	pin     contract.PinnedModel
	options contract.ModelOptions
	creds   egress.Credentials
	// service carries the requests of both APIs to at.
	service  responses.ResponseService
	at       *url.URL
	form     form
	attempts int64
	backoff  time.Duration
	timeout  time.Duration
	wait     func(context.Context, time.Duration) error
}

var _ loop.Model = (*Client)(nil)

// New returns the client of a run with an agent. The credentials are asked for
// each attempt anew. A bundle without an agent, a URL that is none, an unknown API
// and options that contract.CheckModelOptions refuses are an error.
func New(b contract.Bundle, creds egress.Credentials) (*Client, error) {
	return build(b, creds, maxWireBytes)
}

// build takes the bound of the bytes of one answer.
func build(b contract.Bundle, creds egress.Credentials, wire int64) (*Client, error) {
	if b.Agent == nil {
		return nil, errors.New("the bundle has no agent")
	}
	pin, options := b.Agent.Model, b.Agent.Options
	u, err := url.Parse(pin.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.Fragment != "" {
		return nil, errors.New("the URL of the model is no http or https URL")
	}
	if _, ok := paths[pin.API]; !ok {
		return nil, fmt.Errorf("the API %q of the model is unknown", contract.Truncate(string(pin.API), 64))
	}
	if err := contract.CheckModelOptions(pin.API, options); err != nil {
		return nil, err
	}
	opts, err := endpoint(b, u, wire)
	if err != nil {
		return nil, err
	}
	// The service is taken apart from the SDK's client, whose constructor reads keys,
	// addresses and headers from the environment.
	c := &Client{
		pin: pin, options: options, creds: creds, service: responses.NewResponseService(opts...), at: below(*u, paths[pin.API]), form: fullForm,
		attempts: defaultAttempts, backoff: defaultBackoff, timeout: time.Duration(pin.TimeoutMs) * time.Millisecond, wait: sleep,
	}
	if c.timeout <= 0 {
		c.timeout = contract.DefaultModelTimeoutMs * time.Millisecond
	}
	if r := pin.Retry; r != nil {
		c.attempts, c.backoff = max(r.Attempts, 1), time.Duration(r.BackoffMs)*time.Millisecond
	}
	return c, nil
}

// endpoint are the options of the SDK that say where a request goes, and how.
func endpoint(b contract.Bundle, u *url.URL, wire int64) ([]option.RequestOption, error) {
	base := *u
	base.RawQuery = ""
	opts := []option.RequestOption{
		option.WithBaseURL(base.String()),
		option.WithHTTPClient(client(b, u.Scheme == "https", wire)),
		option.WithMaxRetries(0),
	}
	// Azure's older addresses carry their api-version as a query.
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return nil, errors.New("the query in the URL of the model is none")
	}
	for name, values := range query {
		for _, v := range values {
			opts = append(opts, option.WithQueryAdd(name, v))
		}
	}
	return opts, nil
}

// Ask implements loop.Model. Each attempt has the pinned timeout, and all of them
// end with ctx, whose error is returned then. Every other error is a
// *contract.Fault of the reason ModelError: its message names the kind of the
// failure and never what the endpoint said.
//
// Delta is called from Ask. It runs behind the answer by up to twice the length of
// the credential, which it is searched for first. A call with two empty texts says
// that an attempt broke off and what came of it is void.
func (c *Client) Ask(ctx context.Context, r loop.ModelRequest) (loop.ModelAnswer, error) {
	var asked int64
	backoff := c.backoff
	for try := int64(1); ; {
		asked++
		t := &attempt{client: c, request: r}
		ans, err := t.run(ctx)
		ans.Attempts = asked
		if err == nil {
			return ans, nil
		}
		if ctx.Err() != nil {
			return loop.ModelAnswer{Attempts: asked}, ctx.Err()
		}
		if t.told && r.Delta != nil {
			r.Delta("", "")
		}
		f := asFailure(err)
		if less, ok := c.form.without(f); ok {
			c.form = less // the endpoint said what it cannot do; that is no attempt
			continue
		}
		if f.final || try >= c.attempts {
			return loop.ModelAnswer{Attempts: asked}, f.fault(asked)
		}
		if err := c.wait(ctx, min(max(backoff, f.retryAfter), maxWait)); err != nil {
			return loop.ModelAnswer{Attempts: asked}, err
		}
		try, backoff = try+1, min(2*backoff, maxWait)
	}
}

// sleep waits, or until ctx ends, whose error it returns then.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
