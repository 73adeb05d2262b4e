package model

import (
	"io"
	"net/http"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/runtime/broker/backend/egress"
)

// maxWireBytes bounds what is read of one answer: a stream wraps each few letters
// of its text into a document of some hundred bytes.
const maxWireBytes = 128 * contract.MaxModelAnswerBytes

// maxRefusalBytes bounds what is read of an answer that is no success.
const maxRefusalBytes = 64 << 10

// client is the egress client behind the door that the SDK may not pass with more
// than the request needs.
func client(b contract.Bundle, https bool, wire int64) *http.Client {
	t := egress.Target{Policy: b.Operator, HTTPS: https}
	if b.Agent.Model.CA != nil {
		t.CAFile = contract.CAPath(b.Agent.Model.Tool)
	}
	out := egress.Client(t)
	out.Transport = &door{next: out.Transport, wire: wire}
	return out
}

// door is a transport that sends few headers, each request once, and bounds what
// is read of an answer.
type door struct {
	next http.RoundTripper
	wire int64
}

// sent are the headers of a request. The SDK has others: versions, system, counts.
var sent = []string{"Accept", "Authorization", "Content-Type"}

// RoundTrip implements http.RoundTripper.
func (d *door) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	all := r.Header
	r.Header = http.Header{"User-Agent": {egress.UserAgent}}
	for _, name := range sent {
		if v := all.Values(name); len(v) > 0 {
			r.Header[name] = v[:1]
		}
	}
	r.GetBody = nil // without it, net/http cannot send the body a second time
	res, err := d.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	res.Body = &bounded{ReadCloser: res.Body, most: d.wire, left: d.wire}
	if res.StatusCode >= 300 { // the SDK reads these whole
		res.Body = &beginning{Reader: io.LimitReader(res.Body, maxRefusalBytes), Closer: res.Body}
	}
	return res, nil
}

// beginning is the part of a body that is read.
type beginning struct {
	io.Reader
	io.Closer
}

// bounded fails behind a number of bytes.
type bounded struct {
	io.ReadCloser
	most, left int64
}

// Read implements io.Reader.
func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, refused("its answer is longer than %d bytes", b.most)
	}
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}
