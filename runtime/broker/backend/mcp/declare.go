package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

const (
	methodList = "tools/list"

	maxList      = 4 << 20 // bytes of all pages of a server's list of tools
	maxListPages = 64
	maxListTools = 4096
)

// Declaration is what a server says of one tool.
type Declaration struct {
	Name         string          `json:"name"`
	Description  string          `json:"description"`
	InputSchema  json.RawMessage `json:"inputSchema"`
	OutputSchema json.RawMessage `json:"outputSchema"`
	// Annotations are the server's hints, in whatever form: nothing is decided by
	// them at call time, and they are not compared.
	Annotations json.RawMessage `json:"annotations"`
}

var errList = errors.New("the server's list of tools is too long, or never ends")

// list reads the server's tools, all pages of them. The exchange is that of the
// page that failed.
func (s *session) list(ctx context.Context) (map[string]Declaration, *exchange, error) {
	tools, left, most := map[string]Declaration{}, int64(maxList), maxValues
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
	Tools      []Declaration `json:"tools"`
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

// Part names a part of a declaration that is compared.
type Part string

// The parts, in the order in which they are compared. PartTool is the tool as a
// whole: it is gone.
const (
	PartTool         Part = "tool"
	PartDescription  Part = "description"
	PartInputSchema  Part = "inputSchema"
	PartOutputSchema Part = "outputSchema"
)

// Drift returns the parts of a server's declaration that differ from the pinned
// one. What the grant leaves out is not compared, but for a tool that is gone,
// which is nil here.
func Drift(pinned contract.Tool, declared *Declaration) []Part {
	if declared == nil {
		return []Part{PartTool}
	}
	var out []Part
	if pinned.Description != "" && pinned.Description != declared.Description {
		out = append(out, PartDescription)
	}
	if !sameSchema(pinned.InputSchema, declared.InputSchema) {
		out = append(out, PartInputSchema)
	}
	if !sameSchema(pinned.OutputSchema, declared.OutputSchema) {
		out = append(out, PartOutputSchema)
	}
	return out
}

var driftMessages = map[Part]string{
	PartTool:         "the server declares no tool of that name (backend.mcp.tool)",
	PartDescription:  "its description differs from the pinned one",
	PartInputSchema:  "its input schema differs from the pinned one",
	PartOutputSchema: "its output schema differs from the pinned one",
}

// drift says which part of the server's declaration differs first, or "".
func drift(pinned contract.Tool, declared Declaration, there bool) string {
	d := &declared
	if !there {
		d = nil
	}
	for _, p := range Drift(pinned, d) {
		return driftMessages[p]
	}
	return ""
}

// Declarations asks the tool's server what it declares, by the tools' names. It
// opens the session of the run if that has not been done, and calls nothing.
func (b *Backend) Declarations(ctx context.Context) (map[string]Declaration, error) {
	_, tools, f := b.slot.ready(ctx)
	if f != nil {
		return nil, errors.New(f.Message)
	}
	return maps.Clone(tools), nil
}

// sameSchema compares two schemas by value: keys in any order, and numbers however
// they are spelled. What the API server stores of 1.0 is 1.
func sameSchema(pinned, declared json.RawMessage) bool {
	if len(pinned) == 0 {
		return true
	}
	if len(declared) == 0 || len(declared) > contract.MaxSchemaBytes {
		return false
	}
	a, errA := contract.DecodeJSON(pinned)
	b, errB := contract.DecodeJSON(declared)
	return errA == nil && errB == nil && sameValue(a, b)
}

func sameValue(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for k, x := range a {
			if y, there := b[k]; !there || !sameValue(x, y) {
				return false
			}
		}
		return true
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, sameValue)
	case json.Number:
		b, ok := b.(json.Number)
		return ok && SameNumber(a, b)
	}
	return a == b
}

// SameNumber reports whether two numbers are the same however they are spelled.
func SameNumber(a, b json.Number) bool {
	return a == b || decimal(string(a)) == decimal(string(b))
}

// decimal spells a JSON number in one way: its digits without zeros at either end,
// and its exponent. Nothing is computed, so that a large exponent costs nothing.
func decimal(s string) string {
	mantissa, exponent, _ := strings.Cut(strings.ToLower(s), "e")
	n, err := strconv.ParseInt(cmp.Or(exponent, "0"), 10, 32)
	if err != nil {
		return s
	}
	mantissa, negative := strings.CutPrefix(mantissa, "-")
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := strings.TrimLeft(whole+fraction, "0")
	short := strings.TrimRight(digits, "0")
	if short == "" {
		return "0"
	}
	n += int64(len(digits)-len(short)) - int64(len(fraction))
	if negative {
		short = "-" + short
	}
	return fmt.Sprintf("%se%d", short, n)
}
