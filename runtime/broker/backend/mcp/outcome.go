package mcp

import (
	"errors"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/codeact-dev/codeact-operator/runtime/broker"
	"github.com/codeact-dev/codeact-operator/runtime/broker/backend/egress"
)

// outcome says what became of a call, from what the wire showed of it.
func (b *Backend) outcome(s *session, x *exchange, err error, r broker.Request) (broker.Answer, *broker.Failure) {
	left := x.left()
	x.mu.Lock()
	defer x.mu.Unlock()
	switch {
	case x.answer != nil && x.answer.Error != nil:
		return broker.Answer{}, s.rpcFailure(x.answer.Error)
	case x.answer != nil:
		return b.result(s, x.answer.Result, r.MaxBytes)
	case x.tooLarge > 0:
		// More than any value with its pictures may have: it was not read to its end,
		// so its digest is not known.
		return broker.Answer{Bytes: max(x.tooLarge, r.MaxBytes+1)}, nil
	case x.failure != nil:
		return broker.Answer{}, x.failure
	case !left:
		return broker.Answer{}, failed(err, false)
	case x.flood:
		return broker.Answer{}, &broker.Failure{Message: "its server sent too much that was no answer"}
	case x.status != 0 && x.status != 200:
		return broker.Answer{}, refused(x.status, x.retry)
	case x.status == 200:
		return broker.Answer{}, &broker.Failure{Message: "its answer was lost"}
	}
	return broker.Answer{}, failed(err, true)
}

// unopened is the failure of what comes before the call: nothing of it was sent.
func unopened(what string, x *exchange, err error) *broker.Failure {
	f := failed(err, false)
	if x != nil {
		x.mu.Lock()
		defer x.mu.Unlock()
		switch {
		case x.failure != nil:
			f = x.failure
		case x.status > 299:
			f = refused(x.status, x.retry)
			f.Final = f.Proof == broker.Answered
			f.Reason = ""
		}
	}
	f.Proof = broker.NeverSent
	if f.Reason == "" {
		f.Message = what + ": " + f.Message
	}
	return f
}

// rpcFailure is what a JSON-RPC error proves. Those by which a server turns a
// request away prove that the tool did nothing; every other one, an internal
// error among them, may come from the midst of its work.
func (s *session) rpcFailure(e *rpcError) *broker.Failure {
	switch e.Code {
	case jsonrpc.CodeInvalidParams, jsonrpc.CodeMethodNotFound, jsonrpc.CodeInvalidRequest, jsonrpc.CodeParseError:
		f := &broker.Failure{Proof: broker.Answered, Message: fmt.Sprintf("its server refused the call (code %d)", e.Code)}
		if text := s.clean(e.Message, maxText); text != "" {
			f.Message += ": " + text
		}
		return f
	}
	return &broker.Failure{Message: fmt.Sprintf("its server answered with error %d", e.Code)}
}

// failed says in the words of the broker why something did not come about: the
// error's own text may hold what the server sent.
func failed(err error, left bool) *broker.Failure {
	f := egress.Failed(err, left)
	switch {
	case errors.Is(err, errList):
		f.Message, f.Final = errList.Error(), true
	case errors.Is(err, errOver):
		f.Message = errOver.Error()
	}
	return f
}
