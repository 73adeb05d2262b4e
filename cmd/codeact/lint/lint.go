// Package lint gives the cluster's static verdicts on recipes in files, and what
// else an author should know of them. The verdicts are asked of the controller's
// own decision and of the API server's own checks: they cannot differ.
package lint

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/api/v1alpha1"
	"github.com/codeact-dev/codeact-operator/cmd/codeact/admit"
	"github.com/codeact-dev/codeact-operator/cmd/codeact/recipefile"
	"github.com/codeact-dev/codeact-operator/controllers/recipe"
	"github.com/codeact-dev/codeact-operator/controllers/settings"
	"github.com/codeact-dev/codeact-operator/sandbox/check"
)

// Level says how bad a finding is; the words are those of SARIF.
type Level string

// The levels.
const (
	// Error is what a cluster refuses, or what can never work.
	Error Level = "error"
	// Warning is what may be meant otherwise.
	Warning Level = "warning"
)

// The rules that are no Reason of a cluster.
const (
	// RuleManifest is a file that is missing, malformed or out of bounds.
	RuleManifest = "Manifest"
	// RuleAdmission is what the API server refuses.
	RuleAdmission = "Admission"
	// RuleToolNotCalled is a tool that is declared and never called.
	RuleToolNotCalled = "ToolNotCalled"
	// RuleDynamicTool is a call whose tool nobody can tell from the text.
	RuleDynamicTool = "DynamicTool"
)

// Finding is one thing that is wrong, or may be, with a recipe.
type Finding struct {
	// Rule is a contract.Reason where a cluster has one, else one of the rules above.
	Rule  string `json:"rule"`
	Level Level  `json:"level"`
	// Message says what is wrong and what to do about it.
	Message string `json:"message"`
	// Path is the file. Line and Column are counted from 1, in characters, and 0
	// where the file as a whole is meant.
	Path   string `json:"path"`
	Line   int    `json:"line,omitempty"`
	Column int    `json:"column,omitempty"`

	text []byte // of the file
}

// Linter judges recipes as one operator would.
type Linter struct {
	op   settings.Operator
	kind *admit.Kind
	now  time.Time
}

// New makes a Linter for an operator's settings; now is the time of the look.
func New(op settings.Operator, now time.Time) (*Linter, error) {
	kinds, err := admit.Kinds()
	if err != nil {
		return nil, err
	}
	return &Linter{op: op, kind: kinds["Recipe"], now: now}, nil
}

// Root judges everything that was read of a root, in the order of paths and
// places. Whether tools are granted only a cluster can say.
func (l *Linter) Root(ctx context.Context, root *recipefile.Root) []Finding {
	var out []Finding
	for _, p := range root.Problems {
		rule := RuleManifest
		if p.Reason != "" {
			rule = string(p.Reason)
		}
		out = append(out, Finding{
			Rule: rule, Level: Error, Message: p.Message, Path: p.Path, Line: p.Line, Column: p.Column, text: p.Text,
		})
	}
	all := make([]v1alpha1.Recipe, 0, len(root.Recipes))
	for _, r := range root.Recipes {
		all = append(all, *r.Object)
	}
	for _, r := range root.Recipes {
		x := &one{Linter: l, Recipe: r}
		x.judge(ctx, all)
		out = append(out, x.found...)
	}
	slices.SortStableFunc(out, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column), cmp.Compare(a.Rule, b.Rule))
	})
	return out
}

// Errors counts the findings of level Error.
func Errors(found []Finding) int {
	n := 0
	for _, f := range found {
		if f.Level == Error {
			n++
		}
	}
	return n
}

// one is the judging of one recipe.
type one struct {
	*Linter
	*recipefile.Recipe
	found []Finding
}

func (x *one) add(rule string, level Level, file *recipefile.File, line, column int, format string, args ...any) {
	x.found = append(x.found, Finding{
		Rule: rule, Level: level, Message: contract.Truncate(fmt.Sprintf(format, args...), contract.MaxMessageBytes),
		Path: file.Path, Line: line, Column: column, text: file.Text,
	})
}

// key adds a finding at a key of the manifest.
func (x *one) key(key string, rule string, level Level, format string, args ...any) {
	p := x.Key(key)
	x.add(rule, level, x.Manifest, p.Line, p.Column, format, args...)
}

func (x *one) judge(ctx context.Context, all []v1alpha1.Recipe) {
	x.admission(ctx)
	if f := x.decide(x.Object, all).Source; f != nil && f.Reason == contract.ReasonDigestMismatch {
		x.key("source_digest", string(f.Reason), Error, "%s", f.Message)
	}
	x.program()
	x.schema(x.InputSchema, x.Object.InputSchema())
	x.schema(x.OutputSchema, x.Object.OutputSchema())
	x.object(all)
	x.calls()
}

