package krm

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/codeact-dev/codeact-operator/test/golden"
)

// run runs the function in testdata/folder.
func run(t *testing.T, in string) (out, errs string, failed bool) {
	t.Helper()
	folder, err := os.OpenRoot(filepath.Join("testdata", "folder"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = folder.Close() }()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	var o, e bytes.Buffer
	err = (&Function{Folder: folder, Now: time.Unix(0, 0)}).Run(ctx, strings.NewReader(in), &o, &e)
	if err != nil && !errors.Is(err, ErrFailed) {
		t.Fatal(err)
	}
	return o.String(), e.String(), err != nil
}

// TestGolden holds what goes out to the files beside what comes in.
func TestGolden(t *testing.T) {
	tests := map[string]struct {
		wantFailed bool
	}{
		"generate":  {},
		"replace":   {},
		"namespace": {},
		"warning":   {},
		"lint":      {wantFailed: true},
		"outside":   {wantFailed: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			in, err := os.ReadFile(filepath.Join("testdata", name+".in.yaml"))
			if err != nil {
				t.Fatal(err)
			}
			out, errs, failed := run(t, string(in))
			if failed != tc.wantFailed {
				t.Errorf("failed %t, want %t: %s", failed, tc.wantFailed, errs)
			}
			if again, _, _ := run(t, string(in)); again != out {
				t.Error("the same files gave other bytes")
			}
			// What comes in again has all of them, and stays as it is.
			if again, _, _ := run(t, out); again != out {
				t.Errorf("its own output gave other bytes: %s", cmp.Diff(out, again))
			}
			golden.Check(t, name+".out.yaml", out)
			golden.Check(t, name+".errs.txt", errs)
		})
	}
}

const head = "apiVersion: config.kubernetes.io/v1\nkind: ResourceList\n"

func configured(spec string) string {
	return head + "items:\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n" +
		"functionConfig: {apiVersion: krm.codeact.dev/v1alpha1, kind: RecipeFolders, metadata: {name: f}, spec: " + spec + "}\n"
}

// TestRefuses has lists and configurations that are wrong. Each becomes a result.
func TestRefuses(t *testing.T) {
	tests := map[string]struct {
		in   string
		want string // a part of the message
		kept int    // the items that go out as they were
	}{
		"nothing":          {in: "", want: "the input is empty"},
		"only a comment":   {in: "# x\n", want: "the input is empty"},
		"null":             {in: "null\n", want: "the input is no object"},
		"no YAML":          {in: "a: [\n", want: "no ResourceList: yaml"},
		"a tab":            {in: "a:\n\t- b\n", want: "no ResourceList: yaml"},
		"not UTF-8":        {in: head + "x: \xff\n", want: "no ResourceList: yaml"},
		"a list":           {in: "[1]\n", want: "the input is no object"},
		"another object":   {in: "apiVersion: v1\nkind: List\nitems: []\n", want: "want a ResourceList"},
		"another group":    {in: "apiVersion: x/v1\nkind: ResourceList\nitems: []\n", want: "want a ResourceList"},
		"two documents":    {in: head + "---\n" + head, want: "more than one document"},
		"key twice":        {in: head + "items: []\nitems: []\n", want: `the key "items" is there twice`},
		"items as object":  {in: head + "items: {}\n", want: "items of the ResourceList is no list"},
		"too large":        {in: head + "#" + strings.Repeat("x", MaxListBytes), want: "has more than 67108864 bytes"},
		"deep":             {in: head + "items: " + strings.Repeat("[", 20000), want: "no ResourceList: yaml"},
		"missing default":  {in: head + "items: []\n", want: "spec.dirs[0]: "},
		"config as text":   {in: head + "items: []\nfunctionConfig: x\n", want: "functionConfig: "},
		"config of others": {in: head + "items: []\nfunctionConfig: {apiVersion: v1, kind: ConfigMap}\n", want: "ConfigMap of v1 is not known"},
		"unknown field":    {in: configured("{dir: recipes}"), want: `functionConfig: unknown field "dir"`, kept: 1},
		"field twice":      {in: configured("{dirs: [a], dirs: [b]}"), want: `"dirs" already set`, kept: 1},
		"dirs as text":     {in: configured("{dirs: recipes}"), want: "functionConfig: ", kept: 1},
		"absolute":         {in: configured("{dirs: [/etc]}"), want: "spec.dirs[0]: /etc leads out of the working folder", kept: 1},
		"upwards":          {in: configured("{dirs: [recipes, recipes/../..]}"), want: "spec.dirs[1]: recipes/../.. leads out", kept: 1},
		"no such folder":   {in: configured("{dirs: [nowhere]}"), want: "spec.dirs[0]: ", kept: 1},
		"a file":           {in: configured("{dirs: [recipes/tidy/main.js]}"), want: "spec.dirs[0]: ", kept: 1},
		"no recipe":        {in: configured("{dirs: [empty]}"), want: "spec.dirs[0]: empty holds no recipe", kept: 1},
		"folder twice":     {in: configured("{dirs: [recipes, recipes/tidy]}"), want: "are both Recipe tidy", kept: 1},
		"65 folders":       {in: configured("{dirs: [" + strings.Repeat("a,", 65) + "]}"), want: "65 folders, more than 64", kept: 1},
		"namespace":        {in: configured("{dirs: [recipes], namespace: A}"), want: "spec.namespace: ", kept: 1},
		"label key":        {in: configured("{dirs: [recipes], labels: {a b: c}}"), want: "spec.labels: a b: ", kept: 1},
		"label value":      {in: configured("{dirs: [recipes], labels: {a: 'b c'}}"), want: "spec.labels: a: ", kept: 1},
		"limit":            {in: configured("{dirs: [recipes], limits: {steps: 1}}"), want: `spec.limits: unknown limit "steps"`, kept: 1},
		"limit too low":    {in: configured("{dirs: [recipes], limits: {childCalls: 1}}"), want: "LimitsTooHigh", kept: 1},
		"shared labels": {
			in: strings.Replace(configured("{dirs: [recipes], labels: {a: b}}"), "kind: ConfigMap, metadata: {name: a}",
				"kind: ConfigMap, metadata: {name: a, labels: &l {c: d}}}\n- {apiVersion: codeact.dev/v1alpha1, kind: Recipe, metadata: {name: tidy, labels: *l}", 1),
			want: "Recipe tidy of the list has an anchor or an alias", kept: 2,
		},
		"unknown anchor":   {in: head + "items: [*a]\n", want: "no ResourceList: yaml"},
		"anchor of others": {in: head + "items: [&a {b: c}]\nfunctionConfig: *a\n", want: "functionConfig: ", kept: 1},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			out, errs, failed := run(t, tc.in)
			if !failed || !strings.Contains(errs, tc.want) {
				t.Errorf("failed %t, %q, want %q", failed, errs, tc.want)
			}
			l, err := parseList([]byte(out))
			if err != nil {
				t.Fatal(err)
			}
			if results := get(l.top, "results"); results == nil || len(results.Content) == 0 {
				t.Errorf("no results: %s", out)
			}
			if kept := len(l.items.Content); kept != tc.kept {
				t.Errorf("%d items, want %d: %s", kept, tc.kept, out)
			}
		})
	}
}

