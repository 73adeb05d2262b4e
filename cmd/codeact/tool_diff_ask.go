package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/api/v1alpha1"
	"github.com/codeact-dev/codeact-operator/cmd/codeact/toolimport"
	"github.com/codeact-dev/codeact-operator/runtime/broker/backend/mcp"
)

// grants reads the grants of the files, or of the cluster.
func (f *diffFlags) grants(ctx context.Context, names []string, in io.Reader) (*manifests, error) {
	for _, n := range names {
		if strings.Contains(n, "://") {
			return nil, fmt.Errorf("tool diff: %s is an address: give it by --server", hostOf(n))
		}
	}
	if len(f.files) == 0 {
		api, ns, err := f.connect()
		if err != nil {
			return nil, err
		}
		return grantsOf(ctx, api, ns, names)
	}
	m, err := loadAny(ctx, f.files, in)
	if err != nil || len(names) == 0 {
		return m, err
	}
	for _, n := range names {
		if !slices.ContainsFunc(m.grants, func(g v1alpha1.ToolGrant) bool { return g.Name == n }) {
			return nil, fmt.Errorf("tool diff: the files hold no ToolGrant %s", plain(n))
		}
	}
	m.grants = slices.DeleteFunc(m.grants, func(g v1alpha1.ToolGrant) bool { return !slices.Contains(names, g.Name) })
	return m, nil
}

// grantsOf reads ToolGrants of a namespace, all without names. Secrets stay where
// they are.
func grantsOf(ctx context.Context, api client.Client, ns string, names []string) (*manifests, error) {
	m := &manifests{}
	for _, n := range names {
		var g v1alpha1.ToolGrant
		if err := api.Get(ctx, types.NamespacedName{Namespace: ns, Name: n}, &g); err != nil {
			return nil, err
		}
		m.grants = append(m.grants, g)
	}
	if len(names) > 0 {
		return m, nil
	}
	var page v1alpha1.ToolGrantList
	for {
		if err := api.List(ctx, &page, client.InNamespace(ns), client.Limit(100), client.Continue(page.Continue)); err != nil {
			return nil, err
		}
		m.grants = append(m.grants, page.Items...)
		if page.Continue == "" {
			return m, nil
		}
	}
}

// asker asks the servers of grants, each once for each credential.
type asker struct {
	m        *manifests
	server   string // in the place of the grants'
	tokens   map[string][]byte
	effects  bool
	declared map[string]declared
}

// declared is what a server said.
type declared struct {
	tools map[string]mcp.Declaration
	err   error
}

// asker reads the tokens. One for a server that nobody asks is a mistake.
func (f *diffFlags) asker(m *manifests) (*asker, error) {
	a := &asker{m: m, server: f.server, effects: !f.ignoreEffect, tokens: map[string][]byte{}, declared: map[string]declared{}}
	for _, t := range f.tokenFiles {
		host, file, ok := strings.Cut(t, "=")
		if !ok || host == "" || file == "" || strings.ContainsAny(host, "/@") {
			return nil, errors.New("--token-file: name the server that may have the token, as HOST=FILE")
		}
		token, err := readToken(file)
		if err != nil {
			return nil, err
		}
		a.tokens[strings.ToLower(host)] = token
	}
	asked := map[string]bool{}
	for i := range m.grants {
		if g := m.grants[i].Contract(); g.Backend.MCP != nil {
			asked[serverHost(a.address(g))] = true
		}
	}
	for host := range a.tokens {
		if !asked[host] {
			return nil, fmt.Errorf("--token-file: no grant is asked for at %s", plain(host))
		}
	}
	return a, nil
}

func (a *asker) address(g contract.Grant) string {
	if a.server != "" {
		return a.server
	}
	return g.Backend.MCP.URL
}

// serverHost is host and port as they stand in an address.
func serverHost(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return strings.ToLower(u.Host)
}

// token is the credential for a grant's server: the one that was given for its
// host, or the grant's own, which no other server is sent.
func (a *asker) token(g contract.Grant) []byte {
	address := a.address(g)
	if t, there := a.tokens[serverHost(address)]; there {
		return t
	}
	if g.Auth.Type != contract.AuthSecretRef || address != g.Backend.MCP.URL {
		return nil
	}
	for _, ns := range []string{g.Namespace, ""} {
		if v, there := a.m.secrets[ns+"/"+g.Auth.SecretName][g.Auth.SecretKey]; there {
			return bytes.TrimSpace(v)
		}
	}
	return nil
}

// all compares every grant of an MCP tool.
func (a *asker) all(ctx context.Context) []driftOf {
	var out []driftOf
	for i := range a.m.grants {
		g := a.m.grants[i].Contract()
		if g.Backend.MCP == nil {
			continue
		}
		d := driftOf{Namespace: g.Namespace, Grant: g.Name, Tool: g.Tool.Name, Source: hostOf(a.address(g)), Parts: []mcp.Part{}, Changes: []toolimport.Change{}}
		said := a.ask(ctx, a.address(g), a.token(g))
		if said.err != nil {
			d.Error = fmt.Sprintf("%s: %v", d.Source, said.err)
		} else {
			var live *mcp.Declaration
			if x, there := said.tools[g.Backend.MCP.Tool]; there {
				live = &x
			}
			d.take(toolimport.CompareMCP(g.Tool, live, a.effects))
		}
		out = append(out, d)
	}
	return out
}

func (a *asker) ask(ctx context.Context, address string, token []byte) declared {
	key := address + "\n" + string(token)
	if said, there := a.declared[key]; there {
		return said
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	s := toolimport.Server{URL: address, Token: token, Policy: contract.OperatorPolicy{AllowLoopback: true}}
	tools, err := s.Tools(ctx)
	a.declared[key] = declared{tools, err}
	return a.declared[key]
}
