package contract

import (
	"encoding/json"
	"errors"
	"maps"
	"net/url"
	"slices"
	"strings"
)

// Expand puts arguments into the template. It returns the URL, and the arguments
// that the template does not name.
//
// A value is a string, a finite number or a boolean. All but the unreserved
// characters of RFC 3986 are percent-encoded. In the path, an argument must be
// there, and its value can neither be empty nor stand for another segment,
// however often a server decodes it. In the query, an argument that is absent or
// null takes its whole parameter with it, and an array repeats the parameter for
// each of its values. Every error is an InvalidArguments fault; it names the
// argument and never quotes its value.
func (t URLTemplate) Expand(args map[string]json.RawMessage) (string, map[string]json.RawMessage, error) {
	path, err := t.expandPath(args)
	if err != nil {
		return "", nil, err
	}
	query, err := t.expandQuery(args)
	if err != nil {
		return "", nil, err
	}
	text := t.origin + path
	if query != "" || t.hasQuery && len(t.query) == 0 {
		text += "?" + query
	}
	if len(text) > MaxExpandedURLBytes {
		return "", nil, Faultf(ReasonInvalidArguments, "with these arguments, the URL would have %d bytes, more than %d", len(text), MaxExpandedURLBytes)
	}
	if err := t.holds(text); err != nil {
		return "", nil, err
	}
	rest := maps.Clone(args)
	for _, name := range append(t.PathNames(), t.QueryNames()...) {
		delete(rest, name)
	}
	return text, rest, nil
}

func badArgument(name string, why string) error {
	return Faultf(ReasonInvalidArguments, "the argument %q %s, and cannot be put into the URL", name, why)
}

func (t URLTemplate) expandPath(args map[string]json.RawMessage) (string, error) {
	var b strings.Builder
	for _, p := range t.path {
		if p.name == "" {
			_, _ = b.WriteString(p.text)
			continue
		}
		raw, ok := args[p.name]
		if !ok || isNull(raw) {
			return "", Faultf(ReasonInvalidArguments, "the argument %q is missing: the URL needs it", p.name)
		}
		v, err := scalar(raw)
		if err == nil {
			err = checkSegment(v)
		}
		if err != nil {
			return "", badArgument(p.name, err.Error())
		}
		_, _ = b.WriteString(percentEncode(v))
	}
	return b.String(), nil
}

// checkSegment refuses a value that is no part of one segment of a path.
func checkSegment(v string) error {
	switch {
	case v == "":
		return errors.New("is empty")
	case anyDecoding(v, func(s string) bool { return strings.ContainsAny(s, separators) }):
		return errors.New("holds a path separator")
	case hasDotSegment(v, separators):
		return errors.New("is made of dots")
	case anyDecoding(v, func(s string) bool { return strings.HasPrefix(s, ";") }):
		return errors.New("begins with a semicolon") // behind which some servers drop all
	case anyDecoding(v, func(s string) bool { return strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f }) }):
		return errors.New("holds a control character")
	}
	return nil
}

func (t URLTemplate) expandQuery(args map[string]json.RawMessage) (string, error) {
	var out []string
	for _, p := range t.query {
		values, err := p.expand(args)
		if err != nil {
			return "", err
		}
		out = append(out, values...)
	}
	return strings.Join(out, "&"), nil
}

// expand returns the parameter once, or as often as an array says, or not at all.
func (p urlParam) expand(args map[string]json.RawMessage) ([]string, error) {
	named := names(p)
	for _, name := range named {
		if raw, ok := args[name]; !ok || isNull(raw) {
			return nil, nil
		}
	}
	if len(named) == 1 {
		if list, ok := array(args[named[0]]); ok {
			var out []string
			for _, raw := range list {
				s, err := p.once(map[string]json.RawMessage{named[0]: raw})
				if err != nil {
					return nil, err
				}
				out = append(out, s)
			}
			return out, nil
		}
	}
	s, err := p.once(args)
	if err != nil {
		return nil, err
	}
	return []string{s}, nil
}

func (p urlParam) once(args map[string]json.RawMessage) (string, error) {
	var first error
	s := join(p, func(x urlPiece) string {
		v, err := scalar(args[x.name])
		if err != nil && first == nil {
			first = badArgument(x.name, err.Error())
		}
		return percentEncode(v)
	})
	return s, first
}

func isNull(raw json.RawMessage) bool { return strings.TrimSpace(string(raw)) == "null" }

func array(raw json.RawMessage) ([]json.RawMessage, bool) {
	if s := strings.TrimLeft(string(raw), " \t\r\n"); !strings.HasPrefix(s, "[") {
		return nil, false
	}
	var list []json.RawMessage
	return list, json.Unmarshal(raw, &list) == nil
}

// holds asserts of a finished URL what the encoding of each value already gives:
// the same server, the same fixed beginning, as many segments, none of dots.
func (t URLTemplate) holds(text string) error {
	leaves := Faultf(ReasonInvalidArguments, "with these arguments, the URL would leave its path")
	u, err := url.Parse(text)
	if err != nil || u.Scheme != t.scheme || u.Host != t.host || u.User != nil || u.Fragment != "" {
		return leaves
	}
	sample := join(t.path, func(urlPiece) string { return "x" })
	fixed := ""
	if len(t.path) > 0 {
		fixed = t.path[0].text
	}
	fixed, err = url.PathUnescape(fixed)
	if err != nil || !strings.HasPrefix(u.Path, fixed) ||
		strings.Count(u.EscapedPath(), "/") != strings.Count(sample, "/") ||
		!slices.Equal(separated(u.EscapedPath()), separated(sample)) ||
		hasDotSegment(u.EscapedPath(), separators) {
		return leaves
	}
	return nil
}

// separated counts the separators in s, as it is and after each round of
// percent-decoding. Where values stand side by side, or beside fixed text, two
// halves of an escape may come together that are none alone.
func separated(s string) []int {
	var out []int
	for range decodings + 1 {
		n := 0
		for _, c := range separators {
			n += strings.Count(s, string(c))
		}
		out = append(out, n)
		s = percentDecode(s)
	}
	return out
}
