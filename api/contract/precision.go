package contract

import (
	"bytes"
	"math/big"
	"math/bits"
)

// doubleBits is how many bits the whole part of a double has.
const doubleBits = 53

// PrecisionLoss reports whether JSON text has a whole number, however it is
// spelled, that no double is equal to: a JavaScript program sees another one in its
// place. Fractions do not count, for nearly none of them is exact. It is one pass
// that allocates nothing unless a number has more than 19 digits.
func PrecisionLoss(jsonText []byte) bool {
	for i := 0; i < len(jsonText); {
		switch c := jsonText[i]; {
		case c == '"':
			i = afterString(jsonText, i+1)
		case c >= '0' && c <= '9':
			end := i + 1
			for end < len(jsonText) && numberByte[jsonText[end]] {
				end++
			}
			if end-i > 15 || !plain(jsonText[i:end]) {
				if losesPrecision(jsonText[i:end]) {
					return true
				}
			}
			i = end
		default:
			i++
		}
	}
	return false
}

// afterString returns the index after the string whose text begins at i.
func afterString(b []byte, i int) int {
	for i < len(b) {
		n := bytes.IndexByte(b[i:], '"')
		if n < 0 {
			return len(b)
		}
		end := i + n
		escapes := 0
		for end-escapes > i && b[end-escapes-1] == '\\' {
			escapes++
		}
		i = end + 1
		if escapes%2 == 0 {
			break
		}
	}
	return i
}

var numberByte = func() (t [256]bool) {
	for _, c := range "0123456789.eE+-" {
		t[c] = true
	}
	return t
}()

// plain reports whether a number is digits and perhaps a point: 15 of them are
// always exact.
func plain(b []byte) bool { return bytes.IndexByte(b, 'e') < 0 && bytes.IndexByte(b, 'E') < 0 }

// losesPrecision reads a number without its sign as significant digits times a
// power of ten.
func losesPrecision(b []byte) bool {
	digits, exponent := decimal(b)
	if len(digits) == 0 || exponent < 0 {
		return false // zero, or a fraction
	}
	if len(digits)+exponent > 309 {
		return true // beyond the doubles
	}
	if len(digits) > 19 {
		return bigLosesPrecision(digits, exponent)
	}
	var m uint64
	for _, d := range digits {
		if d != '.' {
			m = m*10 + uint64(d-'0')
		}
	}
	// A power of two is no bit of the whole part, so 10 counts as 5.
	m >>= bits.TrailingZeros64(m)
	for ; exponent > 0 && bits.Len64(m) <= doubleBits; exponent-- {
		m *= 5
	}
	return bits.Len64(m) > doubleBits
}

func bigLosesPrecision(digits []byte, exponent int) bool {
	text := append(bytes.ReplaceAll(digits, []byte("."), nil), bytes.Repeat([]byte("0"), exponent)...)
	x, ok := new(big.Int).SetString(string(text), 10)
	return !ok || x.BitLen()-int(x.TrailingZeroBits()) > doubleBits || x.BitLen() > 1024
}

// decimal returns the digits of a number without zeros at either end, perhaps with
// a point between them, and the power of ten of the last one.
func decimal(b []byte) (digits []byte, exponent int) {
	mantissa := b
	if i := bytes.IndexAny(b, "eE"); i >= 0 {
		mantissa, exponent = b[:i], exponentOf(b[i+1:])
	}
	point := bytes.IndexByte(mantissa, '.')
	if point >= 0 {
		mantissa = bytes.TrimRight(mantissa, "0")
		if point == len(mantissa)-1 {
			mantissa, point = mantissa[:point], -1
		} else {
			exponent -= len(mantissa) - 1 - point
		}
	}
	if point < 0 {
		whole := len(mantissa)
		mantissa = bytes.TrimRight(mantissa, "0")
		exponent += whole - len(mantissa)
	}
	return bytes.TrimLeft(mantissa, "0."), exponent
}

// exponentOf reads an exponent; one beyond any double's becomes 1000 or -1,000,000,
// so that no number of digits makes it one that is not.
func exponentOf(b []byte) (e int) {
	negative := false
	for _, c := range b {
		switch {
		case c == '-':
			negative = true
		case c >= '0' && c <= '9' && e < 1_000_000:
			e = e*10 + int(c-'0')
		}
	}
	if negative {
		return -e
	}
	return e
}
