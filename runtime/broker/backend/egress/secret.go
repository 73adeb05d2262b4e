package egress

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"strings"
	"unicode/utf8"
)

// minSecretBytes is the shortest credential that Secret looks for: a shorter one
// would be found by chance.
const minSecretBytes = 8

// Secret finds one credential in what a tool answered, so that a tool that
// shows what it was sent gives it to nobody. The zero Secret finds nothing.
type Secret struct{ spellings [][]byte }

// NewSecret returns the finder of a credential: as it is, in hexadecimal, and in
// base64 at any place of a longer text. One of less than 8 bytes is not looked for.
func NewSecret(credential string) Secret {
	if len(credential) < minSecretBytes {
		return Secret{}
	}
	raw := []byte(credential)
	s := Secret{[][]byte{raw, []byte(hex.EncodeToString(raw)), []byte(strings.ToUpper(hex.EncodeToString(raw)))}}
	for shift := range 3 {
		// Behind shift other bytes, the digits from first to last depend on the
		// credential alone.
		long := append(make([]byte, shift), raw...)
		first, last := (shift*8+5)/6, len(long)*8/6
		s.spellings = append(s.spellings,
			[]byte(base64.RawStdEncoding.EncodeToString(long)[first:last]),
			[]byte(base64.RawURLEncoding.EncodeToString(long)[first:last]))
	}
	return s
}

// escapes is how many escapes In looks behind: of JSON in a string of JSON, say.
const escapes = 2

// In reports whether text holds the credential, also behind the escapes of JSON
// strings and of URLs, in any order of two.
func (s Secret) In(text []byte) bool {
	return len(s.spellings) > 0 && s.behind(text, escapes)
}

func (s Secret) behind(text []byte, escapes int) bool {
	switch {
	case len(text) == 0:
		return false
	case s.within(text):
		return true
	case escapes == 0:
		return false
	}
	return s.behind(unescapeJSON(text), escapes-1) || s.behind(unescapeURL(text), escapes-1)
}

func (s Secret) within(text []byte) bool {
	for _, x := range s.spellings {
		if bytes.Contains(text, x) {
			return true
		}
	}
	return false
}

// Clean returns text, or "" when the credential is in it.
func (s Secret) Clean(text string) string {
	if s.In([]byte(text)) {
		return ""
	}
	return text
}

// unescapeJSON resolves the escapes of JSON strings wherever they stand. Text
// without any is nil, since there is nothing more to find in it.
func unescapeJSON(text []byte) []byte {
	if bytes.IndexByte(text, '\\') < 0 {
		return nil
	}
	out := make([]byte, 0, len(text))
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' || i+1 == len(text) {
			out = append(out, text[i])
			continue
		}
		i++
		switch c := text[i]; c {
		case 'u':
			var b [2]byte
			if i+4 < len(text) {
				if _, err := hex.Decode(b[:], text[i+1:i+5]); err == nil {
					out = utf8.AppendRune(out, rune(b[0])<<8|rune(b[1]))
					i += 4
					continue
				}
			}
			out = append(out, c)
		case 'b', 'f', 'n', 'r', 't':
			out = append(out, ' ') // no credential holds one of these
		default:
			out = append(out, c)
		}
	}
	return out
}

// unescapeURL resolves percent-encoding wherever it stands, as unescapeJSON does.
func unescapeURL(text []byte) []byte {
	if bytes.IndexByte(text, '%') < 0 {
		return nil
	}
	out := make([]byte, 0, len(text))
	for i := 0; i < len(text); i++ {
		var b [1]byte
		if text[i] == '%' && i+2 < len(text) {
			if _, err := hex.Decode(b[:], text[i+1:i+3]); err == nil {
				out = append(out, b[0])
				i += 2
				continue
			}
		}
		out = append(out, text[i])
	}
	return out
}
