package krm

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"
	strict "sigs.k8s.io/yaml"
)

// MaxListBytes bounds the list that comes in.
const MaxListBytes = 64 << 20

const (
	listGroup      = "config.kubernetes.io/"
	listAPIVersion = listGroup + "v1"
	listKind       = "ResourceList"
)

// list is a ResourceList. It is kept as the nodes of its text, so that items of others
// go out as they came: numbers as they are written, keys in their order, comments.
type list struct {
	top    *yaml.Node // a mapping
	items  *yaml.Node // a sequence in it
	config *yaml.Node // the functionConfig, nil without one
}

// emptyList is what goes out where nothing could be read.
func emptyList() *list {
	top := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	set(top, "apiVersion", textNode(listAPIVersion))
	set(top, "kind", textNode(listKind))
	items := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Style: yaml.FlowStyle}
	set(top, "items", items)
	return &list{top: top, items: items}
}

func parseList(text []byte) (*list, error) {
	if len(text) > MaxListBytes {
		return nil, fmt.Errorf("the ResourceList has more than %d bytes", MaxListBytes)
	}
	top, err := parse(text)
	if err != nil {
		return nil, fmt.Errorf("no ResourceList: %w", err)
	}
	l := &list{top: top}
	version, kind := textOf(get(top, "apiVersion")), textOf(get(top, "kind"))
	if !strings.HasPrefix(version, listGroup) || kind != listKind {
		return nil, fmt.Errorf("want a %s of %s on the standard input", listKind, listAPIVersion)
	}
	if l.config = get(top, "functionConfig"); isNull(l.config) {
		l.config = nil
	}
	l.items = get(top, "items")
	if isNull(l.items) {
		l.items = &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
		set(top, "items", l.items)
	}
	if l.items.Kind != yaml.SequenceNode {
		return nil, errors.New("items of the ResourceList is no list")
	}
	return l, nil
}

// parse reads exactly one document, a mapping.
func parse(text []byte) (*yaml.Node, error) {
	d := yaml.NewDecoder(bytes.NewReader(text))
	var doc, more yaml.Node
	if err := d.Decode(&doc); errors.Is(err, io.EOF) {
		return nil, errors.New("the input is empty")
	} else if err != nil {
		return nil, err
	}
	if err := d.Decode(&more); !errors.Is(err, io.EOF) {
		return nil, errors.New("the input has more than one document")
	}
	top := doc.Content[0]
	if top.Kind != yaml.MappingNode {
		return nil, errors.New("the input is no object")
	}
	seen := map[string]bool{}
	for i := 0; i < len(top.Content); i += 2 {
		k := top.Content[i].Value
		if seen[k] {
			return nil, fmt.Errorf("the key %q is there twice", k)
		}
		seen[k] = true
	}
	return top, nil
}

// render writes the list with the results and makes sure that it reads back the same.
func (l *list) render(results []Result) ([]byte, error) {
	remove(l.top, "results")
	if len(results) > 0 {
		node, err := nodeOf(results)
		if err != nil {
			return nil, err
		}
		set(l.top, "results", node)
	}
	settle(l.top)
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	if err := errors.Join(e.Encode(l.top), e.Close()); err != nil {
		return nil, err
	}
	again, err := parse(b.Bytes())
	if err != nil {
		return nil, fmt.Errorf("the list cannot be written as YAML: %w", err)
	}
	if !same(l.top, again) {
		return nil, errors.New("the list has something that cannot be written as YAML again")
	}
	return b.Bytes(), nil
}

// settle puts blocks that begin with a blank between quotation marks: the encoder
// would state their indentation wrongly where they stand deep.
func settle(n *yaml.Node) {
	if n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0 && n.Value != "" && strings.ContainsAny(n.Value[:1], " \t\n") {
		n.Style = yaml.DoubleQuotedStyle
	}
	for _, c := range n.Content {
		settle(c)
	}
}

// same compares what nodes mean, not how they are written.
func same(a, b *yaml.Node) bool {
	if a.Kind != b.Kind || a.ShortTag() != b.ShortTag() || a.Value != b.Value || a.Anchor != b.Anchor || len(a.Content) != len(b.Content) {
		return false
	}
	for i := range a.Content {
		if !same(a.Content[i], b.Content[i]) {
			return false
		}
	}
	return true
}

// nodeOf turns a value into nodes by its JSON names.
func nodeOf(x any) (*yaml.Node, error) {
	text, err := strict.Marshal(x)
	if err != nil {
		return nil, err
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return nil, err
	}
	return doc.Content[0], nil
}

func textNode(s string) *yaml.Node {
	n := &yaml.Node{}
	n.SetString(s)
	return n
}

// get returns the value of a key, nil without it.
func get(m *yaml.Node, key string) *yaml.Node {
	if m == nil || m.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(m.Content); i += 2 {
		if m.Content[i].Value == key {
			return m.Content[i+1]
		}
	}
	return nil
}

// set replaces the value of a key or adds it at the end.
func set(m *yaml.Node, key string, value *yaml.Node) {
	for i := 0; i+1 < len(m.Content); i += 2 {
		if m.Content[i].Value == key {
			m.Content[i+1] = value
			return
		}
	}
	m.Content = append(m.Content, textNode(key), value)
}

func remove(m *yaml.Node, key string) {
	for i := 0; i+1 < len(m.Content); i += 2 {
		if m.Content[i].Value == key {
			m.Content = append(m.Content[:i], m.Content[i+2:]...)
			return
		}
	}
}

func textOf(n *yaml.Node) string {
	if n == nil || n.Kind != yaml.ScalarNode {
		return ""
	}
	return n.Value
}

func isNull(n *yaml.Node) bool { return n == nil || n.ShortTag() == "!!null" }
