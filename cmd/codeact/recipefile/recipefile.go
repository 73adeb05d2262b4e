// Package recipefile reads recipes as their authors keep them: folders with a
// manifest, a program and its schemas.
//
//	.starweaver/recipes/        the root
//	  <dir>/recipe.toml         the manifest
//	  <dir>/main.js             the program, or what the manifest's source names
//	  <dir>/input.schema.json   what the manifest's input_schema names
//
// A recipe that cannot be read is reported with its path, and the others are read
// all the same. What is read becomes Recipes as the cluster has them: whether they
// are right is judged there, and by package lint in the same words.
package recipefile

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/api/v1alpha1"
)

const (
	// DefaultRoot is where recipes are kept, seen from the folder of a project.
	DefaultRoot = ".starweaver/recipes"
	// ManifestName is the file that makes a folder a recipe.
	ManifestName = "recipe.toml"
	// DefaultSource is the program where the manifest names none.
	DefaultSource = "main.js"
)

// Bounds of one root.
const (
	// MaxEntries bounds the entries of a root, and of a folder of tests.
	MaxEntries = 512
	// MaxRecipes bounds the recipes of a root.
	MaxRecipes = 128
	// MaxManifestBytes bounds one recipe.toml.
	MaxManifestBytes = contract.MaxManifestBytes
	// MaxPathBytes bounds a path in a manifest.
	MaxPathBytes = 1024
	// Preparation bounds the reading of one root.
	Preparation = 30 * time.Second
)

// Root is what was read.
type Root struct {
	// Path is the root, or the one recipe, as it was asked for.
	Path string
	// Recipes are those that could be read, in the order of their folders' names.
	Recipes []*Recipe
	// Problems say what could not, in the same order.
	Problems []*Problem
}

// Recipe is one recipe that could be read.
type Recipe struct {
	// Dir is its folder.
	Dir string
	// Object is the recipe as a cluster has it, without a namespace.
	Object *v1alpha1.Recipe
	// Tests are its tests, in the order of their files.
	Tests []contract.Fixture
	// Manifest and Source are its files. InputSchema and OutputSchema are nil where
	// the manifest names none.
	Manifest, Source          *File
	InputSchema, OutputSchema *File

	keys map[string]position
}

// File is a file of a recipe.
type File struct {
	// Path is where it stands, for people.
	Path string
	Text []byte
}

// Place is where something stands; lines and columns are counted from 1, in
// characters, and 0 where they are not known.
type Place struct {
	Path         string
	Line, Column int
}

type position struct{ line, column int }

// Key returns where the manifest has a key, such as "source_digest", or its
// beginning where it has none.
func (r *Recipe) Key(name string) Place {
	p := Place{Path: r.Manifest.Path, Line: 1, Column: 1}
	if k, ok := r.keys[name]; ok {
		p.Line, p.Column = k.line, k.column
	}
	return p
}

// Problem is why a recipe, or a whole root, cannot be read.
type Problem struct {
	Place
	// Reason is the cluster's word for it, empty where it has none.
	Reason contract.Reason
	// Message says what to do about it.
	Message string
	// Text is the file's, if it was read.
	Text []byte
}

// Error implements error.
func (p *Problem) Error() string {
	at := p.Path
	if p.Line > 0 {
		at = fmt.Sprintf("%s:%d:%d", at, p.Line, p.Column)
	}
	if p.Reason != "" {
		return fmt.Sprintf("%s: %s: %s", at, p.Reason, p.Message)
	}
	return at + ": " + p.Message
}

func problem(path, format string, args ...any) *Problem {
	return &Problem{Place: Place{Path: path}, Message: contract.Truncate(fmt.Sprintf(format, args...), contract.MaxMessageBytes)}
}

// Load reads a root of recipes, or one recipe where path has a recipe.toml. It
// takes at most Preparation. The error is one of opening path itself.
func Load(ctx context.Context, path string) (*Root, error) {
	return (&loader{}).load(ctx, path)
}

func (l *loader) load(ctx context.Context, path string) (*Root, error) {
	ctx, cancel := context.WithTimeout(ctx, Preparation)
	defer cancel()
	l.ctx = ctx
	l.out = &Root{Path: path}
	_, err := os.Lstat(filepath.Join(path, ManifestName))
	if err == nil {
		return l.out, l.one(path)
	}
	if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission) {
		return nil, err
	}
	return l.out, l.all(path)
}

// one reads a single recipe. What its links may reach is the folder above, as it
// is when that is read as a root.
func (l *loader) one(path string) error {
	abs, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	if l.root, err = os.OpenRoot(filepath.Dir(abs)); err != nil {
		return err
	}
	defer func() { _ = l.root.Close() }()
	l.shown = func(name string) string {
		rel, err := filepath.Rel(filepath.Base(abs), filepath.FromSlash(name))
		if err != nil {
			return name
		}
		return filepath.Join(path, rel)
	}
	l.recipe(filepath.Base(abs))
	return nil
}

// all reads every recipe of a root.
func (l *loader) all(path string) error {
	var err error
	if l.root, err = os.OpenRoot(path); err != nil {
		return err
	}
	defer func() { _ = l.root.Close() }()
	l.every(path)
	return nil
}

// every reads the recipes of the root that is open.
func (l *loader) every(path string) {
	l.shown = func(name string) string { return filepath.Join(path, filepath.FromSlash(name)) }
	dirs, bad := l.dirs()
	if bad != nil {
		l.out.Problems = append(l.out.Problems, bad)
		return
	}
	for _, dir := range dirs {
		l.recipe(dir)
	}
	if again, bad := l.list("."); bad != nil || again != l.listed {
		l.out.Recipes = nil
		l.out.Problems = []*Problem{problem(path, "the folder changed while it was read; read it again")}
	}
	l.unique()
}

// unique takes out recipes whose name another one has already: of several, the
// first folder keeps it.
func (l *loader) unique() {
	seen := map[string]*Recipe{}
	kept := l.out.Recipes[:0]
	for _, r := range l.out.Recipes {
		first := seen[r.Object.Name]
		if first == nil {
			seen[r.Object.Name] = r
			kept = append(kept, r)
			continue
		}
		p := &Problem{Place: r.Key("name"), Reason: contract.ReasonNameConflict, Text: r.Manifest.Text}
		if first.Object.EffectiveToolName() == r.Object.EffectiveToolName() {
			p.Message = fmt.Sprintf("%s has the name %q already; give this one another name", first.Manifest.Path, r.Object.EffectiveToolName())
		} else {
			p.Message = fmt.Sprintf("%s is called %q, and the object of both would be Recipe %s; give this one another name",
				first.Manifest.Path, first.Object.EffectiveToolName(), r.Object.Name)
		}
		l.out.Problems = append(l.out.Problems, p)
	}
	l.out.Recipes = kept
}
