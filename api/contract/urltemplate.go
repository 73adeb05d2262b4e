package contract

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// MaxURLBytes bounds a template.
	MaxURLBytes = 2048
	// MaxExpandedURLBytes bounds what Expand makes of one.
	MaxExpandedURLBytes = 8192
	// MaxURLNames bounds the places of one template.
	MaxURLNames = 32
)

// URLTemplate is the URL of an HTTP tool. In its path and query, {name} stands
// for the argument of that name.
type URLTemplate struct {
	// origin is scheme and authority, without a path.
	origin string
	scheme string
	host   string
	path   []urlPiece
	query  []urlParam
	// hasQuery keeps a "?" with nothing behind it.
	hasQuery bool
}

// urlPiece is fixed text, or the place of an argument.
type urlPiece struct {
	text string
	name string
}

// urlParam is one parameter of the query. Its first piece is fixed and holds its
// name.
type urlParam []urlPiece

var urlNameRE = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`)

// ParseURLTemplate reads a template: an absolute http or https URL without user,
// password and fragment, of at most MaxURLBytes. {name} may stand in the path,
// and in the value of a query parameter.
func ParseURLTemplate(text string) (URLTemplate, error) {
	var t URLTemplate
	if len(text) > MaxURLBytes {
		return t, fmt.Errorf("the URL has %d bytes, more than %d", len(text), MaxURLBytes)
	}
	for _, r := range text {
		if r <= ' ' || r == utf8.RuneError || strings.ContainsRune("\\\"<>^`|\x7f", r) {
			return t, errors.New("the URL holds a character that must be percent-encoded")
		}
	}
	scheme, rest, ok := strings.Cut(text, "://")
	scheme = strings.ToLower(scheme)
	if !ok || scheme != "http" && scheme != "https" {
		return t, errors.New("the URL is not an absolute http or https address")
	}
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	authority, rest := rest[:end], rest[end:]
	switch {
	case strings.ContainsAny(authority, "{}"):
		return t, errors.New("arguments may stand in the path and the query only: scheme, host and port are fixed")
	case strings.Contains(authority, "@"):
		return t, errors.New("the URL carries a user or password")
	case strings.Contains(rest, "#"):
		return t, errors.New("the URL has a fragment")
	}
	u, err := url.Parse(scheme + "://" + authority)
	if err != nil || u.Hostname() == "" {
		return t, errors.New("the URL has no valid host")
	}
	t.origin, t.scheme, t.host = scheme+"://"+authority, scheme, u.Host
	path, query, hasQuery := strings.Cut(rest, "?")
	t.hasQuery = hasQuery
	if t.path, err = pieces(path); err != nil {
		return t, err
	}
	if t.query, err = params(query); err != nil {
		return t, err
	}
	return t, t.check()
}

// Scheme is http or https.
func (t URLTemplate) Scheme() string { return t.scheme }

// PathNames and QueryNames return the arguments that the template names, each as
// often as it does.
func (t URLTemplate) PathNames() []string { return names(t.path) }

// QueryNames is described at PathNames.
func (t URLTemplate) QueryNames() []string {
	var out []string
	for _, p := range t.query {
		out = append(out, names(p)...)
	}
	return out
}

// Fixed reports whether the template names no argument: the URL is the same for
// every call.
func (t URLTemplate) Fixed() bool { return len(t.PathNames())+len(t.QueryNames()) == 0 }

func names(p []urlPiece) []string {
	var out []string
	for _, x := range p {
		if x.name != "" {
			out = append(out, x.name)
		}
	}
	return out
}

// check holds the fixed text of a template to what Expand promises.
func (t URLTemplate) check() error {
	if n := len(t.PathNames()) + len(t.QueryNames()); n > MaxURLNames {
		return fmt.Errorf("the URL names %d arguments, more than %d", n, MaxURLNames)
	}
	sample := func(urlPiece) string { return "x" }
	path := join(t.path, sample)
	if hasDotSegment(path, separators) {
		return errors.New("the path holds a segment of dots")
	}
	var query []string
	for _, p := range t.query {
		query = append(query, join(p, sample))
	}
	u, err := url.Parse(t.origin + path + "?" + strings.Join(query, "&"))
	if err != nil {
		return errors.New("the URL is malformed, perhaps in its percent-encoding")
	}
	if _, err := url.QueryUnescape(u.RawQuery); err != nil {
		return errors.New("the query of the URL is malformed, perhaps in its percent-encoding")
	}
	return nil
}

func join(p []urlPiece, value func(urlPiece) string) string {
	var b strings.Builder
	for _, x := range p {
		if x.name == "" {
			_, _ = b.WriteString(x.text)
		} else {
			_, _ = b.WriteString(value(x))
		}
	}
	return b.String()
}

