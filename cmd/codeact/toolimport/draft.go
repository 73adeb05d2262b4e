// Package toolimport proposes ToolGrants for the tools of MCP servers and of
// OpenAPI documents, and compares grants with what those say today. What it
// proposes gives no authority: every draft is closed until somebody opens it.
package toolimport

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

// Draft is one ToolGrant as it is proposed.
type Draft struct {
	// Object is its metadata.name; Namespace may be empty.
	Object, Namespace string
	// From names the tool at its source, such as "GET /orders/{id}".
	From string
	// Tool is the declaration, with the effect as it was guessed.
	Tool contract.Tool
	// Guess says what the effect was guessed from.
	Guess string
	// Backend has exactly one of MCP and HTTP.
	Backend contract.Backend
	// Auth is the Secret of the credential, or nil.
	Auth *SecretKey
	// Review are further things that a reviewer has to look at.
	Review []string
}

// SecretKey names one entry of a Secret.
type SecretKey struct{ Name, Key string }

// ParseSecretKey reads name/key.
func ParseSecretKey(s string) (*SecretKey, error) {
	name, key, ok := strings.Cut(s, "/")
	if !ok || name == "" || key == "" || strings.Contains(key, "/") {
		return nil, fmt.Errorf("%q is not name/key of a Secret", s)
	}
	return &SecretKey{Name: name, Key: key}, nil
}

// Options are what every import has in common.
type Options struct {
	// Namespace of the grants; none without it.
	Namespace string
	// Prefix is put before the name of every tool.
	Prefix string
	// Only are the tools to import, by their names at the source; all without any.
	Only []string
	// Auth is the Secret of the credential that the calls carry; none without it.
	Auth *SecretKey
}

// wants reports whether one of the names was asked for.
func (o Options) wants(names ...string) bool {
	return len(o.Only) == 0 || slices.ContainsFunc(names, func(n string) bool { return n != "" && slices.Contains(o.Only, n) })
}

// Notice says what could not be taken over.
type Notice struct {
	// From names the tool at its source; empty is the source as a whole.
	From string
	Text string
	// Left says that the tool was left out altogether.
	Left bool
}

// String is one line, whatever the source holds.
func (n Notice) String() string {
	text := n.Text
	if n.Left {
		text = "left out: " + text
	}
	if n.From == "" {
		return oneLine(text)
	}
	return oneLine(n.From) + ": " + oneLine(text)
}

// Result is what an import comes to.
type Result struct {
	Drafts  []Draft
	Notices []Notice
}

func (r *Result) say(from, format string, args ...any) {
	r.Notices = append(r.Notices, Notice{From: from, Text: fmt.Sprintf(format, args...)})
}

func (r *Result) leave(from, format string, args ...any) {
	r.Notices = append(r.Notices, Notice{From: from, Text: fmt.Sprintf(format, args...), Left: true})
}

// settle orders the drafts by name, and refuses two that would be one.
func (r *Result) settle() error {
	slices.SortFunc(r.Drafts, func(a, b Draft) int {
		return cmp.Or(strings.Compare(a.Tool.Name, b.Tool.Name), strings.Compare(a.From, b.From))
	})
	tools, objects := map[string]string{}, map[string]string{}
	for _, d := range r.Drafts {
		if other, twice := tools[d.Tool.Name]; twice {
			return fmt.Errorf("%q and %q would both be the tool %s: import them apart, and one of them with --prefix", other, d.From, d.Tool.Name)
		}
		if other, twice := objects[d.Object]; twice {
			return fmt.Errorf("%q and %q would both be the ToolGrant %s: import them apart, and one of them with --prefix", other, d.From, d.Object)
		}
		tools[d.Tool.Name], objects[d.Object] = d.From, d.From
	}
	return nil
}

// name gives the draft its names, made from that at the source.
func (d *Draft) name(o Options, source string) error {
	d.Namespace, d.Auth = o.Namespace, o.Auth
	if d.Auth != nil {
		d.Tool.Capabilities = []string{contract.CapabilityAuth}
	}
	d.Tool.Name = toolName(o.Prefix + source)
	d.Object = objectName(d.Tool.Name)
	switch {
	case !contract.ValidToolName(d.Tool.Name) || d.Object == "":
		return fmt.Errorf("no name of a tool can be made of %q", source)
	case contract.ReservedName(d.Tool.Name):
		return fmt.Errorf("the name %s belongs to the runtime: use --prefix", d.Tool.Name)
	}
	return nil
}

// maxName bounds the name of a tool, in bytes.
const maxName = 64

// toolName puts "_" for what the name of a tool may not hold.
func toolName(s string) string {
	s = strings.Map(func(r rune) rune {
		if r == '-' || r == '_' || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' {
			return r
		}
		return '_'
	}, s)
	return s[:min(len(s), maxName)]
}

// objectName makes the name of an object of a tool's name, or "".
func objectName(tool string) string {
	return strings.Trim(strings.ReplaceAll(strings.ToLower(tool), "_", "-"), "-")
}

// describe takes a description over, if it is not too long for a declaration.
func (d *Draft) describe(r *Result, text string) {
	if len(text) > contract.MaxDescriptionBytes {
		r.say(d.From, "its description has %d bytes, more than %d, and is left out", len(text), contract.MaxDescriptionBytes)
		return
	}
	d.Tool.Description = text
}

// checkSchema says why a schema cannot be that of a declaration.
func checkSchema(what string, s json.RawMessage) error {
	if _, err := contract.CompileSchema(s); err != nil {
		if f, ok := contract.AsFault(err); ok {
			return fmt.Errorf("its %s: %s", what, f.Message)
		}
		return fmt.Errorf("its %s: %w", what, err)
	}
	return nil
}
