package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

// TestRecipeFromRun makes recipes of runs, which pass lint and their test at once,
// and holds one of them to testdata/from-run.txt.
func TestRecipeFromRun(t *testing.T) {
	code := func(source string) func(t *testing.T) []contract.Event {
		return func(t *testing.T) []contract.Event {
			return lived(t, func(b *contract.Bundle) { b.Source, b.Input = source, json.RawMessage("null") })
		}
	}
	tests := map[string]struct {
		events    func(t *testing.T) []contract.Event
		args      []string
		wantInput string // of the test
		golden    string
	}{
		"protocol Code":  {events: coded, golden: "from-run.txt", wantInput: `{"sku":"bolt-m8"}`},
		"protocol Tools": {events: shopped, wantInput: `{"sku":"bolt-m8"}`},
		"a step":         {events: shopped, args: []string{"--step", "2"}, wantInput: `{"sku":"bolt-m8"}`},
		"without an input": {
			events: code(`function main() { return tools.call("lookup", {}).stock }`), wantInput: `{}`,
		},
		"that looks for one": {
			events: code(`function main(i) { return i === null }`), wantInput: `null`,
		},
		"with a refusal that is caught": {
			events: code(`function main() { try { return tools.call("strict", {}) } catch (e) { return [e.code, e.message] } }`), wantInput: `{}`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			home, err := os.Getwd()
			if err != nil {
				t.Fatal(err)
			}
			lines, _ := sealed(t, tc.events(t))
			text := strings.Join(lines, "")
			args := append([]string{"recipe", "from-run", "t", "-o", "recipes/order_missing"}, tc.args...)
			code, out, errs := command(t, map[string]string{"t": text}, "", args...)
			if code != exitOK {
				t.Fatalf("code %d, %s%s", code, out, errs)
			}
			dir, err := filepath.Abs("recipes")
			if err != nil {
				t.Fatal(err)
			}
			var written strings.Builder
			for _, file := range []string{"recipe.toml", "main.js", "input.schema.json", "tests/from_run.json"} {
				b, err := os.ReadFile(filepath.Join(dir, "order_missing", file))
				if err != nil {
					t.Fatal(err)
				}
				written.WriteString("== " + file + "\n" + string(b))
				if file != "tests/from_run.json" {
					continue
				}
				f, err := contract.DecodeFixtures(b, "t")
				if err != nil {
					t.Fatal(err)
				}
				var input bytes.Buffer
				if err := json.Compact(&input, f[0].Input); err != nil || input.String() != tc.wantInput {
					t.Errorf("the test has the input %s, want %s (%v)", input.String(), tc.wantInput, err)
				}
			}
			again, _, why := command(t, map[string]string{"t": text}, "", "recipe", "from-run", "t", "-o", filepath.Join(dir, "order_missing"))
			if again != exitUsage || !strings.Contains(why, "exists already") {
				t.Errorf("once more: code %d, %s", again, why)
			}
			for _, verb := range []string{"lint", "test"} {
				if code, out, errs := command(t, nil, "", "recipe", verb, dir); code != exitOK {
					t.Errorf("%s: code %d, %s%s", verb, code, out, errs)
				}
			}
			t.Chdir(home)
			if tc.golden != "" {
				golden(t, tc.golden, "", out+written.String())
			}
		})
	}
}

// TestRecipeFromRunRefuses has runs that no recipe is made of: nothing is written.
func TestRecipeFromRunRefuses(t *testing.T) {
	tests := map[string]struct {
		events func(t *testing.T) []contract.Event
		args   []string
		want   string
	}{
		"of a recipe":       {events: func(t *testing.T) []contract.Event { return lived(t, ofRecipe) }, want: "that of the recipe reorder already"},
		"a failed step":     {events: shopped, args: []string{"--step", "1"}, want: "step 1 of the run has no program that succeeded"},
		"a failed run":      {events: func(t *testing.T) []contract.Event { return lived(t, func(b *contract.Bundle) { b.Source = stumbles }) }, want: "has not succeeded"},
		"a reserved name":   {events: coded, args: []string{"--name", "run_code"}, want: "belongs to the runtime"},
		"a name that is no": {events: coded, args: []string{"--name", "a b"}, want: "is no name of a recipe"},
		"a program that diverges": {want: "its replay does not hold: call 2 of order has other arguments, first at $.quantity", events: func(t *testing.T) []contract.Event {
			return changed(coded(t), 1, func(e *contract.Event, c *contract.EventContent) bool {
				if e.Tool == "order" && c.Arguments != nil {
					c.Arguments = json.RawMessage(`{"quantity":9,"sku":"bolt-m8"}`)
					return true
				}
				return false
			})
		}},
		"a result that is not there": {want: "its result is not in the transcript", events: func(t *testing.T) []contract.Event {
			return changed(coded(t), 1, func(e *contract.Event, c *contract.EventContent) bool {
				if e.Step == 2 && e.Tool == "order" && c.Result != nil {
					*c = *c.Bare()
					return true
				}
				return false
			})
		}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			lines, _ := sealed(t, tc.events(t))
			code, out, errs := command(t, map[string]string{"t": strings.Join(lines, "")}, "", append([]string{"recipe", "from-run", "t"}, tc.args...)...)
			if code != exitUsage || out != "" || !strings.Contains(errs, tc.want) {
				t.Errorf("code %d, %s%s", code, out, errs)
			}
			if _, err := os.Lstat(".starweaver"); err == nil {
				t.Error("something was written")
			}
		})
	}
}
