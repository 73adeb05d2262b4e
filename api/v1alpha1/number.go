package v1alpha1

import (
	"encoding/json"
	"fmt"
)

// Number is a JSON number as it is spelled; empty is none. It takes every number
// that the API server lets pass, so that no object is unreadable: a float would
// change the spelling, and with it the execution digest.
// +kubebuilder:validation:Type=number
type Number string

// MarshalJSON writes the number, not a string.
func (n Number) MarshalJSON() ([]byte, error) {
	if n == "" {
		return []byte("null"), nil
	}
	return json.Marshal(json.Number(n))
}

// UnmarshalJSON takes a number, or null for none.
func (n *Number) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		*n = ""
		return nil
	}
	if len(b) == 0 || b[0] != '-' && (b[0] < '0' || b[0] > '9') {
		return fmt.Errorf("%.40q is no number", b)
	}
	*n = Number(b)
	return nil
}
