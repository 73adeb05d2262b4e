package recipefile

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

const (
	program = "function main(input) { return input }\n"
	minimal = "version = 1\nname = \"tidy\"\n"
)

// tree writes files below a new folder and returns it. A name that ends with / is
// a folder, a text that begins with -> is a link.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		path := filepath.Join(root, name)
		dir := filepath.Dir(path)
		if strings.HasSuffix(name, "/") {
			dir = path
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if dir == path {
			continue
		}
		var err error
		if to, link := strings.CutPrefix(files[name], "->"); link {
			err = os.Symlink(to, path)
		} else {
			err = os.WriteFile(path, []byte(files[name]), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// read loads a root and words what came of it: names, and problems without the
// root's own path.
func read(t *testing.T, path, root string) (names, problems []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	got, err := Load(ctx, path)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range got.Recipes {
		names = append(names, r.Object.EffectiveToolName())
	}
	for _, p := range got.Problems {
		problems = append(problems, strings.ReplaceAll(strings.TrimPrefix(p.Error(), root+string(filepath.Separator)), root, "ROOT"))
	}
	return names, problems
}

func recipeWith(manifest string, more ...string) map[string]string {
	files := map[string]string{"a/recipe.toml": minimal + manifest, "a/main.js": program}
	for i := 0; i < len(more); i += 2 {
		files[more[i]] = more[i+1]
	}
	return files
}

func TestLoadRefuses(t *testing.T) {
	tests := map[string]struct {
		files map[string]string
		want  string
	}{
		"unknown key":        {recipeWith("retries = 5\n"), `a/recipe.toml:3:1: unknown key "retries"`},
		"unknown in table":   {recipeWith("[limit]\nx = 1\n"), `a/recipe.toml:3:2: unknown key "limit"`},
		"no version":         {map[string]string{"a/recipe.toml": "name = \"x\"\n", "a/main.js": program}, "a/recipe.toml:1:1: version is missing"},
		"version 2":          {map[string]string{"a/recipe.toml": "version = 2\nname = \"x\"\n", "a/main.js": program}, "a/recipe.toml:1:1: version 2 is not known"},
		"no name":            {map[string]string{"a/recipe.toml": "version = 1\n", "a/main.js": program}, "a/recipe.toml:1:1: name is missing"},
		"name":               {map[string]string{"a/recipe.toml": "version = 1\n\nname = \"a b\"\n", "a/main.js": program}, "a/recipe.toml:3:1: name may only hold"},
		"not TOML":           {recipeWith("tools = [\n"), "a/recipe.toml:3:10: array is incomplete"},
		"key twice":          {recipeWith("name = \"x\"\n"), "a/recipe.toml:3:1: "},
		"another type":       {recipeWith("tools = \"a\"\n"), "a/recipe.toml:3:9: "},
		"digest in capitals": {recipeWith("source_digest = \"sha256:" + strings.Repeat("A", 64) + "\"\n"), "a/recipe.toml:3:1: source_digest must be"},
		"empty digest":       {recipeWith("source_digest = \"\"\n"), "a/recipe.toml:3:1: source_digest must be"},
		"description":        {recipeWith("description = \"" + strings.Repeat("é", 4097) + "\"\n"), "a/recipe.toml:3:1: description has 8194 bytes"},
		"tool name":          {recipeWith("tools = [\"a b\"]\n"), `a/recipe.toml:3:1: tools has "a b"`},
		"tool twice":         {recipeWith("tools = [\"a\", \"a\"]\n"), `a/recipe.toml:3:1: tools names "a" twice`},
		"65 tools":           {recipeWith("tools = [" + numbered("\"t%d\",", 65) + "]\n"), "a/recipe.toml:3:1: tools has 65 names"},
		"limit":              {recipeWith("[limits]\nfoo = 1\n"), "a/recipe.toml:4:1: unknown limit \"foo\""},
		"limit zero":         {recipeWith("[limits]\nwallClockMs = 0\n"), "a/recipe.toml:4:1: limit wallClockMs: 0 is too low"},
		"limit as text":      {recipeWith("[limits]\nwallClockMs = \"1s\"\n"), "a/recipe.toml:4:15: "},
		"large manifest":     {recipeWith("# " + strings.Repeat("x", 64<<10)), "a/recipe.toml: it has more than 65536 bytes"},
		"manifest with BOM":  {map[string]string{"a/recipe.toml": "\ufeff" + minimal, "a/main.js": program}, "a/recipe.toml: it begins with a byte order mark"},
		"manifest encoding":  {map[string]string{"a/recipe.toml": minimal + "description = \"é\xff\"\n", "a/main.js": program}, "a/recipe.toml:3:17: it is not UTF-8"},
		"manifest is folder": {map[string]string{"a/recipe.toml/": ""}, "a/recipe.toml: it is no regular file"},
		"no source":          {map[string]string{"a/recipe.toml": minimal}, "a/main.js: there is no such file"},
		"empty source":       {map[string]string{"a/recipe.toml": minimal, "a/main.js": ""}, "a/main.js:1:1: the program is empty"},
		"source encoding":    {map[string]string{"a/recipe.toml": minimal, "a/main.js": "// \xff"}, "a/main.js:1:4: it is not UTF-8"},
		"source too large":   {map[string]string{"a/recipe.toml": minimal, "a/main.js": strings.Repeat("/", 256<<10+1)}, "a/main.js: it has more than 262144 bytes"},
		"schema too large":   {recipeWith("input_schema = \"s.json\"\n", "a/s.json", strings.Repeat(" ", 256<<10+1)), "a/s.json: it has more than 262144 bytes"},
		"schema not JSON":    {recipeWith("input_schema = \"s.json\"\n", "a/s.json", "{\"type\":\n  object}"), "a/s.json:2:3: SchemaInvalid: the schema is not JSON"},
		"schema cut off":     {recipeWith("output_schema = \"s.json\"\n", "a/s.json", "{\"type\":1\n"), "a/s.json:2:1: SchemaInvalid: the schema is not JSON"},
		"schema and more":    {recipeWith("output_schema = \"s.json\"\n", "a/s.json", "{} {}"), "a/s.json:1:6: SchemaInvalid: the schema is not JSON"},

		"absolute":             {recipeWith("source = \"/etc/passwd\"\n"), `a/recipe.toml:3:1: source: the path "/etc/passwd" is absolute`},
		"upwards":              {recipeWith("source = \"../x.js\"\n", "x.js", program), `a/recipe.toml:3:1: source: the path "../x.js" has`},
		"upwards within":       {recipeWith("source = \"x/../main.js\"\n"), "a/recipe.toml:3:1: source: the path"},
		"dot":                  {recipeWith("source = \"./main.js\"\n"), "a/recipe.toml:3:1: source: the path"},
		"empty segment":        {recipeWith("source = \"x//main.js\"\n"), "a/recipe.toml:3:1: source: the path"},
		"slash at the end":     {recipeWith("source = \"main.js/\"\n"), "a/recipe.toml:3:1: source: the path"},
		"empty path":           {recipeWith("source = \"\"\n"), `a/recipe.toml:3:1: source: the path "" is empty`},
		"the folder":           {recipeWith("tests = \".\"\n"), "a/recipe.toml:3:1: tests: the path"},
		"backslash":            {recipeWith("source = 'x\\main.js'\n"), "a/recipe.toml:3:1: source: the path"},
		"NUL":                  {recipeWith("source = \"x\\u0000.js\"\n"), "a/recipe.toml:3:1: source: the path"},
		"long path":            {recipeWith("source = \"" + strings.Repeat("x/", 600) + "x\"\n"), "a/recipe.toml:3:1: source: the path"},
		"link out of the root": {recipeWith("source = \"x.js\"\n", "a/x.js", "->../../x.js"), "a/x.js: path escapes from parent"},
		"absolute link":        {recipeWith("source = \"x.js\"\n", "a/x.js", "->/etc/hostname"), "a/x.js: path escapes from parent"},
		"link in a circle":     {recipeWith("source = \"x.js\"\n", "a/x.js", "->y.js", "a/y.js", "->x.js"), "a/x.js: too many levels of symbolic links"},
		"folder as a circle":   {map[string]string{"b": "->c", "c": "->b"}, "b/recipe.toml: too many levels of symbolic links|c/recipe.toml: too many levels of symbolic links"},
		"folder out of root":   {map[string]string{"b": "->/tmp"}, "b/recipe.toml: path escapes from parent"},
		"dangling folder":      {map[string]string{"b": "->nowhere"}, "b/recipe.toml: there is no such file"},
		"device":               {recipeWith("source = \"x.js\"\n", "a/x.js", "->/dev/zero"), "a/x.js: path escapes from parent"},

		"two of one name": {
			recipeWith("", "b/recipe.toml", minimal, "b/main.js", program),
			"b/recipe.toml:2:1: NameConflict: ROOT/a/recipe.toml has the name \"tidy\" already",
		},
		"two of one object": {
			map[string]string{
				"a/recipe.toml": "version = 1\nname = \"a_b\"\n", "a/main.js": program,
				"b/recipe.toml": "version = 1\nname = \"a-b\"\n", "b/main.js": program,
			},
			"b/recipe.toml:2:1: NameConflict: ROOT/a/recipe.toml is called \"a_b\", and the object of both would be Recipe a-b",
		},

		"tests of no format": {recipeWith("tests = \"t.js\"\n", "a/t.js", "1"), "a/t.js: tests are written in a file that ends with"},
		"no tests":           {recipeWith("tests = \"t\"\n"), "a/t: there is no such file"},
		"bad test":           {recipeWith("tests = \"t\"\n", "a/t/x.yaml", "expects: 1\n"), `a/t/x.yaml: unknown field "expects"`},
		"not YAML":           {recipeWith("tests = \"t.yaml\"\n", "a/t.yaml", "a: [\n"), "a/t.yaml: "},
		"aliases in YAML":    {recipeWith("tests = \"t.yaml\"\n", "a/t.yaml", laughs()), "a/t.yaml: "},
		"time in a test":     {recipeWith("tests = \"t.toml\"\n", "a/t.toml", "input = 2026-01-01\n"), "a/t.toml:1:1: input: a time is no value of JSON"},
		"NaN in a test":      {recipeWith("tests = \"t.toml\"\n", "a/t.toml", "input = [nan]\n"), "a/t.toml:1:1: input: NaN is no number of JSON"},
		"tests of one name": {
			recipeWith("tests = \"t\"\n", "a/t/x.yaml", "expect: {}\n", "a/t/x.json", "{}"), `a/t/x.yaml: two tests have the name "x"`,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			root := tree(t, tt.files)
			_, got := read(t, root, root)
			want := strings.Split(tt.want, "|")
			if len(got) != len(want) {
				t.Fatalf("problems %q, want %q", got, want)
			}
			for i := range want {
				if !strings.HasPrefix(got[i], want[i]) {
					t.Errorf("problem %q, want it to begin with %q", got[i], want[i])
				}
			}
		})
	}
}

func numbered(format string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}

// laughs is a short text of YAML that stands for a huge one.
func laughs() string {
	text := "a0: &a0 [x,x,x,x,x,x,x,x,x]\n"
	for i := 1; i < 12; i++ {
		text += fmt.Sprintf("a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d,", i-1), 9), ","))
	}
	return text
}

