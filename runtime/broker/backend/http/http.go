// Package http reaches tools by one POST each: the arguments go out as JSON, the
// result comes back as JSON. A request leaves at most once, goes to exactly the
// granted address, and what is not proven about it is never claimed.
package http

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strings"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/runtime/broker"
	"github.com/codeact-dev/codeact-operator/runtime/broker/backend/egress"
)

// maxHashedBytes bounds how much of an answer that is too large is read for its
// digest.
const maxHashedBytes = 16 << 20

// Backend reaches one tool at one URL.
type Backend struct {
	client  *http.Client
	url     string
	tool    contract.PinnedTool
	headers http.Header // of projected capabilities
	creds   egress.Credentials
}

// New returns the backend of a pinned tool with an HTTP backend. The bundle
// gives what its capabilities project into the calls. A URL that is not plain
// http or https, or that carries a credential, is an error.
func New(b contract.Bundle, t contract.PinnedTool, creds egress.Credentials) (*Backend, error) {
	if t.Backend.HTTP == nil {
		return nil, fmt.Errorf("tool %s has no HTTP backend", t.Tool.Name)
	}
	u, err := url.Parse(t.Backend.HTTP.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("the URL of tool %s is not an http or https address", t.Tool.Name)
	}
	if u.User != nil {
		return nil, fmt.Errorf("the URL of tool %s carries a user or password", t.Tool.Name)
	}
	u.Fragment = ""
	h, err := egress.Headers(b, t)
	if err != nil {
		return nil, err
	}
	return &Backend{client: egress.Client(target(b, t, u.Scheme)), url: u.String(), tool: t, headers: h, creds: creds}, nil
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
	req, err := b.request(ctx, r)
	if err != nil {
		return broker.Answer{}, err
	}
	res, err := b.client.Do(req)
	if err != nil {
		return broker.Answer{}, egress.Failed(err, sent())
	}
	defer func() { _ = res.Body.Close() }()
	return answer(res, r.MaxBytes)
}

func (b *Backend) request(ctx context.Context, r broker.Request) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, b.url, bytes.NewReader(r.Arguments))
	if err != nil {
		return nil, &broker.Failure{Proof: broker.NeverSent, Message: "the request could not be made"}
	}
	req.GetBody = nil // without it, net/http cannot send the body a second time
	maps.Copy(req.Header, b.headers)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", egress.UserAgent)
	req.Header.Set("Idempotency-Key", r.ID)
	if !b.tool.Has(contract.CapabilityAuth) {
		return req, nil
	}
	token, err := egress.Bearer(b.creds, b.tool.Tool.Name)
	if err != nil {
		return nil, &broker.Failure{Proof: broker.NeverSent, Reason: contract.ReasonBrokerUnavailable, Message: err.Error()}
	}
	req.Header.Set("Authorization", "Bearer "+token)
	return req, nil
}

// answer reads a response. Nothing of its body gets into a message.
func answer(res *http.Response, most int64) (broker.Answer, error) {
	switch c := res.StatusCode; {
	case c == http.StatusAccepted:
		return broker.Answer{}, &broker.Failure{Reason: contract.ReasonCallDeferred, Message: "it will answer later (202 Accepted), and a run never waits for that"}
	case c == http.StatusNoContent:
		return broker.Answer{Body: []byte("null"), Bytes: 4, Digest: contract.Digest([]byte("null"))}, nil
	case c >= 300 && c < 400:
		// 307 and 308 ask for the same request elsewhere. The others are also what
		// servers send after they did the work, to show where its result is.
		f := &broker.Failure{Message: fmt.Sprintf("it answered with a redirect (%d), and redirects are not followed", c)}
		if c == http.StatusTemporaryRedirect || c == http.StatusPermanentRedirect {
			f.Proof = broker.Answered
		}
		return broker.Answer{}, f
	case c >= 400 && c < 500:
		return broker.Answer{}, &broker.Failure{Proof: broker.Answered, Message: fmt.Sprintf("it refused the call with status %d", c)}
	case c < 200 || c > 299:
		return broker.Answer{}, &broker.Failure{Message: fmt.Sprintf("it answered with status %d", c)}
	}
	if e := res.Header.Get("Content-Encoding"); e != "" && !strings.EqualFold(e, "identity") {
		return broker.Answer{}, &broker.Failure{Message: "it answered with a content encoding that nobody asked for"}
	}
	return read(res.Body, most)
}

// read keeps at most one byte more than allowed, and hashes a longer answer up
// to a bound of its own.
func read(r io.Reader, most int64) (broker.Answer, error) {
	body, err := io.ReadAll(io.LimitReader(r, most+1))
	if err != nil {
		return broker.Answer{}, &broker.Failure{Message: "its answer broke off"}
	}
	ans := broker.Answer{Body: body, Bytes: int64(len(body))}
	h := sha256.New()
	_, _ = h.Write(body)
	if ans.Bytes > most {
		n, whole := hashRest(h, r)
		ans.Bytes += n
		if !whole {
			return ans, nil
		}
	}
	ans.Digest = "sha256:" + hex.EncodeToString(h.Sum(nil))
	return ans, nil
}

// hashRest hashes what is behind the allowed bytes, for the digest of an answer
// that is too large anyway. Whole says that nothing is behind that.
func hashRest(h io.Writer, r io.Reader) (n int64, whole bool) {
	n, err := io.Copy(h, io.LimitReader(r, maxHashedBytes+1))
	return n, err == nil && n <= maxHashedBytes
}
