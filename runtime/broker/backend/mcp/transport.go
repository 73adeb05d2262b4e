package mcp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/runtime/broker"
	"github.com/codeact-dev/codeact-operator/runtime/broker/backend/egress"
)

const (
	methodCall   = "tools/call"
	methodListen = "subscriptions/listen"

	headerIdempotency = "Idempotency-Key"
	headerResume      = "Last-Event-Id"

	maxNotice  = 256 << 10 // bytes of one notice of the server
	maxStream  = 8 << 20   // bytes of a stream beside what it was opened for
	maxRefusal = 64 << 10  // bytes of a response that is no success

	// noticeFor bounds how long the server may take to open the stream of its
	// notices: the SDK opens a session no sooner. aside bounds a request that no
	// call waits for.
	noticeFor = 2 * time.Second
	aside     = 10 * time.Second
)

var errLost = errors.New("the answer was lost")

// RoundTrip implements http.RoundTripper: every HTTP request of the session
// passes here, whoever in the SDK thought of it.
func (s *session) RoundTrip(r *http.Request) (*http.Response, error) {
	body, m, err := sending(r)
	if err != nil {
		return nil, err
	}
	x := exchangeOf(r.Context())
	method := ""
	if m != nil && m.Method != nil {
		method = *m.Method
	}
	switch {
	case r.Method == http.MethodGet && x != nil && x.method != "":
		if !x.mayResume() {
			return nil, errLost
		}
		return s.forward(r, nil, x, 0)
	case r.Method == http.MethodGet, method == methodListen:
		return s.notices(r, body)
	case method == methodCall:
		return s.send(r, body, m, x)
	case x != nil && m.asks() && (x.method == "" || x.method == method):
		// a page of the list of tools; or initialize, or whether the server needs it
		x.note(func(x *exchange) { x.id = string(m.ID) })
		return s.forward(r, body, x, 0)
	}
	return s.forward(r, body, nil, aside)
}

// sending reads the request's body and the message in it.
func sending(r *http.Request) ([]byte, *message, error) {
	if r.Body == nil {
		return nil, nil, nil
	}
	defer func() { _ = r.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(r.Body, contract.MaxArgumentBytes+maxNotice))
	if err != nil {
		return nil, nil, err
	}
	return body, parse(body), nil
}

// send sends the call of a tool, once, if it is one that was made here.
func (s *session) send(r *http.Request, body []byte, m *message, x *exchange) (*http.Response, error) {
	if x == nil || x.method != methodCall {
		return nil, errors.New("a call of a tool that nobody made")
	}
	ctx, sent := egress.Watch(r.Context())
	if !x.post(string(m.ID), sent) {
		x.lost()
		return nil, errLost
	}
	return s.forward(r.WithContext(ctx), body, x, 0)
}

// notices opens a stream on which the server says what nobody asked for. A
// server that has none, or none in time, is as one that says so (405).
func (s *session) notices(r *http.Request, body []byte) (*http.Response, error) {
	res, err := s.forward(r, body, nil, noticeFor)
	if err != nil || res.StatusCode != http.StatusOK || mediaType(res) != typeEvents {
		if err == nil {
			_ = res.Body.Close()
		}
		return &http.Response{
			Status: "405 Method Not Allowed", StatusCode: http.StatusMethodNotAllowed, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
			Header: http.Header{}, Body: http.NoBody, Request: r,
		}, nil
	}
	return res, nil
}

const (
	typeEvents = "text/event-stream"
	typeJSON   = "application/json"
)

func mediaType(res *http.Response) string {
	t, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	return t
}

