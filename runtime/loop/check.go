package loop

import (
	"encoding/json"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

// prepare checks the input and compiles the schema of the output. Without a
// schema the sandbox looks at the input, in its own order.
func (r *run) prepare() (*contract.Schema, *contract.Fault) {
	if f := CheckInput(r.Bundle.InputSchema, r.Bundle.Input); f != nil {
		return nil, f
	}
	output, err := contract.CompileSchema(r.Bundle.OutputSchema)
	if err != nil {
		return nil, faultOf(err)
	}
	return output, nil
}

// CheckInput says why an input is not one of the schema, or nil. No input is null.
func CheckInput(schema, input json.RawMessage) *contract.Fault {
	s, err := contract.CompileSchema(schema)
	if err != nil {
		return faultOf(err)
	}
	if s == nil {
		return nil
	}
	if len(input) == 0 {
		input = json.RawMessage("null")
	}
	if err := s.Validate(input); err != nil {
		return contract.Faultf(contract.ReasonInvalidInput, "the input does not match its schema: %v", err)
	}
	return nil
}

// CheckArguments says why the arguments of a model are no input of a recipe, or nil.
func CheckArguments(recipe string, l contract.Limits, input *contract.Schema, args json.RawMessage) *contract.Fault {
	if n, most := int64(len(args)), l.InputBytes; most > 0 && n > most {
		return contract.Faultf(contract.ReasonInvalidArguments, "the input of recipe %s has %d bytes, more than %d", recipe, n, most)
	}
	if err := input.Validate(args); err != nil {
		return contract.Faultf(contract.ReasonInvalidArguments, "the input of recipe %s does not match its schema: %v", recipe, err)
	}
	return nil
}

// CheckOutput says why a program's value is not one of the schema, or nil.
func CheckOutput(schema, value json.RawMessage) *contract.Fault {
	s, err := contract.CompileSchema(schema)
	if err != nil {
		return faultOf(err)
	}
	return checked(s, value)
}

func checked(output *contract.Schema, value json.RawMessage) *contract.Fault {
	if output == nil {
		return nil
	}
	if err := output.Validate(value); err != nil {
		return contract.Faultf(contract.ReasonInvalidOutput, "the output does not match its schema: %v", err)
	}
	return nil
}
