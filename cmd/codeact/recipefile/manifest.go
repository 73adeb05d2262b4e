package recipefile

import (
	"bytes"
	"errors"
	"reflect"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

// manifestVersion is the one version of recipe.toml.
const manifestVersion = 1

// manifest is recipe.toml. Other keys are refused.
type manifest struct {
	Version      *int64           `toml:"version"`
	Name         string           `toml:"name"`
	Description  string           `toml:"description"`
	Source       *string          `toml:"source"`
	SourceDigest *string          `toml:"source_digest"`
	Tools        []string         `toml:"tools"`
	InputSchema  *string          `toml:"input_schema"`
	OutputSchema *string          `toml:"output_schema"`
	Limits       map[string]int64 `toml:"limits"`
	Tests        *string          `toml:"tests"`
}

// parseManifest reads recipe.toml and where it has its keys.
func parseManifest(f *File) (manifest, map[string]position, *Problem) {
	var m manifest
	// The strict decoder gathers every unknown key, at the cost of all squared.
	keys, bad := keysOf(f)
	if bad != nil {
		return m, nil, bad
	}
	d := toml.NewDecoder(bytes.NewReader(f.Text))
	d.DisallowUnknownFields()
	if err := d.Decode(&m); err != nil {
		return m, nil, tomlProblem(f, err)
	}
	at := func(key, format string, args ...any) *Problem {
		k, ok := keys[key]
		if !ok {
			k = position{1, 1}
		}
		return f.at(k.line, k.column, format, args...)
	}
	switch {
	case m.Version == nil:
		return m, keys, at("version", "version is missing; write version = %d", manifestVersion)
	case *m.Version != manifestVersion:
		return m, keys, at("version", "version %d is not known; want %d", *m.Version, manifestVersion)
	case m.Name == "":
		return m, keys, at("name", "name is missing: it is what the recipe is called as a tool")
	case !contract.ValidToolName(m.Name):
		return m, keys, at("name", "name may only hold letters, digits, '_' and '-', at most 64")
	case len(m.Description) > contract.MaxDescriptionBytes:
		return m, keys, at("description", "description has %d bytes, more than %d", len(m.Description), contract.MaxDescriptionBytes)
	case m.SourceDigest != nil && !contract.ValidDigest(*m.SourceDigest):
		return m, keys, at("source_digest", "source_digest must be sha256: and 64 lower-case hex digits")
	}
	if bad := m.tools(at); bad != nil {
		return m, keys, bad
	}
	return m, keys, m.paths(at)
}

type problemAt func(key, format string, args ...any) *Problem

func (m *manifest) tools(at problemAt) *Problem {
	if n := len(m.Tools); n > contract.MaxRecipeTools {
		return at("tools", "tools has %d names, more than %d", n, contract.MaxRecipeTools)
	}
	seen := map[string]bool{}
	for _, t := range m.Tools {
		if !contract.ValidToolName(t) {
			return at("tools", "tools has %q, which is no tool name", contract.Truncate(t, 64))
		}
		if seen[t] {
			return at("tools", "tools names %q twice", t)
		}
		seen[t] = true
	}
	return nil
}

func (m *manifest) paths(at problemAt) *Problem {
	for _, p := range []struct {
		key  string
		path *string
	}{{"source", m.Source}, {"input_schema", m.InputSchema}, {"output_schema", m.OutputSchema}, {"tests", m.Tests}} {
		if p.path == nil {
			continue
		}
		if err := contained(*p.path); err != nil {
			return at(p.key, "%s: the path %q %v", p.key, contract.Truncate(*p.path, 128), err)
		}
	}
	return nil
}

// limits reads the limits by the names that they have in a cluster.
func (m *manifest) limits() (*contract.Limits, string, error) {
	if len(m.Limits) == 0 {
		return nil, "", nil
	}
	var l contract.Limits
	for name, v := range m.Limits {
		if err := l.Set(name, v); err != nil {
			return nil, "limits." + name, err
		}
	}
	return &l, "", nil
}

// tomlProblem says where TOML is wrong and why.
func tomlProblem(f *File, err error) *Problem {
	var missing *toml.StrictMissingError
	if errors.As(err, &missing) && len(missing.Errors) > 0 {
		e := &missing.Errors[0]
		line, column := e.Position()
		return f.at(line, column, "unknown key %q", contract.Truncate(strings.Join(e.Key(), "."), 128))
	}
	if de, ok := errors.AsType[*toml.DecodeError](err); ok {
		line, column := de.Position()
		return f.at(line, column, "%s", strings.TrimPrefix(de.Error(), "toml: "))
	}
	return f.at(1, 1, "%s", strings.TrimPrefix(err.Error(), "toml: "))
}

// known are the keys of a manifest.
var known = func() map[string]bool {
	out := map[string]bool{}
	for f := range reflect.TypeFor[manifest]().Fields() {
		out[f.Tag.Get("toml")] = true
	}
	return out
}()

// keysOf finds where a manifest has its keys, as far as it is TOML, and the first
// one that is not known; a key of a table is named with it, by a dot.
func keysOf(f *File) (map[string]position, *Problem) {
	out := map[string]position{}
	var p unstable.Parser
	p.Reset(f.Text)
	table := ""
	for p.NextExpression() {
		e := p.Expression()
		if e.Kind != unstable.Table && e.Kind != unstable.ArrayTable && e.Kind != unstable.KeyValue {
			continue
		}
		var parts []string
		if e.Kind == unstable.KeyValue && table != "" {
			parts = append(parts, table)
		}
		at := position{}
		for it := e.Key(); it.Next(); {
			n := it.Node()
			if at.line == 0 {
				start := p.Shape(n.Raw).Start
				at = position{start.Line, start.Column}
			}
			parts = append(parts, string(n.Data))
		}
		if !known[parts[0]] {
			return nil, f.at(at.line, at.column, "unknown key %q", contract.Truncate(parts[0], 128))
		}
		name := strings.Join(parts, ".")
		if e.Kind != unstable.KeyValue {
			table = parts[0]
		}
		if _, twice := out[name]; !twice {
			out[name] = at
		}
	}
	return out, nil
}
