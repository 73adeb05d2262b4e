package model

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/runtime/broker/backend/egress"
	"github.com/codeact-dev/codeact-operator/runtime/loop"
)

// maxDocumentBytes bounds one JSON document: an answer that is no stream, or a
// frame of one. Each letter of a text may be an escape of six.
const maxDocumentBytes = 16 * contract.MaxModelAnswerBytes

// attempt is one request and its answer.
type attempt struct {
	client  *Client
	request loop.ModelRequest
	secret  egress.Secret
	// told says that Delta was called.
	told bool
}

// run asks once. The error is a *failure, or one of the transport's.
func (t *attempt) run(ctx context.Context) (loop.ModelAnswer, error) {
	ctx, cancel := context.WithTimeout(ctx, t.client.timeout)
	defer cancel()
	var token string
	if t.client.pin.Auth.Type != contract.AuthNone && t.client.pin.Auth.Type != "" {
		var err error
		if token, err = egress.Bearer(t.client.creds, t.client.pin.Tool); err != nil {
			return loop.ModelAnswer{}, refused("%s", err.Error()) // it holds nothing of the credential
		}
		t.secret = egress.NewSecret(token)
	}
	res, err := t.client.send(ctx, token, t.request)
	if err != nil {
		return loop.ModelAnswer{}, err
	}
	defer func() { _ = res.Body.Close() }()
	if err := t.head(res); err != nil {
		return loop.ModelAnswer{}, err
	}
	b := &answer{secret: t.secret, behind: 2 * len(token)}
	if delta := t.request.Delta; delta != nil {
		b.delta = func(text, reasoning string) {
			t.told = true
			delta(text, reasoning)
		}
	}
	if err := t.read(res.Body, b); err != nil {
		return loop.ModelAnswer{}, err
	}
	return b.whole()
}

// head judges what can be judged before the body.
func (t *attempt) head(res *http.Response) error {
	switch c := res.StatusCode; {
	case c >= 300 && c < 400:
		return refused("it answered with a redirect (%d), and redirects are not followed", c)
	case c < 200 || c > 299:
		body, err := io.ReadAll(io.LimitReader(res.Body, maxRefusalBytes))
		if err != nil {
			body = nil // the status alone is worth telling
		}
		f := fromStatus(c, res.Header, body, t.secret)
		if len(t.request.Tools) > 0 && f.final && strings.Contains(f.complaint, "tool") {
			f.message += "; it names tools, and a model without native ones needs the protocol Code"
		}
		return f
	}
	if e := res.Header.Get("Content-Encoding"); e != "" && !strings.EqualFold(e, "identity") {
		return refused("it answered with a content encoding that nobody asked for")
	}
	return nil
}

// read takes the body as what it looks like: endpoints answer a request for a
// stream with a document, and name either as plain text.
func (t *attempt) read(body io.Reader, b *answer) error {
	r := bufio.NewReaderSize(body, 16<<10)
	first, err := firstByte(r)
	switch {
	case errors.Is(err, io.EOF):
		return broken("its answer is empty")
	case err != nil:
		return err
	case first == '{':
		return t.document(r, b)
	case t.client.form.stream && strings.IndexByte(":deir", first) >= 0: // a comment or a field
		return t.stream(r, b)
	}
	return broken("its answer is neither JSON nor a stream of events")
}

// firstByte returns the first byte that is no white space, and leaves it there.
// Some proxies keep a connection alive with blanks.
func firstByte(r *bufio.Reader) (byte, error) {
	if mark, err := r.Peek(3); err == nil && bytes.Equal(mark, []byte("\xef\xbb\xbf")) {
		_, _ = r.Discard(3) // they are there
	}
	for {
		c, err := r.ReadByte()
		if err != nil {
			return 0, err
		}
		if c != ' ' && c != '\t' && c != '\r' && c != '\n' {
			return c, r.UnreadByte()
		}
	}
}

func (t *attempt) document(r io.Reader, b *answer) error {
	raw, err := io.ReadAll(io.LimitReader(r, maxDocumentBytes+1))
	switch {
	case err != nil:
		return err
	case len(raw) > maxDocumentBytes:
		return refused("its answer is longer than %d bytes", maxDocumentBytes)
	}
	if t.client.pin.API == contract.ModelAPIChat {
		return b.chatDocument(raw)
	}
	return b.responseDocument(raw)
}

func (t *attempt) stream(r *bufio.Reader, b *answer) error {
	s := &events{r: r}
	take := b.chatEvent
	if t.client.pin.API == contract.ModelAPIResponses {
		take = b.responseEvent
	}
	for {
		name, data, err := s.next()
		if errors.Is(err, io.EOF) || err == nil && string(data) == "[DONE]" {
			break
		}
		if err != nil {
			return err
		}
		if err := take(name, data); err != nil {
			return err
		}
		if err := b.tell(false); err != nil {
			return err
		}
	}
	if b.finish == "" {
		return broken("its stream ended without a finish reason")
	}
	return nil
}
