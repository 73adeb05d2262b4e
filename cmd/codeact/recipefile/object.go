package recipefile

import (
	"bytes"
	"encoding/json"
	"errors"
	"path"
	"strings"
	"unicode/utf8"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/api/v1alpha1"
)

// recipe reads the recipe of one folder into the result.
func (l *loader) recipe(dir string) {
	if err := l.ctx.Err(); err != nil {
		l.out.Problems = append(l.out.Problems, l.failed(dir, err))
		return
	}
	if !utf8.ValidString(dir) {
		l.out.Problems = append(l.out.Problems, problem(strings.ToValidUTF8(l.shown(dir), "\ufffd"), "the folder's name is not UTF-8"))
		return
	}
	s := &snapshot{l: l, files: map[string]readFile{}}
	r, bad := s.recipe(dir)
	if len(bad) == 0 {
		if l.between != nil {
			l.between(dir)
		}
		if p := s.holds(); p != nil {
			bad = append(bad, p)
		}
	}
	if len(bad) > 0 {
		l.out.Problems = append(l.out.Problems, bad...)
		return
	}
	l.out.Recipes = append(l.out.Recipes, r)
}

// recipe reads the files of one recipe, as many as can be: each has its own problem.
func (s *snapshot) recipe(dir string) (*Recipe, []*Problem) {
	r := &Recipe{Dir: s.l.shown(dir)}
	var bad *Problem
	if r.Manifest, bad = s.read(path.Join(dir, ManifestName), MaxManifestBytes); bad != nil {
		return nil, []*Problem{bad}
	}
	m, keys, bad := parseManifest(r.Manifest)
	if bad != nil {
		return nil, []*Problem{bad}
	}
	r.keys = keys
	var all []*Problem
	read := func(name *string, most int64) *File {
		if name == nil {
			return nil
		}
		f, bad := s.read(path.Join(dir, *name), most)
		if bad != nil {
			all = append(all, bad)
		}
		return f
	}
	source := DefaultSource
	if m.Source != nil {
		source = *m.Source
	}
	// The limit of the source is the operator's, so that only the highest holds here.
	r.Source = read(&source, contract.Ceilings().SourceBytes)
	r.InputSchema = read(m.InputSchema, contract.MaxSchemaBytes)
	r.OutputSchema = read(m.OutputSchema, contract.MaxSchemaBytes)
	if len(all) > 0 {
		return nil, all
	}
	r.Object, all = m.object(r)
	if m.Tests != nil {
		tests, bad := s.tests(path.Join(dir, *m.Tests))
		if bad != nil {
			all = append(all, bad)
		}
		r.Tests, r.Object.Spec.Tests = tests, tests
	}
	return r, all
}

// object makes the Recipe of a cluster.
func (m *manifest) object(r *Recipe) (*v1alpha1.Recipe, []*Problem) {
	o := &v1alpha1.Recipe{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Recipe"},
		ObjectMeta: metav1.ObjectMeta{Name: ObjectName(m.Name)},
		Spec:       v1alpha1.RecipeSpec{Description: m.Description, Source: string(r.Source.Text), Tools: m.Tools},
	}
	if o.Name != m.Name {
		o.Spec.ToolName = m.Name
	}
	if m.SourceDigest != nil {
		o.Spec.SourceDigest = *m.SourceDigest
	}
	var all []*Problem
	for _, x := range []struct {
		from *File
		to   **apiextensionsv1.JSON
	}{{r.InputSchema, &o.Spec.InputSchema}, {r.OutputSchema, &o.Spec.OutputSchema}} {
		if x.from == nil {
			continue
		}
		text, bad := x.from.schema()
		if bad != nil {
			all = append(all, bad)
			continue
		}
		*x.to = &apiextensionsv1.JSON{Raw: text}
	}
	limits, key, err := m.limits()
	if err != nil {
		p := r.Key(key)
		all = append(all, r.Manifest.at(p.Line, p.Column, "%v", err))
	}
	o.Spec.Limits = limits
	if len(r.Source.Text) == 0 {
		all = append(all, r.Source.at(1, 1, "the program is empty"))
	}
	return o, all
}

// schema returns the JSON of the file without blanks.
func (f *File) schema() ([]byte, *Problem) {
	_, err := contract.DecodeJSON(f.Text)
	if err == nil && !contract.WellFormed(f.Text) {
		err = errors.New("half of a surrogate pair")
	}
	if err != nil {
		line, column := 1, 1
		if se, ok := errors.AsType[*json.SyntaxError](err); ok {
			line, column = f.position(int(se.Offset) - 1)
		} else if len(f.Text) > 0 {
			line, column = f.position(len(f.Text))
		}
		p := f.at(line, column, "the schema is not JSON: %v", err)
		p.Reason = contract.ReasonSchemaInvalid
		return nil, p
	}
	var b bytes.Buffer
	if err := json.Compact(&b, f.Text); err != nil {
		return nil, f.at(1, 1, "the schema is not JSON: %v", err)
	}
	return b.Bytes(), nil
}

// ObjectName is the metadata.name of the Recipe that has this tool name: the name
// itself where Kubernetes allows it, else the nearest that it does.
func ObjectName(tool string) string {
	name := strings.Trim(strings.ReplaceAll(strings.ToLower(tool), "_", "-"), "-")
	if name == "" {
		return "recipe"
	}
	return strings.TrimRight(contract.Truncate(name, 63), "-")
}
