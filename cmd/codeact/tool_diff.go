package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/pmezard/go-difflib/difflib"
	"github.com/spf13/cobra"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/cmd/codeact/toolimport"
	"github.com/codeact-dev/codeact-operator/runtime/broker/backend/mcp"
)

// driftOf is how one grant differs from what its server declares.
type driftOf struct {
	Grant string     `json:"grant"`
	Tool  string     `json:"tool"`
	Parts []mcp.Part `json:"parts"`
	Diff  string     `json:"diff,omitempty"`
	Error string     `json:"error,omitempty"`
}

func newToolDiff() *cobra.Command {
	var files []string
	var output, tokenFile string
	c := &cobra.Command{
		Use:   "diff -f FILE... [URL]",
		Short: "Show how MCP servers differ from the declarations of ToolGrants",
		Long: `Show how MCP servers differ from the declarations of ToolGrants.

What is compared is what the runtime compares before a call: where this command
shows a difference, a run ends as DeclarationDrift. URL is asked instead of the
addresses in the grants. The exit code is 0 without a difference, 1 with one, and
2 when a server could not be asked.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkOutput(output); err != nil {
				return err
			}
			m, err := loadAny(cmd.Context(), files, cmd.InOrStdin())
			if err != nil {
				return err
			}
			token, err := readToken(tokenFile)
			if err != nil {
				return err
			}
			return printDrift(cmd.OutOrStdout(), output, driftOfAll(cmd.Context(), m, strings.Join(args, ""), token))
		},
	}
	c.Flags().StringArrayVarP(&files, "filename", "f", nil, "manifest file; - reads the standard input; may be repeated")
	c.Flags().StringVarP(&output, "output", "o", "text", "json or text")
	c.Flags().StringVar(&tokenFile, "token-file", "", "file with the bearer token that the servers are asked with")
	_ = c.MarkFlagRequired("filename")
	return c
}

// driftOfAll asks each server for each grant of one of its tools.
func driftOfAll(ctx context.Context, m *manifests, override string, token []byte) []driftOf {
	out := []driftOf{}
	for i := range m.grants {
		g := m.grants[i].Contract()
		if g.Backend.MCP == nil {
			continue
		}
		s := toolimport.Server{URL: g.Backend.MCP.URL, Token: token, Policy: contract.OperatorPolicy{AllowLoopback: true}}
		if override != "" {
			s.URL = override
		}
		d := driftOf{Grant: g.Name, Tool: g.Tool.Name, Parts: []mcp.Part{}}
		ctx, cancel := context.WithTimeout(ctx, askTimeout)
		tools, err := s.Tools(ctx)
		cancel()
		if err != nil {
			d.Error = fmt.Sprintf("%s: %v", hostOf(s.URL), err)
		} else {
			var live *mcp.Declaration
			if x, there := tools[g.Backend.MCP.Tool]; there {
				live = &x
			}
			d.Parts = append(d.Parts, mcp.Drift(g.Tool, live)...)
			d.Diff = diffOf(g.Tool, live, d.Parts)
		}
		out = append(out, d)
	}
	return out
}

func diffOf(pinned contract.Tool, live *mcp.Declaration, parts []mcp.Part) string {
	var b strings.Builder
	for _, p := range parts {
		var was, is any
		switch p {
		case mcp.PartTool:
			_, _ = b.WriteString("the server declares no such tool\n")
			continue
		case mcp.PartDescription:
			was, is = pinned.Description, live.Description
		case mcp.PartInputSchema:
			was, is = pinned.InputSchema, live.InputSchema
		case mcp.PartOutputSchema:
			was, is = pinned.OutputSchema, live.OutputSchema
		}
		text, err := difflib.GetUnifiedDiffString(difflib.UnifiedDiff{
			A: linesOf(was), B: linesOf(is), FromFile: string(p) + " pinned", ToFile: string(p) + " live", Context: 3,
		})
		if err == nil {
			_, _ = b.WriteString(text)
		}
	}
	return b.String()
}

// linesOf is canonical JSON in lines.
func linesOf(v any) []string {
	text, err := contract.Canonical(v)
	var b bytes.Buffer
	if err != nil || json.Indent(&b, text, "", "  ") != nil {
		return nil
	}
	return strings.SplitAfter(b.String()+"\n", "\n")
}

func printDrift(out io.Writer, format string, all []driftOf) error {
	drifted, unasked := false, false
	for _, d := range all {
		drifted, unasked = drifted || len(d.Parts) > 0, unasked || d.Error != ""
		if format == "text" && (d.Error != "" || len(d.Parts) > 0) {
			_, _ = fmt.Fprintf(out, "ToolGrant %s (tool %s): %s\n%s", d.Grant, d.Tool, plain(d.Error), plain(d.Diff))
		}
	}
	if format == "json" {
		if err := json.NewEncoder(out).Encode(all); err != nil {
			return err
		}
	}
	switch {
	case unasked:
		return errors.New("tool diff: not every server could be asked")
	case drifted:
		return errFailed
	}
	return nil
}
