package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/runtime/loop"
)

func TestLocalDesk(t *testing.T) {
	approval := contract.Pending{Kind: contract.PendingApproval, Tool: "pay", Effect: contract.EffectEffectful, Arguments: `{"to":"\u001b[2J"}`}
	result := contract.Pending{Kind: contract.PendingResult, Tool: "count", Arguments: `{}`}
	flags := answers{approve: []string{"pay"}, results: []string{`count={"n": 1}`}}
	tests := map[string]struct {
		flags answers
		typed string // "-" asks nobody
		call  contract.Pending
		want  loop.Resolution
		said  string
	}{
		"approved by a flag":       {flags, "-", approval, loop.Resolution{Decision: "Approve", By: byFlag}, ""},
		"given by a flag":          {flags, "-", result, loop.Resolution{Decision: "Approve", Result: []byte(`{"n":1}`), By: byFlag}, ""},
		"a flag for another":       {answers{approve: []string{"pays"}}, "-", approval, loop.Resolution{Decision: "Deny", By: byFlag}, "--approve pay"},
		"no flag for the result":   {answers{approve: []string{"count"}}, "-", result, loop.Resolution{Decision: "Deny", By: byFlag}, "--result count=JSON"},
		"yes":                      {answers{}, "y\n", approval, loop.Resolution{Decision: "Approve", By: byAuthor}, "The model calls pay (Effectful)"},
		"YES, and more":            {answers{}, " YES \ny\n", approval, loop.Resolution{Decision: "Approve", By: byAuthor}, ""},
		"no":                       {answers{}, "n\n", approval, loop.Resolution{Decision: "Deny", By: byAuthor}, "[y/N]"},
		"nothing":                  {answers{}, "\n", approval, loop.Resolution{Decision: "Deny", By: byAuthor}, ""},
		"the end of the input":     {answers{}, "", approval, loop.Resolution{Decision: "Deny", By: byAuthor}, ""},
		"something else":           {answers{}, "yes please\n", approval, loop.Resolution{Decision: "Deny", By: byAuthor}, ""},
		"a result":                 {answers{}, "{\"n\": 2}\n", result, loop.Resolution{Decision: "Approve", Result: []byte(`{"n":2}`), By: byAuthor}, "answers later"},
		"a result, after no JSON":  {answers{}, "{n: 2}\n2\n", result, loop.Resolution{Decision: "Approve", Result: []byte(`2`), By: byAuthor}, "not JSON"},
		"no result":                {answers{}, "\n", result, loop.Resolution{Decision: "Deny", By: byAuthor}, ""},
		"no result before the end": {answers{}, "", result, loop.Resolution{Decision: "Deny", By: byAuthor}, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var said strings.Builder
			d, err := tc.flags.desk(nil, strings.NewReader(""), &said)
			if err != nil {
				t.Fatal(err)
			}
			if tc.typed != "-" {
				d.lines = bufio.NewReader(strings.NewReader(tc.typed))
			}
			got, err := d.Await(t.Context(), tc.call)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("answer (-want +got):\n%s", diff)
			}
			if !strings.Contains(said.String(), tc.said) || strings.Contains(said.String(), "\x1b") {
				t.Errorf("said %q, want %q in it", said.String(), tc.said)
			}
		})
	}
}

// TestLocalDeskIsCancelled: what is typed after a wait was given up answers nothing.
func TestLocalDeskIsCancelled(t *testing.T) {
	r, w := io.Pipe()
	defer func() { _ = w.Close() }()
	d := &localDesk{lines: bufio.NewReader(r), errs: io.Discard}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	p := contract.Pending{Kind: contract.PendingApproval, Tool: "pay"}
	if _, err := d.Await(ctx, p); !errors.Is(err, context.Canceled) {
		t.Fatalf("error %v", err)
	}
	go func() { _, _ = io.WriteString(w, "y\n") }()
	if got, err := d.Await(t.Context(), p); err != nil || got.Decision != contract.DecisionDeny {
		t.Errorf("answer %+v, error %v", got, err)
	}
}

func TestLocalDeskFlagsAreRefused(t *testing.T) {
	for _, value := range []string{"count", "=1", "count=", "count={", "count=@absent.json", "count=" + strings.Repeat("1", contract.MaxResolutionResultBytes+1)} {
		if _, err := (&answers{results: []string{value}}).desk(nil, nil, io.Discard); err == nil || !strings.Contains(err.Error(), "--result") {
			t.Errorf("%.20s: error %v", value, err)
		}
	}
}

// TestDeskAsksLast: what the run said before stands above the question.
func TestDeskAsksLast(t *testing.T) {
	var errs bytes.Buffer
	d := &localDesk{lines: bufio.NewReader(strings.NewReader("y\n")), errs: &errs, flush: func() { errs.WriteString("calling pay\n") }}
	r, err := d.Await(t.Context(), contract.Pending{Tool: "pay", Kind: contract.PendingApproval})
	if err != nil || r.Decision != contract.DecisionApprove {
		t.Fatal(r, err)
	}
	if said := errs.String(); !strings.HasPrefix(said, "calling pay\n") || !strings.HasSuffix(said, "Approve? [y/N] ") {
		t.Errorf("%q", said)
	}
}
