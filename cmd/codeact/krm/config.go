package krm

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	strict "sigs.k8s.io/yaml"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/api/v1alpha1"
	"github.com/codeact-dev/codeact-operator/cmd/codeact/recipefile"
)

// APIVersion and Kind are those of the functionConfig. It is no object of a cluster.
const (
	APIVersion = "krm.codeact.dev/v1alpha1"
	Kind       = "RecipeFolders"
)

// MaxDirs bounds the folders that one configuration names.
const MaxDirs = 64

// Config is the functionConfig.
type Config struct {
	metav1.TypeMeta `json:",inline"`
	// Metadata is for who runs the function.
	Metadata metav1.ObjectMeta `json:"metadata"`
	// Spec says which Recipes are made.
	Spec Spec `json:"spec"`

	limits contract.Limits
}

// Spec is what a configuration asks for.
type Spec struct {
	// Dirs are folders of recipes, or single recipes, seen from the working folder;
	// .starweaver/recipes without it, at most MaxDirs.
	Dirs []string `json:"dirs,omitempty"`
	// Namespace is that of the Recipes. Without it new ones have none, and those that
	// replace another keep its.
	Namespace string `json:"namespace,omitempty"`
	// Labels are set on every Recipe.
	Labels map[string]string `json:"labels,omitempty"`
	// Limits are the operator's ceilings, by their names, where they are not the default.
	Limits map[string]int64 `json:"limits,omitempty"`
}

// parseConfig reads the functionConfig and fills in what it leaves out.
func parseConfig(node *yaml.Node) (*Config, *Result) {
	c := &Config{TypeMeta: metav1.TypeMeta{APIVersion: APIVersion, Kind: Kind}}
	if node != nil {
		text, err := yaml.Marshal(node)
		if err == nil {
			err = strict.UnmarshalStrict(text, c)
		}
		if err != nil {
			r := failure("functionConfig: %s", strings.TrimPrefix(err.Error(), "error unmarshaling JSON: while decoding JSON: json: "))
			return nil, &r
		}
	}
	c.limits = contract.DefaultLimits()
	if len(c.Spec.Dirs) == 0 {
		c.Spec.Dirs = []string{recipefile.DefaultRoot}
	}
	if field, err := c.check(); err != nil {
		r := c.failure(field, "%v", err)
		return nil, &r
	}
	return c, nil
}

// check returns the first field that is wrong.
func (c *Config) check() (string, error) {
	if c.APIVersion != APIVersion || c.Kind != Kind {
		return "kind", fmt.Errorf("%s of %s is not known; want %s of %s", c.Kind, c.APIVersion, Kind, APIVersion)
	}
	if n := len(c.Spec.Dirs); n > MaxDirs {
		return "spec.dirs", fmt.Errorf("%d folders, more than %d", n, MaxDirs)
	}
	if c.Spec.Namespace != "" {
		if errs := validation.IsDNS1123Label(c.Spec.Namespace); len(errs) > 0 {
			return "spec.namespace", fmt.Errorf("%s", errs[0])
		}
	}
	for _, k := range slices.Sorted(maps.Keys(c.Spec.Labels)) {
		if errs := append(validation.IsQualifiedName(k), validation.IsValidLabelValue(c.Spec.Labels[k])...); len(errs) > 0 {
			return "spec.labels", fmt.Errorf("%s: %s", contract.Truncate(k, 64), errs[0])
		}
	}
	for _, k := range slices.Sorted(maps.Keys(c.Spec.Limits)) {
		if err := c.limits.Set(k, c.Spec.Limits[k]); err != nil {
			return "spec.limits", err
		}
	}
	return "", nil
}

// failure is an error of one field.
func (c *Config) failure(field, format string, args ...any) Result {
	r := failure(format, args...)
	r.ResourceRef = &Ref{APIVersion: APIVersion, Kind: Kind, Name: c.Metadata.Name}
	r.Field = &Field{Path: field}
	return r
}

// recipes are the objects, in the order of their names.
func (c *Config) recipes(all []*recipefile.Recipe) ([]*v1alpha1.Recipe, *Result) {
	slices.SortStableFunc(all, func(a, b *recipefile.Recipe) int { return cmp.Compare(a.Object.Name, b.Object.Name) })
	var out []*v1alpha1.Recipe
	for i, r := range all {
		if i > 0 && all[i-1].Object.Name == r.Object.Name {
			first := all[i-1]
			bad := failure("%s and %s are both Recipe %s; give one another name, or name the folder once",
				first.Dir, r.Dir, r.Object.Name)
			bad.Tags = map[string]string{"rule": string(contract.ReasonNameConflict)}
			return nil, &bad
		}
		o := r.Object.DeepCopy()
		o.Namespace, o.Labels, o.Spec.SourceDigest = c.Spec.Namespace, c.Spec.Labels, o.SourceDigest()
		out = append(out, o)
	}
	return out, nil
}

// isRecipe reports whether an object is a Recipe, of whatever version.
func isRecipe(apiVersion, kind string) bool {
	group, _, _ := strings.Cut(apiVersion, "/")
	return group == v1alpha1.GroupVersion.Group && kind == "Recipe"
}
