package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

const (
	methodList = "tools/list"

	maxList      = 4 << 20 // bytes of all pages of a server's list of tools
	maxListPages = 64
	maxListTools = 4096
)

// declaration is what a server says of one tool, as far as it is compared.
type declaration struct {
	Name         string          `json:"name"`
	Description  string          `json:"description"`
	InputSchema  json.RawMessage `json:"inputSchema"`
	OutputSchema json.RawMessage `json:"outputSchema"`
}

var errList = errors.New("the server's list of tools is too long, or never ends")

// list reads the server's tools, all pages of them. The exchange is that of the
// page that failed.
func (s *session) list(ctx context.Context) (map[string]declaration, *exchange, error) {
	tools, left, most := map[string]declaration{}, int64(maxList), maxValues
	cursor, seen := "", map[string]bool{}
	for range maxListPages {
		x := &exchange{method: methodList, tool: s.tool, limit: left, values: most, resume: true}
		page, err := s.page(ctx, x, cursor)
		switch {
		case err != nil:
			return nil, x, err
		case page == nil: // the server lets it be kept, and nothing has changed
			return s.tools, nil, nil
		}
		left -= page.bytes
		most = max(most-page.values, 1)
		for _, t := range page.Tools {
			if _, twice := tools[t.Name]; twice {
				return nil, x, fmt.Errorf("the server declares a tool twice")
			}
			tools[t.Name] = t
		}
		if len(tools) > maxListTools || left <= 0 || page.NextCursor != "" && seen[page.NextCursor] {
			return nil, x, errList
		}
		if cursor = page.NextCursor; cursor == "" {
			return tools, nil, nil
		}
		seen[cursor] = true
	}
	return nil, nil, errList
}

type listPage struct {
	Tools      []declaration `json:"tools"`
	NextCursor string        `json:"nextCursor"`
	bytes      int64
	values     int
}

// page reads one page. It is nil without an error when the SDK kept the answer
// of an earlier request, as the server allowed it.
func (s *session) page(ctx context.Context, x *exchange, cursor string) (*listPage, error) {
	ctx, cancel := context.WithCancelCause(x.in(ctx))
	x.giveUp = cancel
	defer cancel(nil)
	defer x.over()
	_, err := s.sdk.ListTools(ctx, &sdk.ListToolsParams{Cursor: cursor})
	x.mu.Lock()
	defer x.mu.Unlock()
	switch {
	case x.tooLarge > 0 || x.flood:
		return nil, errList
	case x.answer == nil && err == nil && s.tools != nil:
		return nil, nil
	case x.answer == nil && err == nil:
		return nil, errors.New("the server gave no list of its tools")
	case x.answer == nil:
		return nil, err
	case x.answer.Error != nil:
		return nil, fmt.Errorf("the server refused to list its tools (code %d)", x.answer.Error.Code)
	}
	p := &listPage{bytes: int64(len(x.answer.Result)), values: values(x.answer.Result)}
	if json.Unmarshal(x.answer.Result, p) != nil {
		return nil, errors.New("the server's list of tools cannot be read")
	}
	return p, nil
}

// drift says which part of the server's declaration differs from the pinned one,
// or "". What the grant leaves out is not compared, but for a tool that is gone.
func drift(pinned contract.Tool, declared declaration, there bool) string {
	switch {
	case !there:
		return "the server declares no tool of that name (backend.mcp.tool)"
	case pinned.Description != "" && pinned.Description != declared.Description:
		return "its description differs from the pinned one"
	case !sameSchema(pinned.InputSchema, declared.InputSchema):
		return "its input schema differs from the pinned one"
	case !sameSchema(pinned.OutputSchema, declared.OutputSchema):
		return "its output schema differs from the pinned one"
	}
	return ""
}

// sameSchema compares two schemas by their canonical text.
func sameSchema(pinned, declared json.RawMessage) bool {
	if len(pinned) == 0 {
		return true
	}
	if len(declared) == 0 || len(declared) > contract.MaxSchemaBytes {
		return false
	}
	a, err := contract.Canonical(pinned)
	if err != nil {
		return false
	}
	b, err := contract.Canonical(declared)
	return err == nil && bytes.Equal(a, b)
}
