package check

import (
	"regexp"
	"strings"
)

// What the pinned engine gets wrong in regular expressions without an error is
// refused. The prelude of the sandbox refuses the same in patterns that are
// made at run time; sandbox/RATIONALE.md describes the faults.

// body is what a group holds, as far as the engine's handling of it matters.
type body struct {
	split     bool // more than one alternative
	captures  bool // a capturing group
	stale     bool // a capturing group in one of several alternatives
	capturing bool // the group itself captures
}

// repeated judges a term with its quantifier. When an alternative is not taken
// in a repetition, the engine keeps what its groups captured in an earlier one.
// In front of ? it forgets.
func (r *pattern) repeated(start int, inner body, quantifier string) {
	stale := inner.stale || inner.split && inner.captures
	switch strings.TrimSuffix(quantifier, "?") {
	case "":
		if quantifier == "?" {
			stale = false
		}
	case "?", "{0,1}":
		stale = false
	case "{0}", "{1}", "{1,1}":
	default:
		if stale {
			r.p = start
			r.bad("a group in an alternative that is repeated would keep an old value; use (?:...) there, or match one repetition at a time")
		}
	}
	r.body.stale = r.body.stale || stale
	r.body.captures = r.body.captures || inner.captures || inner.capturing
}

// cased matches what selects characters by their case.
var cased = regexp.MustCompile(`^[pP]\{(?:(?:gc|General_Category)=)?(?:L[ult]|(?:Upper|Lower|Title)case(?:_Letter)?|Upper|Lower|` +
	`Changes_When_(?:Lower|Upper|Title|(?:NFKC_)?Case)[^}]*|CW(?:L|U|T|CF|KCF))\}`)

// refuseCased judges an escape outside of brackets: there the engine applies
// the flag i to the text and not to the property.
func (r *pattern) refuseCased() {
	if r.fold && r.unicode && cased.MatchString(r.src[r.p:]) {
		r.bad("a property of letter case is wrong with the flag i; write it in brackets, [\\p{Lu}]")
	}
}
