package model

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/runtime/broker/backend/egress"
)

// failure is why one attempt gave no answer.
type failure struct {
	// message completes "the model's endpoint: …"; it holds nothing that came from
	// the endpoint but a status and a short code.
	message string
	// final says that asking again would not help.
	final bool
	// status is the answer's; 0 when there was none.
	status int
	// complaint is what the endpoint said of a request that it refused. It is for
	// reading, never for showing.
	complaint  string
	retryAfter time.Duration
}

// Error implements error.
func (f *failure) Error() string { return f.message }

// fault is the failure as the loop sees it.
func (f *failure) fault(asked int64) *contract.Fault {
	if asked == 1 {
		return contract.Faultf(contract.ReasonModelError, "the model gave no answer: %s", f.message)
	}
	return contract.Faultf(contract.ReasonModelError, "the model gave no answer, asked %d times: %s", asked, f.message)
}

// broken is an answer that is none; the next one may be.
func broken(format string, args ...any) *failure {
	return &failure{message: fmt.Sprintf(format, args...)}
}

// refused is an answer that would be the same again.
func refused(format string, args ...any) *failure {
	return &failure{message: fmt.Sprintf(format, args...), final: true}
}

// asFailure reads an error of an attempt.
func asFailure(err error) *failure {
	if f, ok := errors.AsType[*failure](err); ok {
		return f
	}
	x := egress.Failed(err, false)
	return &failure{message: x.Message, final: x.Final}
}

// errorObject is what endpoints put in the place of an answer: OpenAI's form, or
// one of those that RATIONALE.md lists.
type errorObject struct {
	Type    json.RawMessage `json:"type"`
	Code    json.RawMessage `json:"code"`
	Message json.RawMessage `json:"message"`
	Param   json.RawMessage `json:"param"`
}

// word is a code that may be shown.
var word = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_.-]{0,63}$`)

// code is the most telling code of the object that may be shown, or "", and its
// status, or 0.
func (e errorObject) code() (name string, status int) {
	for _, raw := range []json.RawMessage{e.Code, e.Type} {
		text := strings.Trim(string(raw), `"`)
		if n, err := strconv.Atoi(text); err == nil && n >= 400 && n <= 599 && status == 0 {
			status = n
		}
		if name == "" && word.MatchString(text) && text != "null" && text != "error" {
			name = text
		}
	}
	return name, status
}

// retriable reports whether a status may be another one soon.
func retriable(status int) bool {
	return status == http.StatusRequestTimeout || status == http.StatusTooManyRequests || status >= 500
}

// fromStatus reads an answer that is neither a success nor a redirect.
func fromStatus(status int, h http.Header, body []byte, s egress.Secret) *failure {
	f := &failure{
		message: fmt.Sprintf("it answered with status %d", status), status: status,
		final: !retriable(status), retryAfter: retryAfter(h),
	}
	if s.In(body) {
		return f
	}
	var doc struct {
		Error json.RawMessage `json:"error"`
	}
	f.complaint = string(body)
	if json.Unmarshal(body, &doc) != nil {
		return f
	}
	var e errorObject
	if json.Unmarshal(doc.Error, &e) != nil {
		_ = json.Unmarshal(body, &e) // the object itself, as older vLLM sends it
	}
	if name, _ := e.code(); name != "" {
		f.message += " (" + name + ")"
	}
	return f
}

// failed reads an error object inside a success. It is final when it says that the
// request is at fault.
func (a *answer) failed(raw json.RawMessage) *failure {
	if a.secret.In(raw) {
		return leaked()
	}
	var e errorObject
	_ = json.Unmarshal(raw, &e) // a bare string says nothing that may be shown
	f := broken("its answer is an error")
	name, status := e.code()
	if name != "" {
		f.message += " (" + name + ")"
	}
	f.status = status
	f.final = status != 0 && !retriable(status)
	return f
}

// retryAfter is the wait that an answer asks for. A time of day counts from the
// answer's own Date: the two clocks need not agree.
func retryAfter(h http.Header) time.Duration {
	if ms, err := strconv.ParseUint(strings.TrimSpace(h.Get("Retry-After-Ms")), 10, 32); err == nil {
		return min(time.Duration(ms)*time.Millisecond, maxWait)
	}
	text := strings.TrimSpace(h.Get("Retry-After"))
	if s, err := strconv.ParseFloat(text, 64); err == nil && s >= 0 {
		return time.Duration(min(s, maxWait.Seconds()) * float64(time.Second))
	}
	at, err := http.ParseTime(text)
	if err != nil {
		return 0
	}
	now, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		return 0
	}
	return min(max(at.Sub(now), 0), maxWait)
}
