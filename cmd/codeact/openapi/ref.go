package openapi

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
)

// maxSteps bounds how many references are followed from one to the next.
const maxSteps = 32

// maxParts bounds how many parts of one schema are looked at.
const maxParts = 1024

// steps counts the parts of a schema that were looked at: where each refers to the
// next one twice, or to itself, there is no end of them.
type steps int

func (n *steps) another() bool {
	*n++
	return *n <= maxParts
}

// follow returns what x stands for: itself, or what its $ref leads to.
func (d *Document) follow(x any) (map[string]any, error) {
	for range maxSteps {
		m := object(x)
		if m == nil {
			return nil, fmt.Errorf("an object is missing where one should be")
		}
		ref, ok := m["$ref"].(string)
		if !ok {
			return m, nil
		}
		var err error
		if x, err = d.at(ref); err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("its references lead in a circle")
}

// at returns what a reference into the document leads to.
func (d *Document) at(ref string) (any, error) {
	pointer, local := strings.CutPrefix(ref, "#")
	if !local {
		return nil, fmt.Errorf("the reference %.100q is refused: it leads out of the document; put all into one file first", ref)
	}
	pointer, err := url.PathUnescape(pointer)
	if err != nil || pointer != "" && pointer[0] != '/' {
		return nil, fmt.Errorf("the reference %.100q is not a JSON pointer", ref)
	}
	var x any = d.root
	if pointer == "" {
		return x, nil
	}
	for token := range strings.SplitSeq(pointer[1:], "/") {
		token = strings.NewReplacer("~1", "/", "~0", "~").Replace(token)
		next, there := object(x)[token]
		if l := list(x); l != nil {
			i, err := strconv.Atoi(token)
			if there = err == nil && i >= 0 && i < len(l); there {
				next = l[i]
			}
		}
		if !there {
			return nil, fmt.Errorf("the reference %.100q leads to nothing", ref)
		}
		x = next
	}
	return x, nil
}

// refName is a name for what a reference leads to.
func refName(ref string) string {
	last := ref[strings.LastIndexByte(ref, '/')+1:]
	if text, err := url.PathUnescape(last); err == nil {
		last = text
	}
	last = strings.Map(func(r rune) rune {
		if r == '-' || r == '_' || r == '.' || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' {
			return r
		}
		return '_'
	}, last)
	if last == "" {
		return "schema"
	}
	return last[:min(len(last), 64)]
}
