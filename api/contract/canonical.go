package contract

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

// Canonical returns the one JSON text of v: object keys sorted, no blanks, no
// HTML escapes, numbers spelled as they came. Every digest of a JSON value is
// taken over these bytes.
func Canonical(v any) ([]byte, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("canonical JSON: %w", err)
	}
	x, err := DecodeJSON(b)
	if err != nil {
		return nil, fmt.Errorf("canonical JSON: %w", err)
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(x); err != nil {
		return nil, fmt.Errorf("canonical JSON: %w", err)
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}

// WellFormed reports whether JSON text is UTF-8 and holds no escape that is one
// half of a character. Text that is not reads as another one: Canonical would put
// U+FFFD into its place.
func WellFormed(text []byte) bool { return utf8.Valid(text) && !loneSurrogate(text) }

// DecodeJSON reads exactly one JSON value and keeps numbers as they are spelled
// (json.Number), so that whole numbers beyond 2^53 survive.
func DecodeJSON(b []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var x any
	if err := d.Decode(&x); err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("text after the JSON value")
	}
	return x, nil
}