func (x *one) decide(o *v1alpha1.Recipe, all []v1alpha1.Recipe) recipe.Plan {
	return recipe.Decide(x.op, recipe.Snapshot{Now: x.now, Recipe: o, Recipes: all})
}

// object judges what is left beside the program and the schemas. The decision stops
// at the first fault, so that it is asked about the same recipe with sound ones.
func (x *one) object(all []v1alpha1.Recipe) {
	o := x.Object.DeepCopy()
	o.Spec.Source, o.Spec.SourceDigest, o.Spec.InputSchema, o.Spec.OutputSchema = "function main() {}", "", nil, nil
	plan := x.decide(o, all)
	x.recipes(plan.Tools, all)
	f := plan.Fault
	if f == nil {
		return
	}
	key := map[contract.Reason]string{
		contract.ReasonLimitsTooHigh: "limits", contract.ReasonReservedName: "name",
		contract.ReasonNameConflict: "name", contract.ReasonRecursive: "tools",
	}[f.Reason]
	if key != "" {
		x.key(key, string(f.Reason), Error, "%s", f.Message)
	}
}

// recipes finds the declared tools that are recipes: no grant can give them.
func (x *one) recipes(tools []v1alpha1.RecipeTool, all []v1alpha1.Recipe) {
	of := v1alpha1.RecipeTools(x.Object.Namespace, all)
	for _, t := range tools {
		if name := of[t.Name]; name != "" && name != x.Object.Name {
			x.key("tools", string(contract.ReasonToolsNotGranted), Error, "%q is Recipe %s, and a recipe only calls tools", t.Name, name)
		}
	}
}

// admission asks the API server's own checks.
func (x *one) admission(ctx context.Context) {
	text, err := json.Marshal(x.Object)
	var obj map[string]any
	if err == nil {
		err = json.Unmarshal(text, &obj)
	}
	if err == nil {
		delete(obj, "status")
		err = x.kind.Admit(ctx, obj)
	}
	if err != nil {
		x.add(RuleAdmission, Error, x.Manifest, 1, 1, "the API server would refuse it: %v", err)
	}
}

func (x *one) program() {
	err := recipe.Inspect(x.Object.Spec.Source, x.sourceLimit())
	if f, ok := contract.AsFault(err); ok {
		x.add(string(f.Reason), Error, x.Source, max(f.Line, 1), max(f.Column, 1), "%s", f.Message)
	}
}

func (x *one) sourceLimit() int64 { return x.op.Limits(x.Object.Spec.Limits, nil).SourceBytes }

func (x *one) schema(file *recipefile.File, text json.RawMessage) {
	if file == nil {
		return
	}
	if _, err := contract.CompileSchema(text); err != nil {
		rule, message := string(contract.ReasonSchemaInvalid), err.Error()
		if f, ok := contract.AsFault(err); ok {
			rule, message = string(f.Reason), f.Message
		}
		x.add(rule, Error, file, 1, 1, "%s", message)
	}
}

// calls compares the calls in the program with the tools that are declared.
func (x *one) calls() {
	if recipe.Inspect(x.Object.Spec.Source, x.sourceLimit()) != nil {
		return
	}
	called, dynamic := map[string]bool{}, false
	for _, c := range check.Calls(x.Object.Spec.Source, x.sourceLimit()) {
		switch {
		case c.Dynamic:
			dynamic = true
			x.add(RuleDynamicTool, Warning, x.Source, c.Line, c.Column,
				"which tool this calls cannot be told from the text: write tools.call with the name between quotation marks")
		case !slices.Contains(x.Object.Spec.Tools, c.Tool):
			x.add(string(contract.ReasonToolNotAllowed), Error, x.Source, c.Line, c.Column,
				"tools of %s does not name %q: this call ends a run with %s", recipefile.ManifestName, contract.Truncate(c.Tool, 64), contract.ReasonToolNotAllowed)
		}
		called[c.Tool] = true
	}
	if dynamic {
		return
	}
	for _, t := range x.Object.Spec.Tools {
		if !called[t] {
			x.key("tools", RuleToolNotCalled, Warning, "tools names %q, which the program never calls: every run needs a grant for it all the same", t)
		}
	}
}

// line returns the line of the file that the finding is in, without its end.
func (f *Finding) line() (string, bool) {
	if f.Line < 1 || f.text == nil {
		return "", false
	}
	rest := f.text
	for range f.Line - 1 {
		_, after, ok := bytes.Cut(rest, []byte("\n"))
		if !ok {
			return "", false
		}
		rest = after
	}
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	return string(bytes.TrimSuffix(line, []byte("\r"))), true
}
