package main

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// edit replaces a part of a file.
func edit(t *testing.T, path, from, to string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.ReplaceAll(string(text), from, to)
	if changed == string(text) {
		t.Fatalf("%s does not hold %q", path, from)
	}
	if err := os.WriteFile(path, []byte(changed), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestRecipeTest(t *testing.T) {
	main := filepath.Join(".starweaver", "recipes", "look_up", "main.js")
	manifest := filepath.Join(".starweaver", "recipes", "look_up", "recipe.toml")
	tests := map[string]struct {
		path, from, to string // an edit of the scaffold
		args           []string
		wantCode       int
		wantOut        []string
		wantErr        string
	}{
		"a new recipe passes": {wantOut: []string{"ok    look_up/trims_the_name  1 call", "1 passed, 0 failed; 1 of 1 declared tool called"}},
		"a test fails": {path: main, from: ".trim()", wantCode: exitFailed,
			wantOut: []string{"FAIL  look_up/trims_the_name", "the output differs, first at $.name", `want  {"id":"7","name":"Lamp"}`, `got   {"id":"7","name":" Lamp "}`, "0 passed, 1 failed"}},
		"a call differs": {path: main, from: "id: input.id }", to: "id: 8 }", wantCode: exitFailed,
			wantOut: []string{"call 1 of get_item has other arguments, first at $.id"}},
		"a tool is never called": {path: manifest, from: `["get_item"]`, to: `["get_item", "put_item"]`,
			wantOut: []string{"no test of look_up calls put_item", "1 of 2 declared tools called"}},
		"a limit holds":              {args: []string{"--limit", "childCalls=0"}, wantCode: exitFailed, wantOut: []string{"CallLimitExceeded"}},
		"a recipe that is not read":  {path: manifest, from: "version = 1", to: "version = 2", wantCode: exitFailed, wantOut: []string{"FAIL  ", "recipe.toml:", "0 passed, 1 failed"}},
		"as JUnit, too":              {path: manifest, from: "version = 1", to: "version = 2", args: []string{"-o", "junit"}, wantCode: exitFailed, wantOut: []string{`errors="1"`, "<error message="}},
		"one is chosen":              {args: []string{"--run", "^look_up/trims"}, wantOut: []string{"1 passed"}},
		"none matches":               {args: []string{"--run", "nothing"}, wantCode: exitUsage, wantOut: []string{"1 not chosen"}, wantErr: "no test of these recipes matches"},
		"no tests":                   {path: manifest, from: `tests = "tests"`, wantCode: exitUsage, wantOut: []string{"none  look_up has no tests"}, wantErr: "have no tests"},
		"an expression that is none": {args: []string{"--run", "("}, wantCode: exitUsage, wantErr: "--run"},
		"a form that is none":        {args: []string{"-o", "xml"}, wantCode: exitUsage, wantErr: "want text, json or junit"},
		"a folder that is none":      {args: []string{"nowhere"}, wantCode: exitUsage, wantErr: "no such file"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			codeact(t, "recipe", "new", "look_up")
			if tc.path != "" {
				edit(t, tc.path, tc.from, tc.to)
			}
			code, out, errs := codeact(t, append([]string{"recipe", "test"}, tc.args...)...)
			if code != tc.wantCode || !strings.Contains(errs, tc.wantErr) {
				t.Errorf("code %d, want %d\n%s\n%s", code, tc.wantCode, out, errs)
			}
			for _, part := range tc.wantOut {
				if !strings.Contains(out, part) {
					t.Errorf("nothing says %q:\n%s", part, out)
				}
			}
		})
	}
}

func TestRecipeTestForms(t *testing.T) {
	t.Chdir(t.TempDir())
	codeact(t, "recipe", "new", "look_up")
	edit(t, filepath.Join(".starweaver", "recipes", "look_up", "main.js"), ".trim()", `.replace("L", "<")`)

	_, out, _ := codeact(t, "recipe", "test", "-o", "json")
	var report struct {
		Failed  int
		Recipes []struct {
			Tests []struct{ Diffs []struct{ Kind, At string } }
		}
	}
	if err := json.Unmarshal([]byte(out), &report); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if report.Failed != 1 || report.Recipes[0].Tests[0].Diffs[0].At != "$.name" {
		t.Errorf("got %+v", report)
	}

	_, out, _ = codeact(t, "recipe", "test", "-o", "junit")
	type suite struct {
		Name  string `xml:"name,attr"`
		Cases []struct {
			Name    string `xml:"name,attr"`
			Class   string `xml:"classname,attr"`
			Failure struct {
				Type string `xml:"type,attr"`
				Text string `xml:",chardata"`
			} `xml:"failure"`
		} `xml:"testcase"`
	}
	var got struct {
		XMLName  xml.Name `xml:"testsuites"`
		Failures int      `xml:"failures,attr"`
		Suites   []suite  `xml:"testsuite"`
	}
	if err := xml.Unmarshal([]byte(out), &got); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	c := got.Suites[0].Cases[0]
	if d := cmp.Diff([]string{"look_up", "trims_the_name", "output"}, []string{c.Class, c.Name, c.Failure.Type}); d != "" || got.Failures != 1 {
		t.Errorf("%d failures\n%s", got.Failures, d)
	}
	if !strings.Contains(c.Failure.Text, `"name":" <amp "`) {
		t.Errorf("the text is %q", c.Failure.Text)
	}
}

// onWaiting interrupts the command once it waits for a change.
type onWaiting struct{ interrupt func() }

// Write implements io.Writer.
func (w onWaiting) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte("waiting for a change")) {
		w.interrupt()
	}
	return len(p), nil
}

func TestRecipeTestWatch(t *testing.T) {
	t.Chdir(t.TempDir())
	codeact(t, "recipe", "new", "look_up")
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	var out bytes.Buffer
	if code := run(ctx, []string{"recipe", "test", "--watch"}, strings.NewReader(""), &out, onWaiting{cancel}); code != exitOK {
		t.Errorf("code %d, want that of the last round\n%s", code, &out)
	}
	if !strings.Contains(out.String(), "1 passed, 0 failed") {
		t.Errorf("the round is not shown:\n%s", &out)
	}
}