func pieces(s string) ([]urlPiece, error) {
	var out []urlPiece
	for s != "" {
		i := strings.IndexAny(s, "{}")
		if i < 0 {
			return append(out, urlPiece{text: s}), nil
		}
		if i > 0 {
			out = append(out, urlPiece{text: s[:i]})
		}
		end := strings.IndexByte(s[i:], '}')
		if s[i] == '}' || end < 0 {
			return nil, errors.New("the URL has a brace without its partner; write a literal one as %7B or %7D")
		}
		name := s[i+1 : i+end]
		if !urlNameRE.MatchString(name) {
			return nil, errors.New("between braces stands one argument's name: letters, digits, '_', '-' and '.', at most 64; there are no operators")
		}
		out = append(out, urlPiece{name: name})
		s = s[i+end+1:]
	}
	return out, nil
}

func params(query string) ([]urlParam, error) {
	var out []urlParam
	if query == "" {
		return nil, nil
	}
	for part := range strings.SplitSeq(query, "&") {
		p, err := pieces(part)
		if err != nil {
			return nil, err
		}
		if len(p) > 1 || len(p) == 1 && p[0].name != "" {
			if p[0].name != "" || !strings.Contains(p[0].text, "=") || p[0].text[0] == '=' {
				return nil, errors.New("in the query, an argument is the value of a parameter with a fixed name: name={argument}")
			}
		}
		out = append(out, p)
	}
	return out, nil
}

const (
	separators = `/\`
	// decodings is how often a value is percent-decoded to see what becomes of it
	// behind several servers.
	decodings = 3
)

// alike are characters that some servers take for a dot.
var alike = strings.NewReplacer("．", ".", "․", ".", "。", ".", "／", "/", "＼", `\`, "∕", "/", "⁄", "/")

// hasDotSegment reports whether one of the segments of s is made of dots and
// blanks alone, as it is or after some rounds of percent-decoding. What stands
// behind a semicolon in a segment does not count: some servers drop it.
func hasDotSegment(s, separators string) bool {
	return anyDecoding(s, func(s string) bool {
		for seg := range strings.FieldsFuncSeq(alike.Replace(s), func(r rune) bool { return strings.ContainsRune(separators, r) }) {
			seg, _, _ = strings.Cut(seg, ";")
			if seg != "" && strings.Trim(seg, ". ") == "" {
				return true
			}
		}
		return false
	})
}

func anyDecoding(s string, f func(string) bool) bool {
	for range decodings + 1 {
		if f(s) {
			return true
		}
		next := percentDecode(s)
		if next == s {
			return false
		}
		s = next
	}
	return false
}

// percentDecode decodes what it can and leaves the rest as it is.
func percentDecode(s string) string {
	if !strings.Contains(s, "%") {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) {
			if c, err := url.PathUnescape(s[i : i+3]); err == nil {
				_, _ = b.WriteString(c)
				i += 2
				continue
			}
		}
		_ = b.WriteByte(s[i])
	}
	return b.String()
}

// percentEncode encodes all but the unreserved characters of RFC 3986.
func percentEncode(s string) string {
	const digits = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(s) {
		switch c := s[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '.', c == '_', c == '~':
			_ = b.WriteByte(c)
		default:
			_, _ = b.Write([]byte{'%', digits[c>>4], digits[c&15]})
		}
	}
	return b.String()
}

// scalar reads a string, a finite number or a boolean. The error says what else
// it is.
func scalar(raw json.RawMessage) (string, error) {
	if !WellFormed(raw) {
		return "", errors.New("is text that is not well-formed Unicode")
	}
	x, err := DecodeJSON(raw)
	if err != nil {
		return "", errors.New("is not JSON")
	}
	switch x := x.(type) {
	case string:
		if strings.ContainsFunc(x, unicode.IsControl) {
			return "", errors.New("holds a control character")
		}
		return x, nil
	case json.Number:
		if err := checkNumber(string(x)); err != nil {
			return "", errors.New("is a number beyond what a double can hold")
		}
		return string(x), nil
	case bool:
		return fmt.Sprint(x), nil
	}
	return "", errors.New("is not a string, a number or a boolean")
}

// loneSurrogate reports whether JSON text has an escape that is one half of a
// character; reading it would put another character in its place.
func loneSurrogate(raw []byte) bool {
	half := func(i int) (rune, bool) {
		if i+6 > len(raw) || raw[i] != '\\' || raw[i+1] != 'u' {
			return 0, false
		}
		var r rune
		for _, c := range raw[i+2 : i+6] {
			r = r<<4 | rune(strings.IndexByte("0123456789abcdef", c|0x20))&15
		}
		return r, r >= 0xd800 && r <= 0xdfff
	}
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' {
			continue
		}
		r, surrogate := half(i)
		if !surrogate {
			i++ // the escaped character itself is not looked at
			continue
		}
		low, ok := half(i + 6)
		if r >= 0xdc00 || !ok || low < 0xdc00 {
			return true
		}
		i += 11
	}
	return false
}
