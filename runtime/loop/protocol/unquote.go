package protocol

import (
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// unquote returns what a JSON string, quotes included, says. The text must be one
// that the scanner found whole. lone reports a surrogate without its other half,
// which no UTF-8 can carry: such a one is spelled as three bytes of its own, so
// that two different strings never become the same.
func unquote(raw string) (text string, lone bool) {
	raw = raw[1 : len(raw)-1]
	if strings.IndexByte(raw, '\\') < 0 {
		return raw, false
	}
	var b strings.Builder
	b.Grow(len(raw))
	for {
		plain, rest, found := strings.Cut(raw, `\`)
		b.WriteString(plain)
		if !found {
			return b.String(), lone
		}
		c := rest[0]
		raw = rest[1:]
		if c != 'u' {
			b.WriteByte(escaped(c))
			continue
		}
		r := unit(raw)
		raw = raw[4:]
		if !utf16.IsSurrogate(r) {
			b.WriteRune(r)
			continue
		}
		if strings.HasPrefix(raw, `\u`) {
			if pair := utf16.DecodeRune(r, unit(raw[2:])); pair != utf8.RuneError {
				b.WriteRune(pair)
				raw = raw[6:]
				continue
			}
		}
		lone = true
		b.Write([]byte{byte(0xE0 | r>>12), byte(0x80 | r>>6&0x3F), byte(0x80 | r&0x3F)})
	}
}

// unit is the code unit of four hexadecimal digits.
func unit(digits string) rune {
	n, _ := strconv.ParseUint(digits[:4], 16, 16) // The scanner saw four digits.
	return rune(n)
}

func escaped(c byte) byte {
	switch c {
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	}
	return c
}