// forward sends the request as this session's, for as long as the session is
// there, and bounds the response. Within bounds the time until its headers.
func (s *session) forward(r *http.Request, body []byte, x *exchange, within time.Duration) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(r.Context())
	stop := context.AfterFunc(s.ctx, func() { cancel(errOver) })
	release := func() { stop(); cancel(nil) }
	if within > 0 {
		t := time.AfterFunc(within, func() { cancel(context.DeadlineExceeded) })
		defer t.Stop()
	}
	out := r.Clone(ctx)
	out.GetBody = nil // without it, net/http cannot send the body a second time
	if body != nil {
		out.Body, out.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	} else {
		out.Body = nil
	}
	if err := s.sign(out, x); err != nil {
		release()
		return nil, err
	}
	res, err := s.client.Transport.RoundTrip(out)
	if err != nil {
		release()
		return nil, err
	}
	res.Body = &released{res.Body, release}
	if e := res.Header.Get("Content-Encoding"); e != "" && !strings.EqualFold(e, "identity") {
		if x != nil {
			x.fail(&broker.Failure{Message: "it answered with a content encoding that nobody asked for"})
		}
		_ = res.Body.Close()
		return nil, errors.New("an encoded response")
	}
	s.bound(res, x)
	return res, nil
}

// sign puts onto the request what it carries of the run: the credential as it is
// now, and, for the call of a tool, what the tool's capabilities project.
func (s *session) sign(r *http.Request, x *exchange) error {
	r.Header.Set("User-Agent", egress.UserAgent)
	tool := s.tool
	if x != nil {
		tool = x.tool
		if x.method == methodCall {
			maps.Copy(r.Header, x.header)
		}
	}
	if !s.key.auth {
		return nil
	}
	token, err := egress.Bearer(s.creds, tool)
	if err != nil {
		if x != nil {
			x.fail(&broker.Failure{Proof: broker.NeverSent, Reason: contract.ReasonBrokerUnavailable, Message: err.Error(), Final: true})
			x.lost()
		}
		return errors.New("no credential")
	}
	s.knows(token)
	r.Header.Set("Authorization", "Bearer "+token)
	return nil
}

// bound puts the body of a response behind its bounds, and keeps the status of
// the response to a POST.
func (s *session) bound(res *http.Response, x *exchange) {
	good := res.StatusCode >= 200 && res.StatusCode < 300
	if x != nil && res.Request.Method == http.MethodPost {
		x.note(func(x *exchange) { x.status, x.retry = res.StatusCode, retryAfter(res) })
	}
	switch {
	case !good:
		res.Body = &limited{io.LimitReader(res.Body, maxRefusal), res.Body}
	case mediaType(res) == typeEvents:
		res.Body = newEvents(res.Body, s, x)
	case mediaType(res) == typeJSON && x != nil:
		res.Body = &whole{body: res.Body, s: s, x: x}
	default:
		res.Body = &limited{io.LimitReader(res.Body, maxRefusal), res.Body}
	}
}

// retryAfter reads the wait in seconds that a response asks for.
func retryAfter(res *http.Response) time.Duration {
	n, err := strconv.Atoi(res.Header.Get("Retry-After"))
	if err != nil || n < 0 || n > 24*60*60 {
		return 0
	}
	return time.Duration(n) * time.Second
}

type limited struct {
	io.Reader
	io.Closer
}

// released gives the request's context back once its body is closed.
type released struct {
	io.ReadCloser
	release func()
}

// Close implements io.Closer.
func (r *released) Close() error {
	defer r.release()
	return r.ReadCloser.Close()
}

// refused is what a status without success says of the call.
func refused(status int, retry time.Duration) *broker.Failure {
	f := &broker.Failure{Message: fmt.Sprintf("it answered with status %d", status), RetryAfter: retry}
	switch {
	case status == http.StatusAccepted:
		return &broker.Failure{Reason: contract.ReasonCallDeferred, Message: "it will answer later (202 Accepted), and a run never waits for that"}
	case status == http.StatusTemporaryRedirect, status == http.StatusPermanentRedirect:
		f.Proof, f.Message = broker.Answered, fmt.Sprintf("it answered with a redirect (%d), and redirects are not followed", status)
	case status >= 300 && status < 400:
		f.Message = fmt.Sprintf("it answered with a redirect (%d), and redirects are not followed", status)
	case status == http.StatusRequestTimeout, status == http.StatusTooManyRequests:
	case status >= 400 && status < 500:
		f.Proof, f.Message = broker.Answered, fmt.Sprintf("it refused the call with status %d", status)
	}
	return f
}
