package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/runtime/loop"
)

// answers are the flags that answer calls before they are made.
type answers struct {
	approve []string
	results []string
}

func (a *answers) bind(c *cobra.Command) {
	c.Flags().StringSliceVar(&a.approve, "approve", nil, "tools whose calls need no question; may be repeated")
	c.Flags().StringArrayVar(&a.results, "result", nil, "result of every call of a deferred tool, as TOOL=JSON or TOOL=@FILE; may be repeated")
}

// desk makes the desk of a run on the author's own machine. It asks only where a
// person is, who has not given the files on the same input.
func (a *answers) desk(files []string, in io.Reader, errs io.Writer) (*localDesk, error) {
	d := &localDesk{approve: a.approve, results: map[string]json.RawMessage{}, errs: errs}
	for _, s := range a.results {
		tool, value, ok := strings.Cut(s, "=")
		if !ok || tool == "" || value == "" {
			return nil, fmt.Errorf("--result %s: want TOOL=JSON or TOOL=@FILE", s)
		}
		v, err := resultFlag(value, strings.NewReader(""))
		if err != nil {
			return nil, err
		}
		d.results[tool] = v.Raw
	}
	if !slices.Contains(files, "-") && isTerminal(in) && isTerminal(errs) {
		d.lines = bufio.NewReader(in)
	}
	return d, nil
}

func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// localDesk answers calls that wait for somebody in a cluster. Here that is the
// author.
type localDesk struct {
	approve []string
	results map[string]json.RawMessage
	// lines is where the author answers; nil asks nobody.
	lines *bufio.Reader
	errs  io.Writer
	// flush has what was said before stand above a question; nil says nothing before.
	flush func()
}

// The names that an answer is in.
const (
	byFlag   = "the command line"
	byAuthor = "the author"
)

// Await implements loop.Desk.
func (d *localDesk) Await(ctx context.Context, p contract.Pending) (loop.Resolution, error) {
	if d.flush != nil {
		d.flush()
	}
	switch result, given := d.results[p.Tool]; {
	case p.Kind == contract.PendingResult && given:
		return loop.Resolution{Decision: contract.DecisionApprove, Result: result, By: byFlag}, nil
	case p.Kind == contract.PendingApproval && slices.Contains(d.approve, p.Tool):
		return loop.Resolution{Decision: contract.DecisionApprove, By: byFlag}, nil
	case d.lines == nil:
		flag := "--approve " + p.Tool
		if p.Kind == contract.PendingResult {
			flag = "--result " + p.Tool + "=JSON"
		}
		d.say("The call of %s is denied: nobody can be asked here. Run with %s, or on a terminal.\n", p.Tool, flag)
		return loop.Resolution{Decision: contract.DecisionDeny, By: byFlag}, nil
	case p.Kind == contract.PendingResult:
		return d.askResult(ctx, p)
	}
	d.say("The model calls %s (%s) with\n  %s\n", p.Tool, p.Effect, arguments(p))
	d.say("Approve? [y/N] ")
	line, err := d.line(ctx)
	if err != nil {
		return loop.Resolution{}, err
	}
	if yes := strings.ToLower(line); yes == "y" || yes == "yes" {
		return loop.Resolution{Decision: contract.DecisionApprove, By: byAuthor}, nil
	}
	return loop.Resolution{Decision: contract.DecisionDeny, By: byAuthor}, nil
}

// askResult asks until the line is JSON, or empty.
func (d *localDesk) askResult(ctx context.Context, p contract.Pending) (loop.Resolution, error) {
	d.say("The model calls %s, which answers later, with\n  %s\n", p.Tool, arguments(p))
	for {
		d.say("Its result as JSON, in one line (nothing denies the call): ")
		line, err := d.line(ctx)
		if err != nil {
			return loop.Resolution{}, err
		}
		if line == "" {
			return loop.Resolution{Decision: contract.DecisionDeny, By: byAuthor}, nil
		}
		v, err := resultFlag(strings.TrimPrefix(line, "@"), nil)
		if err == nil {
			return loop.Resolution{Decision: contract.DecisionApprove, Result: v.Raw, By: byAuthor}, nil
		}
		d.say("%v\n", err)
	}
}

// line reads one line, "" at the end of the input. A read cannot be cut short: once
// the run has not waited for one, nobody is asked any more, so that what is typed
// late answers nothing else.
func (d *localDesk) line(ctx context.Context) (string, error) {
	read := make(chan string, 1)
	go func(lines *bufio.Reader) {
		text, _ := lines.ReadString('\n')
		read <- strings.TrimSpace(text)
	}(d.lines)
	select {
	case text := <-read:
		return text, nil
	case <-ctx.Done():
		d.lines = nil
		d.say("\n")
		return "", ctx.Err()
	}
}

func (d *localDesk) say(format string, args ...any) {
	_, _ = io.WriteString(d.errs, plain(fmt.Sprintf(format, args...)))
}
