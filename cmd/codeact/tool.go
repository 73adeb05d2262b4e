package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/cmd/codeact/admit"
	"github.com/codeact-dev/codeact-operator/cmd/codeact/toolimport"
	"github.com/codeact-dev/codeact-operator/controllers/toolgrant"
	"github.com/codeact-dev/codeact-operator/runtime/broker/backend/mcp"
)

// askTimeout bounds how long one server may take to say what it declares.
const askTimeout = 60 * time.Second

func newTool() *cobra.Command {
	c := &cobra.Command{
		Use:   "tool",
		Short: "Propose ToolGrants from servers and documents, and compare them",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_ = cmd.Help()
			return errors.New("tool: name a subcommand: import or diff")
		},
	}
	c.AddCommand(newToolImport(), newToolDiff())
	return c
}

// importFlags are the flags of codeact tool import.
type importFlags struct {
	only                    []string
	namespace, prefix, auth string
	tokenFile               string // of mcp
}

func newToolImport() *cobra.Command {
	c := &cobra.Command{
		Use:   "import",
		Short: "Write ToolGrants for review, from an MCP server or an OpenAPI document",
		Long: `Write ToolGrants for review, from an MCP server or an OpenAPI document.

The grants are written to the standard output as YAML. Each one declares its tool
as the source does, passes the API server's own checks and the controller's, and
is closed: its notAfter has passed, so that no run gets the tool before somebody
has looked at every REVIEW and moved it. Effects are guessed, from the hints of the
server or the method of the operation. What a grant cannot express is left out and
said on the standard error. The exit code is 1 when a tool that was named, or every
tool, was left out.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_ = cmd.Help()
			return errors.New("tool import: name a source: mcp or openapi")
		},
	}
	c.AddCommand(newImportMCP(), newImportOpenAPI())
	return c
}

func newImportMCP() *cobra.Command {
	var f importFlags
	c := &cobra.Command{
		Use:   "mcp URL [--tool NAME...]",
		Short: "Write ToolGrants for the tools of an MCP server",
		Long: `Write ToolGrants for the tools of an MCP server that speaks streamable HTTP.

The server is asked with the runtime's own client: nothing is called, and the same
bounds hold as in a pod. --auth-secret names the Secret of the credential that
calls will carry; --token-file holds one to ask the server with now.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.fromMCP(cmd.Context(), args[0], cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	c.Flags().StringArrayVar(&f.only, "tool", nil, "name of a tool on the server; may be repeated; all without it")
	c.Flags().StringVar(&f.tokenFile, "token-file", "", "file with the bearer token that the server is asked with")
	f.common(c)
	return c
}

// common are the flags of every source.
func (f *importFlags) common(c *cobra.Command) {
	c.Flags().StringVarP(&f.namespace, "namespace", "n", "", "namespace of the grants; none without it")
	c.Flags().StringVar(&f.prefix, "prefix", "", "text before the name of every tool")
	c.Flags().StringVar(&f.auth, "auth-secret", "", "Secret of the credential that calls carry, as name/key")
}

func (f *importFlags) options() (toolimport.Options, error) {
	o := toolimport.Options{Namespace: f.namespace, Prefix: f.prefix, Only: f.only}
	if f.auth == "" {
		return o, nil
	}
	var err error
	if o.Auth, err = toolimport.ParseSecretKey(f.auth); err != nil {
		return o, fmt.Errorf("--auth-secret: %w", err)
	}
	return o, nil
}

func (f *importFlags) fromMCP(ctx context.Context, address string, out, errs io.Writer) error {
	o, err := f.options()
	if err != nil {
		return err
	}
	s := toolimport.Server{URL: address, Policy: contract.OperatorPolicy{AllowLoopback: true}}
	if s.Token, err = readToken(f.tokenFile); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	tools, err := s.Tools(ctx)
	if err != nil {
		return fmt.Errorf("%s: %w", hostOf(address), err)
	}
	r, err := toolimport.FromMCP(address, tools, o)
	if err != nil {
		return err
	}
	return f.print(ctx, r, out, errs)
}

// hostOf names a server in messages: the rest of a URL may hold a credential.
func hostOf(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" {
		return "the server"
	}
	return plain(u.Host)
}

// readToken reads a bearer token from a file; no name is no token.
func readToken(name string) ([]byte, error) {
	if name == "" {
		return nil, nil
	}
	text, err := os.ReadFile(name)
	if err == nil && len(bytes.TrimSpace(text)) == 0 {
		err = errors.New("it is empty")
	}
	if err != nil {
		return nil, fmt.Errorf("--token-file: %w", err)
	}
	return bytes.TrimSpace(text), nil
}

// print writes the drafts that hold, and says what was left out.
func (f *importFlags) print(ctx context.Context, r toolimport.Result, out, errs io.Writer) error {
	schemas, err := admit.Kinds()
	if err != nil {
		return err
	}
	var all bytes.Buffer
	left := false
	for _, n := range r.Notices {
		left = left || n.Left
		_, _ = fmt.Fprintln(errs, n)
	}
	for _, d := range r.Drafts {
		text, err := d.YAML()
		if err == nil {
			err = verifyDraft(ctx, schemas, d, text)
		}
		if err != nil {
			left = true
			_, _ = fmt.Fprintln(errs, toolimport.Notice{From: d.From, Text: err.Error(), Left: true})
			continue
		}
		if all.Len() > 0 {
			_, _ = all.WriteString("---\n")
		}
		_, _ = all.Write(text)
	}
	if _, err := out.Write(all.Bytes()); err != nil {
		return err
	}
	if all.Len() == 0 {
		_, _ = fmt.Fprintln(errs, "nothing was imported")
		return errFailed
	}
	if left && len(f.only) > 0 {
		return errFailed
	}
	return nil
}

// verifyDraft reads a draft as the API server and the controller would. It must
// say what was meant, be closed, and be Ready once it is opened.
func verifyDraft(ctx context.Context, schemas map[string]*admit.Kind, d toolimport.Draft, text []byte) error {
	l := &loader{ctx: ctx, schemas: schemas, seen: map[string]string{}}
	if err := l.file("draft", text); err != nil {
		return fmt.Errorf("the API server would refuse its grant: %w", err)
	}
	if len(l.m.grants) != 1 {
		return errors.New("it cannot be written as one grant")
	}
	g := &l.m.grants[0]
	if !sameTool(d.Tool, g.Declaration()) {
		return errors.New("its declaration does not come through YAML unchanged")
	}
	s := toolgrant.Snapshot{Now: time.Now(), Grant: g}
	closed := toolgrant.Decide(s).Fault
	g.Spec.Grant.NotAfter = nil
	if f := toolgrant.Decide(s).Fault; f != nil {
		return fmt.Errorf("its grant would not be Ready: %s: %s", f.Reason, f.Message)
	}
	if closed == nil || closed.Reason != contract.ReasonExpired {
		return errors.New("its grant would not be closed")
	}
	return nil
}

// sameTool compares what a draft means with what its text says, as the runtime
// compares a server's declaration with the pinned one.
func sameTool(want, got contract.Tool) bool {
	want = want.Defaulted()
	same := want.Name == got.Name && want.Description == got.Description && want.Effect == got.Effect &&
		(len(want.InputSchema) > 0) == (len(got.InputSchema) > 0) && (len(want.OutputSchema) > 0) == (len(got.OutputSchema) > 0)
	return same && len(mcp.Drift(want, &mcp.Declaration{Description: got.Description, InputSchema: got.InputSchema, OutputSchema: got.OutputSchema})) == 0
}
