// Package http reaches tools by one HTTP request each: arguments go into the URL
// and a JSON body, the result comes back as JSON or text. A request leaves at
// most once, goes to exactly the granted address, and what is not proven about it
// is never claimed.
package http

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/runtime/broker"
	"github.com/codeact-dev/codeact-operator/runtime/broker/backend/egress"
)

// Backend reaches one tool through one URL template.
type Backend struct {
	client *http.Client
	url    contract.URLTemplate
	method contract.HTTPMethod
	form   contract.ResponseForm
	tool   contract.PinnedTool
	// headers are the grant's and those of projected capabilities.
	headers http.Header
	creds   egress.Credentials
}

// New returns the backend of a pinned tool with an HTTP backend. The bundle
// gives what its capabilities project into the calls. A backend that
// contract.CheckBackend would refuse for its URL, method or headers is an error.
func New(b contract.Bundle, t contract.PinnedTool, creds egress.Credentials) (*Backend, error) {
	h := t.Backend.HTTP
	if h == nil {
		return nil, fmt.Errorf("tool %s has no HTTP backend", t.Tool.Name)
	}
	u, err := contract.ParseURLTemplate(h.URL)
	if err != nil {
		return nil, fmt.Errorf("the URL of tool %s: %w", t.Tool.Name, err)
	}
	out := &Backend{url: u, method: h.Method.Defaulted(), form: h.Response, tool: t, headers: http.Header{}, creds: creds}
	if !h.Method.Known() {
		return nil, fmt.Errorf("the method of tool %s is none of GET, POST, PUT, PATCH and DELETE", t.Tool.Name)
	}
	out.headers.Set("Accept", accept(h.Response))
	for _, x := range h.Headers {
		if contract.RuntimeHeader(x.Name) {
			return nil, fmt.Errorf("tool %s sets the header %s, which belongs to the runtime", t.Tool.Name, x.Name)
		}
		out.headers.Set(x.Name, x.Value)
	}
	projected, err := egress.Headers(b, t)
	if err != nil {
		return nil, err
	}
	maps.Copy(out.headers, projected)
	out.client = egress.Client(target(b, t, u.Scheme()))
	return out, nil
}

func accept(f contract.ResponseForm) string {
	if f == contract.ResponseText {
		return "text/*, */*;q=0.5, " + contract.ResultMediaType + ";q=0.1"
	}
	return "application/json, " + contract.ResultMediaType
}

func target(b contract.Bundle, t contract.PinnedTool, scheme string) egress.Target {
	out := egress.Target{Policy: b.Operator, HTTPS: scheme == "https"}
	if t.Backend.CA != nil {
		out.CAFile = contract.CAPath(t.Tool.Name)
	}
	return out
}

// Call implements broker.Backend.
func (b *Backend) Call(ctx context.Context, r broker.Request) (broker.Answer, error) {
	ans, err := b.call(ctx, r)
	if f, ok := errors.AsType[*broker.Failure](err); ok {
		f.Message = "tool " + r.Tool + ": " + f.Message
	}
	return ans, err
}

func (b *Backend) call(ctx context.Context, r broker.Request) (broker.Answer, error) {
	ctx, sent := egress.Watch(ctx)
	req, secret, err := b.request(ctx, r)
	if err != nil {
		return broker.Answer{}, err
	}
	res, err := b.client.Do(req)
	if err != nil {
		return broker.Answer{}, egress.Failed(err, sent())
	}
	defer func() { _ = res.Body.Close() }()
	return (&reply{res: res, most: r.MaxBytes, form: b.form, secret: secret}).read()
}

// request makes the request of a call, and the finder of the credential in it.
func (b *Backend) request(ctx context.Context, r broker.Request) (*http.Request, egress.Secret, error) {
	text, body, err := b.place(r.Arguments)
	if err != nil {
		return nil, egress.Secret{}, err
	}
	var req *http.Request
	if body == nil {
		req, err = http.NewRequestWithContext(ctx, string(b.method), text, http.NoBody)
	} else {
		req, err = http.NewRequestWithContext(ctx, string(b.method), text, bytes.NewReader(body))
	}
	if err != nil {
		return nil, egress.Secret{}, &broker.Failure{Proof: broker.NeverSent, Final: true, Message: "the request could not be made"}
	}
	req.GetBody = nil // without it, net/http cannot send the body a second time
	maps.Copy(req.Header, b.headers)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	req.Header.Set("User-Agent", egress.UserAgent)
	req.Header.Set("Idempotency-Key", r.ID)
	if !b.tool.Has(contract.CapabilityAuth) {
		return req, egress.Secret{}, nil
	}
	token, err := egress.Bearer(b.creds, b.tool.Tool.Name)
	if err != nil {
		return nil, egress.Secret{}, &broker.Failure{Proof: broker.NeverSent, Reason: contract.ReasonBrokerUnavailable, Final: true, Message: err.Error()}
	}
	req.Header.Set("Authorization", "Bearer "+token)
	return req, egress.NewSecret(token), nil
}

// place puts the arguments into URL and body. A body of nil is none.
func (b *Backend) place(args json.RawMessage) (text string, body []byte, err error) {
	if b.url.Fixed() && b.method.HasBody() {
		text, _, err = b.url.Expand(nil)
		return text, args, asFailure(err)
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(args, &members); err != nil {
		return "", nil, refused("the arguments must be an object: the URL takes them by name")
	}
	text, rest, err := b.url.Expand(members)
	switch {
	case err != nil:
		return "", nil, asFailure(err)
	case !b.method.HasBody() && len(rest) > 0:
		return "", nil, refused(fmt.Sprintf("the argument %q has no place in the request: the URL does not name it, and %s has no body", contract.Truncate(first(rest), 64), b.method))
	case !b.method.HasBody():
		return text, nil, nil
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if rest == nil {
		rest = map[string]json.RawMessage{}
	}
	if err := e.Encode(rest); err != nil {
		return "", nil, refused("the arguments are not JSON")
	}
	return text, bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}

func first(m map[string]json.RawMessage) string {
	least := ""
	for name := range m {
		if least == "" || strings.Compare(name, least) < 0 {
			least = name
		}
	}
	return least
}

// refused is a call that cannot be made with these arguments: the program may
// catch that and correct itself.
func refused(why string) *broker.Failure {
	return &broker.Failure{Proof: broker.NeverSent, Reason: contract.ReasonInvalidArguments, Final: true, Message: why}
}

func asFailure(err error) error {
	if f, ok := contract.AsFault(err); ok {
		return refused(f.Message)
	}
	return err
}
