// Package openapi reads OpenAPI documents of the versions 3.0 and 3.1, as far as
// somebody has to know them who wants to call their operations. A document is a
// text of a stranger: it is bounded, refers into itself only, and nothing else is
// opened or asked for it.
package openapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

const (
	// MaxBytes bounds the text of a document.
	MaxBytes = 16 << 20
	// maxValues bounds its values, with those of YAML aliases as often as they are
	// referred to.
	maxValues = 1 << 20
	// maxText bounds the bytes of its texts, counted in the same way.
	maxText = 4 * MaxBytes
	// maxDepth bounds how deep it is nested.
	maxDepth = 200
	// maxOperations bounds its operations.
	maxOperations = 4096
)

// Document is one document.
type Document struct {
	root map[string]any
	// old says that its schemas are those of 3.0, which are not JSON Schema.
	old bool
}

var versionRE = regexp.MustCompile(`^3\.([0-9]+)(\.[0-9]+)?([-+].*)?$`)

// Read reads a document in YAML or JSON, of at most MaxBytes.
func Read(text []byte) (*Document, error) {
	if len(text) > MaxBytes {
		return nil, fmt.Errorf("the document has more than %d bytes", MaxBytes)
	}
	x, err := decode(text)
	if err != nil {
		return nil, err
	}
	root, ok := x.(map[string]any)
	if !ok {
		return nil, errors.New("the document is not an object")
	}
	if _, two := root["swagger"]; two {
		return nil, errors.New("the document is of Swagger 2.0: OpenAPI 3.0 and 3.1 are read")
	}
	version := str(root["openapi"])
	if n, ok := root["openapi"].(json.Number); ok {
		version = n.String()
	}
	v := versionRE.FindStringSubmatch(version)
	if v == nil || v[1] != "0" && v[1] != "1" {
		return nil, fmt.Errorf("the document's openapi is %.20q: OpenAPI 3.0 and 3.1 are read", version)
	}
	return &Document{root: root, old: v[1] == "0"}, nil
}

// Title is the title and the version that the document gives itself.
func (d *Document) Title() string {
	info := object(d.root["info"])
	return strings.TrimSpace(str(info["title"]) + " " + str(info["version"]))
}

func decode(text []byte) (any, error) {
	if t := bytes.TrimSpace(text); len(t) > 0 && t[0] == '{' {
		// JSON has escapes that YAML's reader does not know.
		if x, err := contract.DecodeJSON(t); err == nil {
			b := &builder{}
			return x, b.count(x, 0)
		}
	}
	var n yaml.Node
	if err := yaml.Unmarshal(text, &n); err != nil {
		return nil, fmt.Errorf("the document is neither YAML nor JSON: %s", strings.TrimPrefix(err.Error(), "yaml: "))
	}
	if n.Kind != yaml.DocumentNode || len(n.Content) != 1 {
		return nil, errors.New("the document is empty")
	}
	return (&builder{}).value(n.Content[0], 0)
}

// builder makes values of YAML, as many as are allowed.
type builder struct{ values, text int }

func (b *builder) texts(n *yaml.Node) error {
	if b.text += len(n.Value); b.text > maxText {
		return fmt.Errorf("the document has more than %d bytes of text, its aliases resolved", maxText)
	}
	return nil
}

func (b *builder) one(depth int) error {
	if b.values++; b.values > maxValues {
		return fmt.Errorf("the document has more than %d values", maxValues)
	}
	if depth > maxDepth {
		return fmt.Errorf("the document is nested more than %d deep", maxDepth)
	}
	return nil
}

func (b *builder) count(x any, depth int) error {
	if err := b.one(depth); err != nil {
		return err
	}
	switch x := x.(type) {
	case map[string]any:
		for _, v := range x {
			if err := b.count(v, depth+1); err != nil {
				return err
			}
		}
	case []any:
		for _, v := range x {
			if err := b.count(v, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

func (b *builder) value(n *yaml.Node, depth int) (any, error) {
	if err := b.one(depth); err != nil {
		return nil, err
	}
	switch n.Kind {
	case yaml.AliasNode:
		return b.value(n.Alias, depth+1)
	case yaml.SequenceNode:
		out := make([]any, 0, len(n.Content))
		for _, c := range n.Content {
			v, err := b.value(c, depth+1)
			if err != nil {
				return nil, err
			}
			out = append(out, v)
		}
		return out, nil
	case yaml.MappingNode:
		return b.mapping(n, depth)
	case yaml.ScalarNode:
		if err := b.texts(n); err != nil {
			return nil, err
		}
		return scalar(n)
	case yaml.DocumentNode:
	}
	return nil, fmt.Errorf("line %d cannot be read", n.Line)
}

func (b *builder) mapping(n *yaml.Node, depth int) (any, error) {
	out, merged := map[string]any{}, map[string]any{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k := n.Content[i]
		v, err := b.value(n.Content[i+1], depth+1)
		if err != nil {
			return nil, err
		}
		if k.Kind != yaml.ScalarNode {
			return nil, fmt.Errorf("line %d: a key that is no text", k.Line)
		}
		if err := b.texts(k); err != nil {
			return nil, err
		}
		if k.ShortTag() == "!!merge" {
			for _, m := range append(list(v), v) {
				for name, x := range object(m) {
					if _, there := merged[name]; !there {
						merged[name] = x
					}
				}
			}
			continue
		}
		if _, twice := out[k.Value]; twice {
			return nil, fmt.Errorf("line %d: the key %.40q is there twice", k.Line, k.Value)
		}
		out[k.Value] = v
	}
	for name, x := range merged {
		if _, there := out[name]; !there {
			out[name] = x
		}
	}
	return out, nil
}

func scalar(n *yaml.Node) (any, error) {
	switch n.ShortTag() {
	case "!!null":
		return nil, nil
	case "!!bool":
		var v bool
		err := n.Decode(&v)
		return v, err
	case "!!int", "!!float":
		if json.Valid([]byte(n.Value)) {
			return json.Number(n.Value), nil
		}
		var v any
		if err := n.Decode(&v); err != nil {
			return nil, fmt.Errorf("line %d: not a number", n.Line)
		}
		text, err := json.Marshal(v)
		if err != nil {
			return nil, fmt.Errorf("line %d: a number that JSON does not have", n.Line)
		}
		return json.Number(text), nil
	}
	return n.Value, nil // also a date, which JSON has as text
}

// object is x, or nil.
func object(x any) map[string]any {
	m, _ := x.(map[string]any)
	return m
}

func list(x any) []any {
	l, _ := x.([]any)
	return l
}

func str(x any) string {
	s, _ := x.(string)
	return s
}

func boolean(x any) bool {
	b, _ := x.(bool)
	return b
}
