package contract

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Bounds of what is passed through to a model.
const (
	// MaxExtraBodyBytes bounds extraBody, as JSON text.
	MaxExtraBodyBytes = 16 << 10
	// MaxExtraBodyMembers bounds the members of extraBody.
	MaxExtraBodyMembers = 32
)

// ownMembers are the members of a request that belong to the runtime: they say
// what is asked, of which model, in which form, and whose state it continues.
var ownMembers = []string{
	"messages", "input", "instructions", "prompt", "model", "stream", "stream_options", "n",
	"tools", "tool_choice", "parallel_tool_calls", "functions", "function_call", "web_search_options",
	"previous_response_id", "conversation", "background", "include",
}

// gatewayMembers have a gateway in between ask another endpoint or model, or
// carry further words: LiteLLM and OpenRouter know such ones.
var gatewayMembers = []string{
	"models", "route", "fallbacks", "context_window_fallbacks", "content_policy_fallbacks",
	"api_base", "base_url", "api_key", "api_version", "custom_llm_provider", "organization",
	"headers", "extra_headers", "extra_body", "extra_query", "plugins", "mock_response", "mock_tool_calls",
}

// namedMembers have a field of their own, which says so in the run's spec.
var namedMembers = map[string]string{
	"temperature": "temperature", "top_p": "topP", "max_completion_tokens": "maxOutputTokens",
	"max_output_tokens": "maxOutputTokens", "seed": "seed", "stop": "stop",
	"reasoning_effort": "reasoningEffort", "store": "store", "user": "user",
}

// CheckExtraBody refuses an extraBody that is no JSON object, is larger than
// MaxExtraBodyBytes or MaxExtraBodyMembers, names a member twice, or names one that
// belongs to the runtime or has a field of its own. Names are compared without
// regard to case: some servers read them that way. Empty text is no extraBody.
func CheckExtraBody(raw json.RawMessage) error {
	if len(raw) == 0 {
		return nil
	}
	if len(raw) > MaxExtraBodyBytes {
		return fmt.Errorf("extraBody has %d bytes, more than %d", len(raw), MaxExtraBodyBytes)
	}
	names, err := memberNames(raw)
	if err != nil {
		return err
	}
	if len(names) > MaxExtraBodyMembers {
		return fmt.Errorf("extraBody has %d members, more than %d", len(names), MaxExtraBodyMembers)
	}
	for i, name := range names {
		shown := Truncate(name, 64)
		folded := func(x string) bool { return strings.EqualFold(x, name) }
		switch {
		case slices.ContainsFunc(names[:i], folded):
			return fmt.Errorf("extraBody names %q twice", shown)
		case slices.ContainsFunc(ownMembers, folded), slices.ContainsFunc(gatewayMembers, folded):
			return fmt.Errorf("extraBody may not set %q", shown)
		}
		for member, field := range namedMembers {
			if folded(member) {
				return fmt.Errorf("extraBody may not set %q; use the field %s", shown, field)
			}
		}
	}
	return nil
}

// memberNames returns the names of an object's members in order.
func memberNames(raw json.RawMessage) ([]string, error) {
	var object map[string]json.RawMessage
	if err := json.Unmarshal(raw, &object); err != nil || object == nil {
		return nil, fmt.Errorf("extraBody is not a JSON object")
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	if _, err := d.Token(); err != nil {
		return nil, fmt.Errorf("extraBody is not a JSON object")
	}
	var names []string
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil, fmt.Errorf("extraBody is not a JSON object")
		}
		names = append(names, name.(string))
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return nil, fmt.Errorf("extraBody is not a JSON object")
		}
	}
	return names, nil
}

// CheckModelOptions refuses options that a request in the form of the API cannot
// carry: an extraBody that CheckExtraBody refuses or that says again what an option
// says, and seed and stop, which the Responses API does not have.
func CheckModelOptions(api ModelAPI, o ModelOptions) error {
	if err := CheckExtraBody(o.ExtraBody); err != nil {
		return err
	}
	for name, n := range map[string]json.Number{"temperature": o.Temperature, "topP": o.TopP} {
		if n != "" && (!json.Valid([]byte(n)) || !strings.ContainsAny(string(n[0]), "-0123456789")) {
			return fmt.Errorf("%s is not a JSON number", name)
		}
	}
	has := func(member string) bool {
		names, err := memberNames(o.ExtraBody)
		return err == nil && slices.ContainsFunc(names, func(x string) bool { return strings.EqualFold(x, member) })
	}
	switch {
	case o.MaxOutputTokens < 0:
		return fmt.Errorf("maxOutputTokens is negative")
	case o.MaxOutputTokens > 0 && has("max_tokens"):
		return fmt.Errorf("extraBody may not set max_tokens beside maxOutputTokens")
	case api == ModelAPIResponses && o.Seed != nil:
		return fmt.Errorf("the Responses API has no seed")
	case api == ModelAPIResponses && len(o.Stop) > 0:
		return fmt.Errorf("the Responses API has no stop")
	case api == ModelAPIResponses && o.ReasoningEffort != "" && has("reasoning"):
		return fmt.Errorf("extraBody may not set reasoning beside reasoningEffort")
	}
	return nil
}
