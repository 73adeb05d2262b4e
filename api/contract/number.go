package contract

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"
)

// maxExponent bounds the exponent that a number is written with. A double that is
// neither 0 nor infinite needs less, and a schema's rules compute exactly: the
// cost of a number grows with its exponent, not with its length.
const maxExponent = 999

var errNumber = errors.New("a number is beyond what a double can hold")

// checkNumbers refuses a decoded value that holds a number beyond the doubles
// that a program would see in its place.
func checkNumbers(x any) error {
	switch x := x.(type) {
	case json.Number:
		return checkNumber(string(x))
	case []any:
		for _, v := range x {
			if err := checkNumbers(v); err != nil {
				return err
			}
		}
	case map[string]any:
		for _, v := range x {
			if err := checkNumbers(v); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkNumber(s string) error {
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		if e, err := strconv.Atoi(s[i+1:]); err != nil || e > maxExponent || e < -maxExponent {
			return errNumber
		}
	}
	if _, err := strconv.ParseFloat(s, 64); err != nil {
		return errNumber
	}
	return nil
}