func TestLoadTakes(t *testing.T) {
	tests := map[string]struct {
		files map[string]string
		at    string // below the root
		want  []string
	}{
		"the least": {files: recipeWith(""), want: []string{"tidy"}},
		"other files and folders are passed over": {
			files: recipeWith("", "README.md", "x", "docs/x.toml", "x", "link", "->README.md", "empty/", ""), want: []string{"tidy"},
		},
		"a link within the root": {
			files: recipeWith("input_schema = \"s.json\"\n", "a/s.json", "->../shared/s.json", "shared/s.json", "{}"), want: []string{"tidy"},
		},
		"so it does where the recipe is asked for alone": {
			files: recipeWith("input_schema = \"s.json\"\n", "a/s.json", "->../shared/s.json", "shared/s.json", "{}"), at: "a", want: []string{"tidy"},
		},
		"files below": {files: recipeWith("source = \"lib/x.main.js\"\n", "a/lib/x.main.js", program), want: []string{"tidy"}},
		"the longest name": {
			files: map[string]string{"a/recipe.toml": "version = 1\nname = \"" + strings.Repeat("n", 64) + "\"\n", "a/main.js": program},
			want:  []string{strings.Repeat("n", 64)},
		},
		"the longest description": {files: recipeWith("description = \"" + strings.Repeat("é", 4096) + "\"\n"), want: []string{"tidy"}},
		"64 tools":                {files: recipeWith("tools = [" + numbered("\"t%d\",", 64) + "]\n"), want: []string{"tidy"}},
		"a manifest of 64 KiB":    {files: recipeWith("#" + strings.Repeat("x", 64<<10-len(minimal)-1)), want: []string{"tidy"}},
		"a bad one beside good ones": {
			files: recipeWith("", "b/recipe.toml", "nonsense", "c/recipe.toml", "version = 1\nname = \"c\"\n", "c/main.js", program),
			want:  []string{"tidy", "c"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			root := tree(t, tt.files)
			got, _ := read(t, filepath.Join(root, tt.at), root)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestBoundsOfRoot(t *testing.T) {
	tests := map[string]struct {
		recipes, others int
		want            string
	}{
		"512 entries": {recipes: 1, others: 511},
		"513 entries": {recipes: 1, others: 512, want: "ROOT: the folder has more than 512 entries"},
		"128 recipes": {recipes: 128},
		"129 recipes": {recipes: 129, want: "ROOT: the folder holds 129 recipes, more than 128"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			files := map[string]string{}
			for i := range tt.recipes {
				files[fmt.Sprintf("r%d/recipe.toml", i)] = fmt.Sprintf("version = 1\nname = \"r%d\"\n", i)
				files[fmt.Sprintf("r%d/main.js", i)] = program
			}
			for i := range tt.others {
				files[fmt.Sprintf("x%d", i)] = ""
			}
			root := tree(t, files)
			names, problems := read(t, root, root)
			if tt.want == "" {
				if len(names) != tt.recipes || problems != nil {
					t.Errorf("%d recipes, problems %q", len(names), problems)
				}
				return
			}
			if diff := cmp.Diff([]string{tt.want}, problems); diff != "" || names != nil {
				t.Errorf("recipes %q, problems (-want +got):\n%s", names, diff)
			}
		})
	}
}

func TestLoadObject(t *testing.T) {
	digest := contract.Digest([]byte(program))
	root := tree(t, map[string]string{
		"a/recipe.toml": "version = 1\nname = \"Look_up\"\ndescription = \"Looks up.\"\nsource = \"p.js\"\nsource_digest = \"" + digest + "\"\n" +
			"tools = [\"b\", \"a\"]\ninput_schema = \"i.json\"\noutput_schema = \"o.json\"\ntests = \"t\"\n[limits]\nchildCalls = 0\nwallClockMs = 5\n",
		"a/p.js": program, "a/i.json": "{ \"type\": \"object\" }\n", "a/o.json": "true",
		"a/t/1.json": `{"expect": {"output": 1}}`, "a/t/2.toml": "[[tests]]\nname = \"x\"\ninput = {n = 1}\n", "a/t/3.yaml": "- name: why\n  input: 1e3\n", "a/t/x.md": "x",
	})
	got, err := Load(t.Context(), root)
	if err != nil || len(got.Problems) > 0 || len(got.Recipes) != 1 {
		t.Fatalf("%v, %v", err, got)
	}
	r := got.Recipes[0]
	calls := int64(0)
	o := r.Object
	if o.Name != "look-up" || o.Spec.ToolName != "Look_up" || o.Spec.Description != "Looks up." || o.Spec.Source != program || o.Spec.SourceDigest != digest {
		t.Errorf("object %+v", o.Spec)
	}
	if diff := cmp.Diff(&contract.Limits{ChildCalls: &calls, WallClockMs: 5}, o.Spec.Limits); diff != "" {
		t.Error(diff)
	}
	if string(o.Spec.InputSchema.Raw) != `{"type":"object"}` || string(o.Spec.OutputSchema.Raw) != "true" {
		t.Errorf("schemas %s, %s", o.Spec.InputSchema.Raw, o.Spec.OutputSchema.Raw)
	}
	var tests []string
	for _, f := range r.Tests {
		tests = append(tests, f.Name)
	}
	if diff := cmp.Diff([]string{"1", "x", "why"}, tests); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(Place{filepath.Join(root, "a/recipe.toml"), 11, 1}, r.Key("limits.childCalls")); diff != "" {
		t.Error(diff)
	}
}

// TestHalfWritten changes files between the two readings.
func TestHalfWritten(t *testing.T) {
	tests := map[string]func(root string) error{
		"a/main.js":     func(root string) error { return os.WriteFile(root+"/a/main.js", []byte("x"), 0o644) },
		"a/recipe.toml": func(root string) error { return os.Remove(root + "/a/recipe.toml") },
		"a/t":           func(root string) error { return os.WriteFile(root+"/a/t/y.json", []byte("{}"), 0o644) },
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			root := tree(t, recipeWith("tests = \"t\"\n", "a/t/x.json", "{}", "b/recipe.toml", "version = 1\nname = \"b\"\n", "b/main.js", program))
			l := &loader{between: func(dir string) {
				if dir != "a" {
					return
				}
				if err := change(root); err != nil {
					t.Error(err)
				}
			}}
			got, err := l.load(t.Context(), root)
			if err != nil {
				t.Fatal(err)
			}
			if len(got.Recipes) != 1 || got.Recipes[0].Object.Name != "b" {
				t.Errorf("recipes %v", got.Recipes)
			}
			if len(got.Problems) != 1 || got.Problems[0].Path != filepath.Join(root, name) || !strings.Contains(got.Problems[0].Message, "changed while it was read") {
				t.Errorf("problems %v", got.Problems)
			}
		})
	}
	t.Run("the root", func(t *testing.T) {
		root := tree(t, recipeWith(""))
		l := &loader{between: func(string) { _ = os.Mkdir(root+"/b", 0o755) }}
		got, err := l.load(t.Context(), root)
		if err != nil || len(got.Recipes) != 0 || len(got.Problems) != 1 {
			t.Errorf("%v, %v", err, got)
		}
	})
}

func TestTooLate(t *testing.T) {
	ctx, cancel := context.WithDeadline(t.Context(), time.Unix(1, 0))
	defer cancel()
	got, err := Load(ctx, tree(t, recipeWith("")))
	if err != nil || len(got.Problems) != 1 || !strings.Contains(got.Problems[0].Message, "within 30s") {
		t.Errorf("%v, %v", err, got)
	}
}

// TestBombs gives TOML that is small to write and dear to read.
func TestBombs(t *testing.T) {
	most := MaxManifestBytes - len(minimal)
	tests := map[string]string{
		"nested arrays":      "tools = " + strings.Repeat("[", (most-8)/2) + strings.Repeat("]", (most-8)/2),
		"open arrays":        "tools = " + strings.Repeat("[", most-8),
		"nested tables":      "limits = " + strings.Repeat("{a=", (most-10)/4) + "1" + strings.Repeat("}", (most-10)/4),
		"dotted keys":        "a" + strings.Repeat(".a", (most-6)/2) + " = 1",
		"dotted table":       "[a" + strings.Repeat(".a", (most-6)/2) + "]",
		"many tables":        strings.Repeat("[[a]]\n", most/6),
		"many dotted tables": numbered("[a.b.c.d.e.f.g%d]\n", most/24),
	}
	for name, text := range tests {
		t.Run(name, func(t *testing.T) {
			begun := time.Now()
			root := tree(t, map[string]string{"a/recipe.toml": minimal + text, "a/main.js": program})
			names, problems := read(t, root, root)
			if len(problems) != 1 || names != nil {
				t.Errorf("recipes %q, problems %q", names, problems)
			}
			if d := time.Since(begun); d > 5*time.Second {
				t.Errorf("it took %s", d)
			}
		})
	}
}

func TestNoSuchRoot(t *testing.T) {
	if _, err := Load(t.Context(), filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("no error")
	}
	file := filepath.Join(tree(t, map[string]string{"x": ""}), "x")
	if _, err := Load(t.Context(), file); err == nil {
		t.Error("no error for a file")
	}
}

func TestObjectName(t *testing.T) {
	tests := map[string]string{
		"tidy": "tidy", "demo_recipe": "demo-recipe", "Look_Up": "look-up", "_x_": "x", "-": "recipe", strings.Repeat("n", 64): strings.Repeat("n", 63),
	}
	for tool, want := range tests {
		if got := ObjectName(tool); got != want {
			t.Errorf("%s: %s, want %s", tool, got, want)
		}
	}
}
