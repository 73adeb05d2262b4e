package contract

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

// MaxCatalogueBytes bounds the text of a catalogue.
const MaxCatalogueBytes = 32768

// CatalogueStep says how much of its tools a catalogue shows.
type CatalogueStep string

// The steps, each one down from the one before.
const (
	// CatalogueFull shows everything.
	CatalogueFull CatalogueStep = "full"
	// CatalogueWithoutReturnSchemas shows no tool's return schema.
	CatalogueWithoutReturnSchemas CatalogueStep = "withoutReturnSchemas"
	// CatalogueEmpty shows nothing, and then nothing may be called.
	CatalogueEmpty CatalogueStep = "empty"
)

// Catalogue is what the author of a program, such as a model, is shown of its tools.
type Catalogue struct {
	Step CatalogueStep
	// Text is one JSON list without blanks, sorted by the bytes of the names.
	Text []byte
	// Names are the tools that it shows, in its order: only these may be called.
	Names []string
}

// PinnedCatalogue says in a bundle what its program's author was shown.
type PinnedCatalogue struct {
	Step CatalogueStep `json:"step"`
	// Digest is the digest of the text.
	Digest string `json:"digest"`
}

// Pinned returns what a bundle says of c.
func (c Catalogue) Pinned() *PinnedCatalogue {
	return &PinnedCatalogue{Step: c.Step, Digest: Digest(c.Text)}
}

// NewCatalogue makes the catalogue of tools, in any order, whose text has at most
// maxBytes: in full; or else without any return schema; or else empty. It never
// shows only some of the tools, and parameters are never left out. The only error
// is a schema that is not JSON.
func NewCatalogue(tools []Tool, maxBytes int) (Catalogue, error) {
	tools = slices.SortedFunc(slices.Values(tools), func(a, b Tool) int { return strings.Compare(a.Name, b.Name) })
	names := make([]string, 0, len(tools))
	for _, t := range tools {
		names = append(names, t.Name)
	}
	for _, step := range []CatalogueStep{CatalogueFull, CatalogueWithoutReturnSchemas} {
		text, err := catalogueText(tools, step == CatalogueFull)
		if err != nil {
			return Catalogue{}, err
		}
		if len(text) <= maxBytes {
			return Catalogue{Step: step, Text: text, Names: names}, nil
		}
	}
	return Catalogue{Step: CatalogueEmpty, Text: []byte("[]"), Names: []string{}}, nil
}

// catalogueEntry has its keys in the order in which they are shown.
type catalogueEntry struct {
	Name                string          `json:"name"`
	Description         string          `json:"description"`
	Parameters          json.RawMessage `json:"parameters"`
	ReturnSchema        json.RawMessage `json:"return_schema,omitempty"`
	ReturnSchemaOmitted bool            `json:"return_schema_omitted,omitempty"`
}

func catalogueText(tools []Tool, returns bool) ([]byte, error) {
	list := make([]catalogueEntry, 0, len(tools))
	for _, t := range tools {
		e := catalogueEntry{Name: t.Name, Description: t.Description, ReturnSchemaOmitted: !returns}
		var err error
		if e.Parameters, err = shownSchema(t.InputSchema); err != nil {
			return nil, err
		}
		if returns {
			if e.ReturnSchema, err = shownSchema(t.OutputSchema); err != nil {
				return nil, err
			}
		}
		list = append(list, e)
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(list); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}

// shownSchema is the one spelling of a schema, so that a text made of the pinned
// tools is the same. Without a schema any JSON passes, and {} says so.
func shownSchema(text json.RawMessage) (json.RawMessage, error) {
	if len(text) == 0 {
		return json.RawMessage("{}"), nil
	}
	return Canonical(text)
}
