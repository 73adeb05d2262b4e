package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

// maxToolNameBytes is more than any tool's name has; a longer one is not copied
// out of the VM.
const maxToolNameBytes = 4096

// toolsCall answers the prelude's host function: four numbers that qjs wants,
// then the tool's name, and the arguments as JSON text. Whatever ends the
// execution leaves as a panic, which no JavaScript can catch.
func (x *execution) toolsCall(ctx context.Context, args []uint64) uint64 {
	if !x.live {
		panic(&terminal{contract.Faultf(contract.ReasonJavaScriptError, "tools.call is not available while the program is being defined; call it inside main")})
	}
	if len(args) != 6 {
		panic(errForged)
	}
	var out json.RawMessage
	name, text, err := x.callText(ctx, args[4], args[5])
	if err == nil {
		out, err = x.dispatch(ctx, name, text)
	}
	if f := stopFault(x.parent, x.ctx); f != nil {
		if own, ok := contract.AsFault(err); ok && own.Reason.Class() != contract.ClassCatchable {
			f = contract.Worst(f, own)
		}
		panic(&terminal{f})
	}
	answer, fault := x.encode(out, err)
	if fault != nil {
		panic(&terminal{fault})
	}
	v, err := x.in.newString(ctx, answer...)
	if err != nil {
		panic(err)
	}
	return v
}

// callText copies a call's name and arguments out of the VM. Arguments that no
// tool takes are not copied, and are a fault that the program may catch.
func (x *execution) callText(ctx context.Context, nameValue, argsValue uint64) (name string, args []byte, err error) {
	b, err := x.in.text(ctx, nameValue, maxToolNameBytes)
	if errors.Is(err, errTooLong) {
		panic(&terminal{contract.Faultf(contract.ReasonToolNotAllowed, "no tool has so long a name")})
	}
	if err != nil {
		panic(err)
	}
	args, err = x.in.text(ctx, argsValue, contract.MaxArgumentBytes)
	if errors.Is(err, errTooLong) {
		return "", nil, contract.Faultf(contract.ReasonInvalidArguments, "the arguments have more than %d bytes", contract.MaxArgumentBytes)
	}
	if err != nil {
		panic(err)
	}
	return strings.ToValidUTF8(string(b), "\uFFFD"), args, nil
}

// dispatch hands the call to the Caller.
func (x *execution) dispatch(ctx context.Context, name string, args []byte) (json.RawMessage, error) {
	if !crosses(args) {
		return nil, contract.Faultf(contract.ReasonInvalidArguments, "the arguments are nested too deeply")
	}
	if x.caller == nil {
		return nil, contract.Faultf(contract.ReasonToolNotAllowed, "the program has no tools")
	}
	x.calls++
	return x.caller.Call(ctx, name, args)
}

// encode makes the text, in parts, that the prelude reads: [true, value] or
// [false, code, message]. The fault, if any, ends the execution.
func (x *execution) encode(out json.RawMessage, err error) ([][]byte, *contract.Fault) {
	if err == nil {
		if int64(len(out)) > x.limits.OutputBytes {
			return nil, contract.Faultf(contract.ReasonChildResultTooLarge, "the tool's result has %d bytes, more than limits.outputBytes, %d", len(out), x.limits.OutputBytes)
		}
		if !crosses(out) {
			return nil, contract.Faultf(contract.ReasonChildResultInvalid, "the tool's result is not JSON text in UTF-8")
		}
		return [][]byte{[]byte("[true,"), out, []byte("]")}, nil
	}
	f, ok := contract.AsFault(err)
	if !ok { // its text may hold anything, so it is not shown
		return nil, contract.Faultf(contract.ReasonBrokerUnavailable, "the tool could not be reached")
	}
	if f.Reason.Class() != contract.ClassCatchable {
		return nil, f
	}
	code := string(f.Reason)
	if c, ok := errors.AsType[Coder](err); ok {
		code = c.GuestCode()
	}
	b, err := json.Marshal([]any{false, code, f.Message})
	if err != nil {
		return nil, contract.Faultf(contract.ReasonBrokerUnavailable, "the tool's failure cannot be shown")
	}
	return [][]byte{b}, nil
}
