package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/cmd/codeact/openapi"
	"github.com/codeact-dev/codeact-operator/cmd/codeact/toolimport"
)

// openapiFlags are the flags of codeact tool import openapi.
type openapiFlags struct {
	importFlags
	documentFlags
}

// documentFlags say how the operations of a document are called.
type documentFlags struct {
	server  string
	headers []string
	noAuth  bool
}

func newImportOpenAPI() *cobra.Command {
	var f openapiFlags
	c := &cobra.Command{
		Use:   "openapi FILE [--operation ID...]",
		Short: "Write ToolGrants for the operations of an OpenAPI document",
		Long: `Write ToolGrants for the operations of an OpenAPI document of version 3.0 or 3.1,
in YAML or JSON; - reads the standard input. Nothing is asked or opened beside it:
references out of the document are refused.

Parameters of path and query, and the members of a JSON body, become the arguments
of a tool; required headers with one value become headers of the grant. An operation
that one request of the http backend cannot express is left out, with the reason.
Where the document asks for a bearer token, the grant has an auth.secretRef:
--auth-secret names the Secret.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.fromFile(cmd.Context(), args[0], cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	c.Flags().StringArrayVar(&f.only, "operation", nil, "operationId, or method and path as in 'GET /orders/{id}'; may be repeated; all without it")
	f.documentFlags.bind(c)
	f.common(c)
	return c
}

func (f *documentFlags) bind(c *cobra.Command) {
	c.Flags().StringVar(&f.server, "server", "", "address in the place of the document's servers")
	c.Flags().StringArrayVar(&f.headers, "header", nil, "value of a header that operations need, as NAME=VALUE; may be repeated")
	c.Flags().BoolVar(&f.noAuth, "no-auth", false, "drop what the document says of security: a gateway adds the credential")
}

// options reads the flags; the values are those of every import.
func (f *documentFlags) options(o toolimport.Options) (toolimport.OpenAPIOptions, error) {
	out := toolimport.OpenAPIOptions{Options: o, Server: f.server, NoAuth: f.noAuth, Headers: map[string]string{}}
	if f.server != "" {
		if _, err := contract.ParseURLTemplate(f.server); err != nil || strings.ContainsAny(f.server, "{}?") {
			return out, fmt.Errorf("--server: %s is not an http or https address without user, query and fragment", hostOf(f.server))
		}
	}
	for _, h := range f.headers {
		name, value, ok := strings.Cut(h, "=")
		if !ok || name == "" {
			return out, fmt.Errorf("--header: %q is not NAME=VALUE", contract.Truncate(h, 64))
		}
		out.Headers[strings.ToLower(name)] = value
	}
	return out, nil
}

func (f *openapiFlags) fromFile(ctx context.Context, file string, in io.Reader, out, errs io.Writer) error {
	common, err := f.importFlags.options()
	if err != nil {
		return err
	}
	o, err := f.documentFlags.options(common)
	if err != nil {
		return err
	}
	d, err := readDocument(file, in)
	if err != nil {
		return err
	}
	r, err := toolimport.FromOpenAPI(d, o)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return f.print(ctx, r, out, errs)
}

// readDocument reads an OpenAPI document; - is the standard input.
func readDocument(file string, in io.Reader) (*openapi.Document, error) {
	text, err := readFile(file, in)
	if err != nil {
		return nil, err
	}
	d, err := openapi.Read(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", plain(file), err)
	}
	return d, nil
}
