package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/codeact-dev/codeact-operator/cmd/codeact/openapi"
	"github.com/codeact-dev/codeact-operator/cmd/codeact/toolimport"
	"github.com/codeact-dev/codeact-operator/runtime/broker/backend/mcp"
)

// driftOf is how one grant differs from its source: a contract with the users of
// codeact tool diff -o json.
type driftOf struct {
	Namespace string `json:"namespace,omitempty"`
	Grant     string `json:"grant"`
	Tool      string `json:"tool"`
	// Source is the host of the server, or the document.
	Source string `json:"source"`
	// Parts are those for which a run ends as DeclarationDrift.
	Parts   []mcp.Part          `json:"parts"`
	Changes []toolimport.Change `json:"changes"`
	Notes   []string            `json:"notes,omitempty"`
	Error   string              `json:"error,omitempty"`
}

// diffFlags are the flags of codeact tool diff.
type diffFlags struct {
	cluster
	documentFlags
	files, tokenFiles []string
	document, output  string
	ignoreEffect      bool
}

func newToolDiff() *cobra.Command {
	var f diffFlags
	c := &cobra.Command{
		Use:   "diff [NAME...] [-f FILE... | -n NAMESPACE] [--from-openapi FILE]",
		Short: "Show how MCP servers and OpenAPI documents differ from ToolGrants",
		Long: `Show how MCP servers, or an OpenAPI document, differ from ToolGrants.

The grants are those of the files, or else of the cluster; NAMEs choose some of
them. Grants of MCP tools are compared with what their servers declare now: where
description or schemas differ, a run ends as DeclarationDrift. Where a server's
hints make its tool worse than the grant's effect says, that is a difference, too.
With --from-openapi, the grants of HTTP tools are compared with what an import of
the document would propose, but for the server and the effect, and nobody is asked.

A server is asked with the credential of --token-file HOST=FILE that names its host
(and its port, as in the URL), or with that of the Secret in the files to which the
grant refers; no server gets that of another.

The exit code is 0 without a difference, 1 with one, and 2 when something could not
be compared.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.run(cmd.Context(), args, cmd.InOrStdin(), cmd.OutOrStdout())
		},
	}
	c.Flags().StringArrayVarP(&f.files, "filename", "f", nil, "manifest file; - reads the standard input; may be repeated; the cluster without it")
	c.Flags().StringVar(&f.document, "from-openapi", "", "OpenAPI document that the grants of HTTP tools are compared with")
	c.Flags().StringVarP(&f.output, "output", "o", "text", "json or text")
	c.Flags().StringArrayVar(&f.tokenFiles, "token-file", nil, "bearer token for one server, as HOST=FILE; may be repeated")
	c.Flags().BoolVar(&f.ignoreEffect, "ignore-effect", false, "do not compare a server's hints with the grant's effect")
	f.documentFlags.bind(c)
	c.Flags().Lookup("server").Usage = "address that is asked, or that the document's operations are at, in the place of the grant's or the document's"
	f.cluster.bind(c)
	return c
}

func (f *diffFlags) run(ctx context.Context, names []string, in io.Reader, out io.Writer) error {
	if err := checkOutput(f.output); err != nil {
		return err
	}
	o, err := f.documentFlags.options(toolimport.Options{})
	if err != nil {
		return err
	}
	m, err := f.grants(ctx, names, in)
	if err != nil {
		return err
	}
	var all []driftOf
	if f.document == "" {
		a, err := f.asker(m)
		if err != nil {
			return err
		}
		all = a.all(ctx)
	} else {
		d, err := readDocument(f.document, in)
		if err != nil {
			return err
		}
		all = f.fromDocument(d, m, o)
	}
	if len(all) == 0 {
		return errors.New("tool diff: nothing to compare: there is no grant of an MCP tool (with --from-openapi: of an HTTP tool)")
	}
	if len(names) > len(all) {
		return errors.New("tool diff: not every grant that was named can be compared: an MCP tool has a server, an HTTP tool needs --from-openapi")
	}
	return printDrift(out, f.output, all)
}

// fromDocument compares the grants of HTTP tools with a document.
func (f *diffFlags) fromDocument(d *openapi.Document, m *manifests, o toolimport.OpenAPIOptions) []driftOf {
	var out []driftOf
	for i := range m.grants {
		g := m.grants[i].Contract()
		if g.Backend.HTTP == nil {
			continue
		}
		x := driftOf{Namespace: g.Namespace, Grant: g.Name, Tool: g.Tool.Name, Source: f.document}
		x.take(toolimport.CompareOpenAPI(d, g, o))
		x.Parts = []mcp.Part{} // no run compares them
		out = append(out, x)
	}
	return out
}

func (d *driftOf) take(c toolimport.Comparison) {
	d.Parts = append([]mcp.Part{}, c.Parts...)
	d.Changes = append([]toolimport.Change{}, c.Changes...)
	d.Notes = c.Notes
}

func printDrift(out io.Writer, format string, all []driftOf) error {
	drifted, failed := false, false
	for _, d := range all {
		drifted, failed = drifted || len(d.Changes) > 0, failed || d.Error != ""
		if format == "text" {
			printGrant(out, d)
		}
	}
	if format == "json" {
		if err := json.NewEncoder(out).Encode(all); err != nil {
			return err
		}
	}
	switch {
	case failed:
		return errors.New("tool diff: not every server could be asked")
	case drifted:
		return errFailed
	}
	return nil
}

// printGrant says nothing of a grant about which there is nothing to say.
func printGrant(out io.Writer, d driftOf) {
	name := d.Grant
	if d.Namespace != "" {
		name = d.Namespace + "/" + name
	}
	head := fmt.Sprintf("ToolGrant %s (tool %s)", name, plain(d.Tool))
	switch {
	case d.Error != "":
		_, _ = fmt.Fprintf(out, "%s: %s\n", head, plain(d.Error))
	case len(d.Changes) > 0:
		_, _ = fmt.Fprintf(out, "%s differs from %s:\n", head, plain(d.Source))
	case len(d.Notes) > 0:
		_, _ = fmt.Fprintf(out, "%s:\n", head)
	}
	for _, c := range d.Changes {
		_, _ = fmt.Fprintf(out, "  %s\n", c)
	}
	for _, n := range d.Notes {
		_, _ = fmt.Fprintf(out, "  note    %s\n", plain(n))
	}
}
