package stub

import (
	"encoding/json"
	"errors"
	"strings"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

// Expand writes out every object {"repeat": S, "times": N} of a JSON value as
// the string S written N times, and keeps numbers as they are spelled.
func Expand(text json.RawMessage) (json.RawMessage, error) {
	v, err := contract.DecodeJSON(text)
	if err != nil {
		return nil, err
	}
	if v, err = expand(v); err != nil {
		return nil, err
	}
	return contract.Canonical(v)
}

func expand(v any) (any, error) {
	var err error
	switch x := v.(type) {
	case []any:
		for i := range x {
			if x[i], err = expand(x[i]); err != nil {
				return nil, err
			}
		}
	case map[string]any:
		if s, n, ok := repetition(x); ok {
			if n < 0 || n > maxStringBytes || n*int64(len(s)) > maxStringBytes {
				return nil, errors.New("a repeated string is too long")
			}
			return strings.Repeat(s, int(n)), nil
		}
		for k := range x {
			if x[k], err = expand(x[k]); err != nil {
				return nil, err
			}
		}
	}
	return v, nil
}

func repetition(m map[string]any) (s string, times int64, ok bool) {
	s, isText := m["repeat"].(string)
	n, isNumber := m["times"].(json.Number)
	if !isText || !isNumber || len(m) != 2 {
		return "", 0, false
	}
	times, err := n.Int64()
	return s, times, err == nil
}
