// Package fromrun makes a recipe in files of a program that a run has executed, for
// somebody to review: the program, a schema inferred from its input, and a test made
// of what was recorded.
package fromrun

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/cmd/codeact/recipefile"
	"github.com/codeact-dev/codeact-operator/runtime/fixture"
	"github.com/codeact-dev/codeact-operator/runtime/replay"
	"github.com/codeact-dev/codeact-operator/sandbox/check"
)

// The files of the folder beside the manifest and the program.
const (
	SchemaFile = "input.schema.json"
	TestFile   = "tests/from_run.json"
)

// Draft is a recipe that nobody has reviewed.
type Draft struct {
	// Name is what it is called as a tool.
	Name string
	// From says where it was taken from.
	From    string
	Program replay.Program
	// Tools are those that it names, or that it called.
	Tools []string
	// Dynamic says that it calls tools by names that nobody can tell from the text.
	Dynamic bool
	Schema  json.RawMessage
	Test    contract.Fixture
}

// File is a file of the folder, by its path with slashes.
type File struct{ Path, Text string }

// Choose finds the program of a run to make a recipe of: with a step, the last one
// in it that succeeded; else the last one whose value is the run's output, or else
// the last one that succeeded.
func Choose(rec replay.Record, step int64) (replay.Program, error) {
	if !rec.End.Known || rec.End.Fault != nil && step == 0 {
		return replay.Program{}, errors.New("the run has not succeeded; choose one of its steps with --step")
	}
	var last, gave *replay.Program
	recipe := ""
	for i := range rec.Programs {
		p := &rec.Programs[i]
		switch {
		case step > 0 && p.Step != step, !p.End.Known, p.End.Fault != nil:
			continue
		case p.Recipe != "" || p.Called:
			recipe = p.Recipe
			continue
		}
		last = p
		if p.End.Digest == rec.End.Digest {
			gave = p
		}
	}
	if gave != nil {
		last = gave
	}
	switch {
	case last == nil && recipe != "":
		return replay.Program{}, fmt.Errorf("its program is that of the recipe %s already", recipe)
	case last == nil && step > 0:
		return replay.Program{}, fmt.Errorf("step %d of the run has no program that succeeded", step)
	case last == nil:
		return replay.Program{}, errors.New("the run has no program that succeeded")
	case last.Missing != "":
		return replay.Program{}, errors.New(last.Missing)
	}
	return *last, nil
}

// Make makes the recipe of a program, whose replay holds. The name is not checked; that
// of the run is, which is the word of the transcript and stands in the files.
func Make(name string, rec replay.Record, p replay.Program) (Draft, error) {
	ns, run, _ := strings.Cut(rec.Run, "/")
	if len(validation.IsDNS1123Label(ns))+len(validation.IsDNS1123Subdomain(run)) > 0 {
		return Draft{}, fmt.Errorf("the transcript is of %q, which is the name of no run", contract.Truncate(rec.Run, 64))
	}
	d := Draft{Name: name, From: "run " + rec.Run, Program: p}
	if p.Step > 0 {
		d.From = fmt.Sprintf("step %d of run %s", p.Step, rec.Run)
	}
	named := map[string]bool{}
	for _, c := range check.Calls(p.Source, contract.Ceilings().SourceBytes) {
		d.Dynamic = d.Dynamic || c.Dynamic
		if c.Tool != "" {
			named[c.Tool] = true
		}
	}
	d.Test = contract.Fixture{
		Name: contract.Truncate("as in "+d.From, contract.MaxFixtureNameBytes), Input: p.Input, Expect: contract.FixtureEnd{Output: p.End.Value},
	}
	for i, c := range p.Calls {
		named[c.Tool] = true
		x := contract.FixtureCall{Tool: c.Tool, Args: c.Arguments, Returns: c.Result}
		switch {
		case c.Missing != "":
			return d, fmt.Errorf("call %d of %s: %s", i+1, c.Tool, c.Missing)
		case c.Fault != nil:
			x.Fails = &contract.FixtureFailure{Reason: c.Fault.Reason, Message: c.Fault.Message}
		}
		d.Test.Calls = append(d.Test.Calls, x)
	}
	if p.End.Value == nil {
		return d, errors.New("its output is not in the transcript, for its size")
	}
	d.Tools = slices.Sorted(maps.Keys(named))
	if n := len(d.Tools); n > contract.MaxRecipeTools {
		return d, fmt.Errorf("it names %d tools, more than a recipe may, %d", n, contract.MaxRecipeTools)
	}
	return d, d.WithInput(p.Input)
}

// WithInput gives the test this input, and the recipe the schema inferred from it.
func (d *Draft) WithInput(input json.RawMessage) (err error) {
	d.Test.Input = input
	d.Schema, err = Schema(input)
	return err
}

// Recipe is the draft as its test needs it, under these limits.
func (d *Draft) Recipe(l contract.Limits) fixture.Recipe {
	x := fixture.Recipe{Name: d.Name, Source: d.Program.Source, InputSchema: d.Schema, Limits: l}
	for _, t := range d.Tools {
		x.Tools = append(x.Tools, contract.Tool{Name: t})
	}
	return x
}

// Files are those of the recipe's folder.
func (d *Draft) Files() ([]File, error) {
	test, err := indented(d.Test)
	if err != nil {
		return nil, err
	}
	if len(test) > contract.MaxFixtureBytes {
		return nil, fmt.Errorf("what its calls gave and returned has %d bytes as a test, more than %d", len(test), contract.MaxFixtureBytes)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# Taken from %s. Nobody has reviewed it.\n", d.From)
	fmt.Fprintf(&b, "version = 1\nname = %s\ndescription = %s\n", quoted(d.Name), quoted("Taken from "+d.From+". Say here what it is for: a model chooses it by this text."))
	names := make([]string, 0, len(d.Tools))
	for _, t := range d.Tools {
		names = append(names, quoted(t))
	}
	fmt.Fprintf(&b, "tools = [%s]\ninput_schema = %s\ntests = \"tests\"\n", strings.Join(names, ", "), quoted(SchemaFile))
	admitted := 0
	for _, c := range d.Program.Calls {
		if c.State != contract.CallRefused {
			admitted++
		}
	}
	fmt.Fprintf(&b, "\n[limits]\nchildCalls = %d\n", admitted)
	return []File{
		{recipefile.ManifestName, b.String()}, {recipefile.DefaultSource, d.Program.Source},
		{SchemaFile, string(d.Schema)}, {TestFile, string(test)},
	}, nil
}

// quoted is a string as TOML and JSON have it. Only TOML minds the delete character.
func quoted(s string) string {
	b, _ := contract.Canonical(s) // of a string
	return strings.ReplaceAll(string(b), "\x7f", `\u007f`)
}

func indented(v any) (json.RawMessage, error) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
