package contract

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
)

// A pattern is matched in time linear in the text (RE2), but with a factor that is
// the size of its program. Both are bounded, and their product.
const (
	// maxPatternBytes bounds the text of a regular expression.
	maxPatternBytes = 2048
	// maxPatternSize bounds the instructions of its program.
	maxPatternSize = 1000
	// maxPatternsSize bounds those of all patterns of a schema: one takes some 100
	// bytes, compiled.
	maxPatternsSize = 50_000
	// maxMatch bounds the longest string of a value times the largest pattern of its
	// schema. A step is about 10 ns.
	maxMatch = 100_000_000
	// stepsPerUnit is how many steps of matching count as one unit of a validation.
	stepsPerUnit = 128
)

// compilePattern compiles a regular expression and counts its instructions. The
// text says what is wrong with one that is refused.
func compilePattern(pattern string) (re *regexp.Regexp, size int, wrong string) {
	if len(pattern) > maxPatternBytes {
		return nil, 0, fmt.Sprintf("the pattern has %d bytes, more than %d", len(pattern), maxPatternBytes)
	}
	tree, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return nil, 0, "the pattern is not of RE2 syntax: " + patternError(err)
	}
	prog, err := syntax.Compile(tree.Simplify())
	if err != nil {
		return nil, 0, "the pattern is not of RE2 syntax: " + patternError(err)
	}
	if len(prog.Inst) > maxPatternSize {
		return nil, 0, fmt.Sprintf("the pattern is too large, it needs %d instructions of at most %d: repeat less", len(prog.Inst), maxPatternSize)
	}
	if re, err = regexp.Compile(pattern); err != nil {
		return nil, 0, "the pattern is not of RE2 syntax: " + patternError(err)
	}
	return re, len(prog.Inst), ""
}

func patternError(err error) string {
	text := strings.TrimPrefix(firstLine(err), "error parsing regexp: ")
	for _, look := range []string{"`(?=", "`(?!", "`(?<=", "`(?<!"} {
		if strings.Contains(text, look) {
			return text + " (there is no lookahead and no lookbehind)"
		}
	}
	return text
}

// schemaPatterns compiles every regular expression in the text of a schema and
// returns the size of the largest. An error names the place of the first bad one.
// Left is how many instructions all of them may still have together.
func schemaPatterns(x any, at string, left *int) (largest int, err error) {
	check := func(place, pattern string) {
		if err != nil {
			return
		}
		_, size, wrong := compilePattern(pattern)
		largest = max(largest, size)
		switch *left -= size; {
		case wrong != "":
			err = fmt.Errorf("at %s: %s", place, wrong)
		case *left < 0:
			err = fmt.Errorf("at %s: the patterns up to here need more than %d instructions together", place, maxPatternsSize)
		}
	}
	below := func(v any, place string) {
		if err != nil {
			return
		}
		var size int
		size, err = schemaPatterns(v, place, left)
		largest = max(largest, size)
	}
	switch x := x.(type) {
	case []any:
		for i, v := range x {
			below(v, fmt.Sprintf("%s/%d", at, i))
		}
	case map[string]any:
		for _, k := range sortedKeys(x) {
			place := at + "/" + pointerEscape.Replace(k)
			switch v := x[k].(type) {
			case string:
				if k == "pattern" {
					check(place, v)
				}
			case map[string]any:
				if k == "patternProperties" {
					for _, p := range sortedKeys(v) {
						check(place, p)
					}
				}
				if !slices.Contains(plainKeywords, k) {
					below(v, place)
				}
			case []any:
				if !slices.Contains(plainKeywords, k) {
					below(v, place)
				}
			}
		}
	}
	return largest, err
}

// plainKeywords hold values, not schemas.
var plainKeywords = []string{"const", "enum", "default", "examples"}

var pointerEscape = strings.NewReplacer("~", "~0", "/", "~1")

func sortedKeys(m map[string]any) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