// TestKeeps has items of others that other writers of YAML would change.
func TestKeeps(t *testing.T) {
	tests := map[string]string{
		"text of digits":       `v: "010"`,
		"yes":                  `v: "yes"`,
		"large number":         `v: 123456789012345678901234567890`,
		"number with a point":  `v: 1.0`,
		"exponent":             `v: 1e3`,
		"octal":                `v: 0o17`,
		"null":                 `v: ~`,
		"date":                 `v: 2020-01-01`,
		"key order":            `{z: 1, a: 2}`,
		"key that is a number": `1: a`,
		"comment":              "# above\nv: 1 # beside",
		"anchors":              "v: &a {b: c}\nw: *a\nx:\n  !!merge <<: *a",
		"binary":               `v: !!binary aGVsbG8=`,
		"blank first":          "v: |2\n    x\n  y",
		"empty block":          `v: ""`,
		"folded":               "v: >-\n  a b\n  c",
		"carriage return":      `v: "a\r\nb"`,
		"no character":         `v: "\u0085\u2028\ufeff"`,
		"emoji":                `v: "😀"`,
		"long":                 "v: " + strings.Repeat("word ", 100) + "end",
	}
	for name, data := range tests {
		t.Run(name, func(t *testing.T) {
			in := head + "items:\n- apiVersion: v1\n  kind: ConfigMap\n  data:\n    " + strings.ReplaceAll(data, "\n", "\n    ") +
				"\nfunctionConfig: {apiVersion: krm.codeact.dev/v1alpha1, kind: RecipeFolders, spec: {dirs: [recipes/tidy]}}\n"
			before, err := parseList([]byte(in))
			if err != nil {
				t.Fatal(err)
			}
			out, errs, failed := run(t, in)
			if failed {
				t.Fatal(errs)
			}
			after, err := parseList([]byte(out))
			if err != nil {
				t.Fatal(err)
			}
			if len(after.items.Content) != 2 || !same(before.items.Content[0], after.items.Content[0]) {
				t.Errorf("the item is another one:\n%s", out)
			}
		})
	}
}

// TestWriters has outputs that fail.
func TestWriters(t *testing.T) {
	folder, err := os.OpenRoot(filepath.Join("testdata", "folder"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = folder.Close() }()
	f := &Function{Folder: folder, Now: time.Unix(0, 0)}
	full := writer(func([]byte) (int, error) { return 0, errors.New("no space") })
	if err := f.Run(t.Context(), strings.NewReader(configured("{dirs: [recipes]}")), full, &bytes.Buffer{}); err == nil || errors.Is(err, ErrFailed) {
		t.Errorf("error %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out bytes.Buffer
	if err := f.Run(ctx, strings.NewReader(configured("{dirs: [recipes]}")), &out, &bytes.Buffer{}); !errors.Is(err, ErrFailed) {
		t.Errorf("error %v after a cancel: %s", err, out.String())
	}
}

type writer func([]byte) (int, error)

func (w writer) Write(b []byte) (int, error) { return w(b) }
