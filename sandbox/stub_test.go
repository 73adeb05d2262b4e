package sandbox

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

// stub is one tool of the vector files.
type stub struct {
	Returns      json.RawMessage `json:"returns"`
	Echo         bool            `json:"echo"`
	Fails        *stubFailure    `json:"fails"`
	Approval     bool            `json:"approval"`
	Deferred     bool            `json:"deferred"`
	Uncertain    bool            `json:"uncertain"`
	ReturnsBytes int             `json:"returnsBytes"`
	SleepMs      int             `json:"sleepMs"`
	InputSchema  json.RawMessage `json:"inputSchema"`
	OutputSchema json.RawMessage `json:"outputSchema"`
}

type stubFailure struct{ Message string }

// stubs is a Caller that stands in for the broker: the projection, the budget
// and the latch, but no schema beyond the words that the vectors use.
type stubs struct {
	tools   map[string]stub
	limits  contract.Limits
	entered int
	charged int64
}

func (s *stubs) Call(ctx context.Context, name string, args json.RawMessage) (json.RawMessage, error) {
	t, ok := s.tools[name]
	switch {
	case s.limits.OutputBytes < contract.EvidenceFloorBytes:
		return nil, contract.Faultf(contract.ReasonEvidenceBudgetTooSmall, "too small")
	case !ok:
		return nil, contract.Faultf(contract.ReasonToolNotAllowed, "%s is not allowed", name)
	case !matches(t.InputSchema, args):
		return nil, contract.Faultf(contract.ReasonInvalidArguments, "arguments do not match")
	case t.Approval:
		return nil, contract.Faultf(contract.ReasonApprovalRequired, "approval required")
	case t.Deferred:
		return nil, contract.Faultf(contract.ReasonCallDeferred, "deferred")
	case s.charged >= s.limits.Calls():
		return nil, contract.Faultf(contract.ReasonCallLimitExceeded, "too many calls")
	}
	s.charged++
	s.entered++
	switch {
	case t.Uncertain:
		return nil, contract.Faultf(contract.ReasonEffectUncertain, "uncertain")
	case t.Fails != nil:
		return nil, contract.Faultf(contract.ReasonToolFailed, "%s", t.Fails.Message)
	case t.ReturnsBytes > 0:
		return json.RawMessage(`"` + strings.Repeat("x", t.ReturnsBytes-2) + `"`), nil
	case t.SleepMs > 0:
		select {
		case <-time.After(time.Duration(t.SleepMs) * time.Millisecond):
			return json.RawMessage("null"), nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	case t.Echo:
		return args, nil
	}
	out := expand(t.Returns)
	if !matches(t.OutputSchema, out) {
		return nil, contract.Faultf(contract.ReasonChildResultInvalid, "result does not match")
	}
	return out, nil
}

// matches knows type, required, properties and additionalProperties.
func matches(schema, value json.RawMessage) bool {
	var s struct {
		Type       string                     `json:"type"`
		Required   []string                   `json:"required"`
		Properties map[string]json.RawMessage `json:"properties"`
		Additional *bool                      `json:"additionalProperties"`
	}
	if len(schema) == 0 || json.Unmarshal(schema, &s) != nil {
		return true
	}
	var v any
	if json.Unmarshal(value, &v) != nil {
		return false
	}
	object, isObject := v.(map[string]any)
	number, isNumber := v.(float64)
	switch s.Type {
	case "object":
		if !isObject {
			return false
		}
	case "integer":
		if !isNumber || number != float64(int64(number)) {
			return false
		}
	}
	for _, r := range s.Required {
		if _, ok := object[r]; !ok {
			return false
		}
	}
	for k := range object {
		if _, ok := s.Properties[k]; !ok && s.Additional != nil && !*s.Additional {
			return false
		}
	}
	return true
}

// expand replaces {"repeat": s, "times": n} by the string that it stands for.
func expand(raw json.RawMessage) json.RawMessage {
	d := json.NewDecoder(strings.NewReader(string(raw)))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		panic(fmt.Sprintf("bad vector: %v in %s", err, raw))
	}
	w, changed := expandValue(v)
	if !changed {
		return raw
	}
	out, err := json.Marshal(w)
	if err != nil {
		panic(err)
	}
	return out
}

func expandValue(v any) (any, bool) {
	changed := false
	switch v := v.(type) {
	case []any:
		for i := range v {
			var c bool
			v[i], c = expandValue(v[i])
			changed = changed || c
		}
	case map[string]any:
		s, isString := v["repeat"].(string)
		if n, ok := v["times"].(json.Number); ok && isString && len(v) == 2 {
			times, _ := n.Int64()
			return strings.Repeat(s, int(times)), true
		}
		for k := range v {
			var c bool
			v[k], c = expandValue(v[k])
			changed = changed || c
		}
	}
	return v, changed
}

// sameJSON compares as JSON values, numbers as doubles.
func sameJSON(a, b json.RawMessage) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}
