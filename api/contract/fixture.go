package contract

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// Fixture is one test of a recipe: what goes in, what each call of a tool is
// expected to be and answers, and how the run ends. Executions are deterministic,
// so that the calls come in exactly this order. No real tool takes part.
// +kubebuilder:object:generate=true
type Fixture struct {
	// name says what is tested, unique among the tests of a recipe, at most
	// MaxFixtureNameBytes.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Name string `json:"name"`
	// input is the argument of main: any JSON; null without it.
	// +optional
	// +nullable
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	Input json.RawMessage `json:"input,omitempty"`
	// calls are the calls of tools that the program makes, in their order, at most
	// MaxFixtureCalls.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	Calls []FixtureCall `json:"calls,omitempty"`
	// expect is how the run ends; any output without it.
	// +optional
	Expect FixtureEnd `json:"expect,omitzero"`
}

// FixtureCall is one call of a tool that a test expects, and its answer.
// +kubebuilder:object:generate=true
type FixtureCall struct {
	// tool is the exact name.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_-]{1,64}$`
	Tool string `json:"tool"`
	// args are the arguments that the program must give; any without it.
	// +optional
	// +nullable
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	Args json.RawMessage `json:"args,omitempty"`
	// returns is what the tool answers: any JSON; null without it and without fails.
	// +optional
	// +nullable
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	Returns json.RawMessage `json:"returns,omitempty"`
	// fails makes the call fail instead.
	// +optional
	Fails *FixtureFailure `json:"fails,omitempty"`
}

// FixtureFailure is how a call fails.
// +kubebuilder:object:generate=true
type FixtureFailure struct {
	// reason is one of a child call; ToolFailed without it.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Reason Reason `json:"reason,omitempty"`
	// message is what the program may read of a failure that it can catch, at most
	// MaxMessageBytes.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	Message string `json:"message,omitempty"`
}

// FixtureEnd is how a run ends: with an output, or for a reason. An empty one is
// any output.
// +kubebuilder:object:generate=true
type FixtureEnd struct {
	// output is the JSON value that the run must end with; null is a value.
	// +optional
	// +nullable
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	Output json.RawMessage `json:"output,omitempty"`
	// reason is why the run must fail.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Reason Reason `json:"reason,omitempty"`
	// message is a part of the failure's message.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	Message string `json:"message,omitempty"`
}

// Bounds of the tests of one recipe.
const (
	// MaxFixtures bounds how many there are.
	MaxFixtures = 64
	// MaxFixtureBytes bounds the text of one file of them, and the JSON text of all
	// tests of a recipe.
	MaxFixtureBytes = 256 << 10
	// MaxFixtureCalls bounds the calls of one test: as many as a run may ever make.
	MaxFixtureCalls = 256
	// MaxFixtureNameBytes bounds a test's name.
	MaxFixtureNameBytes = 128
)

// DecodeFixtures reads the JSON text of a file of tests: one test, a list of them,
// or {"tests": [...]}, which is the form that TOML has for a list. A single test
// without a name gets the one given. Unknown fields are refused; the error names
// the test.
func DecodeFixtures(text json.RawMessage, name string) ([]Fixture, error) {
	if len(text) > MaxFixtureBytes {
		return nil, fmt.Errorf("the tests have %d bytes, more than %d", len(text), MaxFixtureBytes)
	}
	if !WellFormed(text) {
		return nil, errors.New("the tests are not UTF-8")
	}
	x, err := DecodeJSON(text)
	if err != nil {
		return nil, err
	}
	var out []Fixture
	switch v := x.(type) {
	case []any:
		err = decodeStrictly(text, &out)
	case map[string]any:
		if _, many := v["tests"]; many {
			var list struct {
				Tests []Fixture `json:"tests"`
			}
			err = decodeStrictly(text, &list)
			out = list.Tests
			break
		}
		out = []Fixture{{Name: name}}
		err = decodeStrictly(text, &out[0])
	default:
		err = errors.New("want one test, or a list of them")
	}
	if err != nil {
		return nil, err
	}
	return out, CheckFixtures(out)
}

func decodeStrictly(text []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return errors.New(strings.TrimPrefix(err.Error(), "json: "))
	}
	return nil
}

// CheckFixtures reports the first test that contradicts itself, or is out of
// bounds, by its name, and a name that two tests have.
func CheckFixtures(tests []Fixture) error {
	if len(tests) > MaxFixtures {
		return fmt.Errorf("there are %d tests, more than %d", len(tests), MaxFixtures)
	}
	if err := checkSize(tests); err != nil {
		return err
	}
	seen := map[string]bool{}
	for i, f := range tests {
		if f.Name == "" || len(f.Name) > MaxFixtureNameBytes {
			return fmt.Errorf("test %d needs a name of at most %d bytes", i+1, MaxFixtureNameBytes)
		}
		if seen[f.Name] {
			return fmt.Errorf("two tests have the name %q", f.Name)
		}
		seen[f.Name] = true
		if err := f.check(); err != nil {
			return fmt.Errorf("test %q: %w", f.Name, err)
		}
	}
	return nil
}

func checkSize(tests []Fixture) error {
	text, err := json.Marshal(tests)
	if err != nil {
		return fmt.Errorf("the tests are not JSON: %w", err)
	}
	if len(text) > MaxFixtureBytes {
		return fmt.Errorf("the tests have %d bytes, more than %d", len(text), MaxFixtureBytes)
	}
	return nil
}

func (f Fixture) check() error {
	if len(f.Calls) > MaxFixtureCalls {
		return fmt.Errorf("it has %d calls, more than %d", len(f.Calls), MaxFixtureCalls)
	}
	for i, c := range f.Calls {
		if err := c.check(); err != nil {
			return fmt.Errorf("call %d: %w", i+1, err)
		}
	}
	switch e := f.Expect; {
	case e.Output != nil && (e.Reason != "" || e.Message != ""):
		return errors.New("expect has either an output or a reason")
	case e.Reason == "" && e.Message != "":
		return errors.New("expect has a message, which needs a reason")
	case e.Reason != "" && !e.Reason.Known():
		return fmt.Errorf("expect.reason %q is none", Truncate(string(e.Reason), 64))
	}
	return nil
}

func (c FixtureCall) check() error {
	switch {
	case !ValidToolName(c.Tool):
		return fmt.Errorf("%q is no tool name", Truncate(c.Tool, 64))
	case c.Fails == nil:
		return nil
	case c.Returns != nil:
		return errors.New("a call either returns or fails")
	case len(c.Fails.Message) > MaxMessageBytes:
		return fmt.Errorf("fails.message has more than %d bytes", MaxMessageBytes)
	}
	switch r := c.Fails.Reason; {
	case r == "", r.Class() == ClassCatchable, r.Class() == ClassTerminal:
		return nil
	default:
		return fmt.Errorf("fails.reason %q is no reason of a call", Truncate(string(r), 64))
	}
}
