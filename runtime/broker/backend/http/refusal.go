package http

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/runtime/broker"
)

const (
	// problemType is a problem document of RFC 9457.
	problemType = "application/problem+json"
	// maxProblemBytes bounds what a problem document says in a message.
	maxProblemBytes = 512
	// maxRetryAfter bounds the wait that an answer may ask for.
	maxRetryAfter = 24 * time.Hour
)

// refusal reads a response that is neither a success nor a redirect. A 4xx is the
// tool's word that it did not do it, but for 408 and 429: those are said by
// whatever stands before the tool, too, and say nothing of an earlier attempt.
func (r *reply) refusal() *broker.Failure {
	code := r.res.StatusCode
	f := &broker.Failure{Message: fmt.Sprintf("it answered with status %d", code)}
	switch {
	case code == http.StatusRequestTimeout, code == http.StatusTooManyRequests:
	case code >= 400 && code < 500:
		f.Proof, f.Message = broker.Answered, fmt.Sprintf("it refused the call with status %d", code)
	}
	f.RetryAfter = retryAfter(r.res.Header)
	r.evidence(f)
	return r.fail(f)
}

// evidence adds to f what the body says, if it is whole and fits.
func (r *reply) evidence(f *broker.Failure) {
	most, kind := r.most, r.mediaType()
	if kind == contract.ResultMediaType {
		most = contract.MaxToolResultBytes(most)
	}
	body, err := io.ReadAll(io.LimitReader(r.res.Body, most+1))
	if err != nil || int64(len(body)) > most || !json.Valid(body) || r.secret.In(body) {
		return
	}
	switch kind {
	case contract.ResultMediaType:
		x, err := contract.DecodeToolResult(body)
		if err != nil {
			return
		}
		body, f.Media, f.Receipt = x.Value, x.Media, r.receipt(x.Receipt)
		if int64(len(body)) > r.most {
			return
		}
	case problemType:
		if said := problem(body); said != "" {
			f.Message += ": " + said
		}
	}
	f.Result = body
}

// problem is what a problem document says to people: its detail, else its title.
func problem(body []byte) string {
	var p map[string]json.RawMessage
	if json.Unmarshal(body, &p) != nil {
		return ""
	}
	for _, member := range []string{"detail", "title"} {
		var s string
		if json.Unmarshal(p[member], &s) != nil {
			continue
		}
		s = strings.TrimSpace(strings.Map(func(c rune) rune {
			if unicode.IsPrint(c) {
				return c
			}
			return ' '
		}, s))
		if s != "" {
			return contract.Truncate(s, maxProblemBytes)
		}
	}
	return ""
}

// retryAfter is the wait that a response asks for, at most maxRetryAfter. A time
// of day counts from the response's own Date: the two clocks need not agree.
func retryAfter(h http.Header) time.Duration {
	text := strings.TrimSpace(h.Get("Retry-After"))
	if n, err := strconv.ParseUint(text, 10, 32); err == nil {
		return min(time.Duration(n)*time.Second, maxRetryAfter)
	}
	at, err := http.ParseTime(text)
	if err != nil {
		return 0
	}
	now, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		return 0
	}
	return min(max(at.Sub(now), 0), maxRetryAfter)
}
