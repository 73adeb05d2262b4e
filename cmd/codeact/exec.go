package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/runtime/broker/backend/stub"
	"github.com/codeact-dev/codeact-operator/runtime/loop"
	"github.com/codeact-dev/codeact-operator/sandbox"
)

// execFlags are the flags of codeact exec.
type execFlags struct {
	source, input, tools, output string
	limits                       []string
}

func newExec() *cobra.Command {
	var f execFlags
	c := &cobra.Command{
		Use:   "exec --source FILE --input JSON|@FILE [--tools STUBS.json] [--limit name=value ...] [-o json|text]",
		Short: "Run one program in the sandbox, with stubs for its tools",
		Long: `Run one program in the sandbox, with stubs for its tools.

The stubs are a JSON object: the name of each tool, and what it does, which is one of
  {"returns": V}             answer V
  {"echo": true}             answer the arguments
  {"fails": {"message": M}}  fail with a message that the program may read
  {"approval": true}         need an approval that nobody gave
  {"deferred": true}         would answer only later
  {"uncertain": true}        fail although the effect may have happened
  {"returnsBytes": N}        answer a string that is N bytes of JSON
  {"sleepMs": N}             answer null after N ms
and beside it, where it is needed,
  inputSchema, outputSchema  of the tool
  "effect": E                ReadOnly, Idempotent or Effectful (the default)
  "failsFirst": N            lose the first N attempts on the way
  "retry": {"attempts": 2 to 5, "backoffMs": N}, not with Effectful
  "receipt": R               a receipt, with an answer or a failure
  "media": {"marker", "text", "geometry": {"width", "height"}, "pictures": [{"mimeType", "data"}]}
                             media, which is kept from the program; data is base64
and in fails "result": V, the answer that the report keeps when such a failure ends the run.

Limits: sourceBytes, inputBytes, outputBytes, heapBytes, stackBytes, wallClockMs, fuel,
childCalls. They may be above the defaults here.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runExec(cmd.Context(), f, cmd.InOrStdin(), cmd.OutOrStdout())
		},
	}
	c.Flags().StringVar(&f.source, "source", "", "file of the program; - reads the standard input")
	c.Flags().StringVar(&f.input, "input", "null", "argument of main: JSON, or @FILE")
	c.Flags().StringVar(&f.tools, "tools", "", "JSON file of stubs by the tools' names")
	c.Flags().StringArrayVar(&f.limits, "limit", nil, "one limit as name=value; may be repeated")
	c.Flags().StringVarP(&f.output, "output", "o", "text", "json or text")
	_ = c.MarkFlagRequired("source")
	return c
}

func runExec(ctx context.Context, f execFlags, in io.Reader, out io.Writer) error {
	if err := checkOutput(f.output); err != nil {
		return err
	}
	b, err := f.bundle(in)
	if err != nil {
		return err
	}
	stubs := map[string]stub.Stub{}
	if f.tools != "" {
		text, err := os.ReadFile(f.tools)
		if err != nil {
			return err
		}
		if stubs, err = stub.Parse(text); err != nil {
			return fmt.Errorf("%s: %w", f.tools, err)
		}
	}
	o, err := execute(ctx, b, stub.New(stubs))
	if err != nil {
		return err
	}
	return printResult(out, f.output, o)
}

// execute runs one program with stubbed tools through the loop, the broker and
// the sandbox of the runtime.
func execute(ctx context.Context, b contract.Bundle, tools *stub.Tools) (loop.Outcome, error) {
	e, err := sandbox.New(ctx, sandbox.Options{CacheDir: cacheDir(), Ceiling: b.Limits})
	if err != nil {
		return loop.Outcome{}, err
	}
	defer func() { _ = e.Close(context.WithoutCancel(ctx)) }()
	return loop.Run(ctx, loop.Config{Sandbox: e, Bundle: b, Tools: tools.List, Now: time.Now}), nil
}

// cacheDir is where the compiled sandbox is kept between two runs, or "" where
// the user has no such place.
func cacheDir() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "codeact")
}

// bundle makes the run that the flags describe.
func (f execFlags) bundle(in io.Reader) (contract.Bundle, error) {
	b := contract.Bundle{Run: contract.RunRef{Namespace: "local", Name: "exec", UID: "local", Generation: 1}}
	var err error
	if b.Limits, err = limitsOf(f.limits); err != nil {
		return b, err
	}
	var source []byte
	if f.source == "-" {
		source, err = io.ReadAll(in)
	} else {
		source, err = os.ReadFile(f.source)
	}
	if err != nil {
		return b, fmt.Errorf("--source: %w", err)
	}
	b.Source = string(source)
	b.Input = json.RawMessage(f.input)
	if name, ok := strings.CutPrefix(f.input, "@"); ok {
		if b.Input, err = os.ReadFile(name); err != nil {
			return b, fmt.Errorf("--input: %w", err)
		}
	}
	return b, nil
}

// checkOutput checks the value of -o.
func checkOutput(format string) error {
	if format != "json" && format != "text" {
		return fmt.Errorf("-o %s: want json or text", format)
	}
	return nil
}

// limitsOf reads name=value pairs over the default limits.
func limitsOf(pairs []string) (contract.Limits, error) {
	l := contract.DefaultLimits()
	for _, s := range pairs {
		name, value, ok := strings.Cut(s, "=")
		n, err := strconv.ParseInt(value, 10, 64)
		if !ok || err != nil {
			return l, fmt.Errorf("--limit %s: want name=value with a whole number", s)
		}
		if err := l.Set(name, n); err != nil {
			return l, fmt.Errorf("--limit: %w", err)
		}
	}
	return l, nil
}
