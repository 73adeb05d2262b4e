package krm

import (
	"maps"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/codeact-dev/codeact-operator/api/v1alpha1"
	"github.com/codeact-dev/codeact-operator/cmd/codeact/recipefile"
)

// merge puts Recipes into the list: in the place of one with the same name, else at
// the end. Nothing is changed where that cannot be done for one of them.
func (l *list) merge(recipes []*v1alpha1.Recipe) *Result {
	made := make([]*yaml.Node, len(recipes))
	for i, r := range recipes {
		var err error
		if made[i], err = objectOf(r); err != nil {
			bad := failure("Recipe %s: %v", r.Name, err)
			return &bad
		}
	}
	for _, r := range recipes {
		for _, at := range l.places(r) {
			if !plain(l.items.Content[at]) {
				bad := failure("Recipe %s of the list has an anchor or an alias: what shares it would change with it", r.Name)
				return &bad
			}
		}
	}
	if len(made) > 0 {
		l.items.Style &^= yaml.FlowStyle
	}
	for i, r := range recipes {
		places := l.places(r)
		for _, at := range places {
			l.items.Content[at] = replaced(l.items.Content[at], made[i], r)
		}
		if len(places) == 0 {
			l.items.Content = append(l.items.Content, made[i])
		}
	}
	return nil
}

func objectOf(r *v1alpha1.Recipe) (*yaml.Node, error) {
	text, err := recipefile.Render(r)
	if err != nil {
		return nil, err
	}
	return parse(text)
}

// places are the items that a Recipe replaces. One without a namespace replaces
// every Recipe of its name, since it may end in any; one with a namespace also that
// without, if there is none in its own.
func (l *list) places(r *v1alpha1.Recipe) []int {
	var any, own, free []int
	for i, item := range l.items.Content {
		meta := get(item, "metadata")
		if !isRecipe(textOf(get(item, "apiVersion")), textOf(get(item, "kind"))) || textOf(get(meta, "name")) != r.Name {
			continue
		}
		any = append(any, i)
		switch textOf(get(meta, "namespace")) {
		case r.Namespace:
			own = append(own, i)
		case "":
			free = append(free, i)
		}
	}
	switch {
	case r.Namespace == "":
		return any
	case len(own) > 0:
		return own
	}
	return free
}

// plain reports whether nothing else of the list can share what an item has.
func plain(n *yaml.Node) bool {
	if n.Kind == yaml.AliasNode || n.Anchor != "" {
		return false
	}
	return !slices.ContainsFunc(n.Content, func(c *yaml.Node) bool { return !plain(c) })
}

// replaced is an item with another spec. What else its metadata says is kept: by
// annotations the caller knows where an item came from.
func replaced(item, made *yaml.Node, r *v1alpha1.Recipe) *yaml.Node {
	out := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", HeadComment: item.HeadComment}
	meta := get(item, "metadata")
	if r.Namespace != "" {
		set(meta, "namespace", textNode(r.Namespace))
	}
	if len(r.Labels) > 0 {
		labels := get(meta, "labels")
		if labels == nil || labels.Kind != yaml.MappingNode {
			labels = &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
			set(meta, "labels", labels)
		}
		for _, k := range slices.Sorted(maps.Keys(r.Labels)) {
			set(labels, k, textNode(r.Labels[k]))
		}
	}
	set(out, "apiVersion", get(made, "apiVersion"))
	set(out, "kind", get(made, "kind"))
	set(out, "metadata", meta)
	set(out, "spec", get(made, "spec"))
	return out
}
