package contract

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v5"
)

// Schema is a compiled JSON Schema: 2020-12, or draft-07 if its $schema says so.
// Formats are asserted. A nil *Schema accepts every JSON value.
// It is safe for concurrent use; validations wait for each other.
type Schema struct {
	s       *jsonschema.Schema
	objects int  // how many the text has
	unique  bool // whether it asks for unique items
	pattern int  // the size of its largest pattern

	mu    sync.Mutex // guards meter
	meter *meter
}

const schemaURL = "codeact:///schema.json"

// CompileSchema compiles the JSON text of a schema of at most MaxSchemaBytes. An
// empty text gives a nil Schema. References may only point into the text
// itself. Every error is a SchemaInvalid fault.
func CompileSchema(text json.RawMessage) (*Schema, error) {
	if len(text) == 0 {
		return nil, nil
	}
	if len(text) > MaxSchemaBytes {
		return nil, Faultf(ReasonSchemaInvalid, "the schema has %d bytes, more than %d", len(text), MaxSchemaBytes)
	}
	x, err := DecodeJSON(text)
	if err != nil {
		return nil, Faultf(ReasonSchemaInvalid, "the schema is not JSON: %s", firstLine(err))
	}
	if err := checkNumbers(x); err != nil {
		return nil, Faultf(ReasonSchemaInvalid, "the schema is invalid: %v", err)
	}
	sh := shapeOf(x)
	if sh.depth > maxSchemaDepth {
		return nil, Faultf(ReasonSchemaInvalid, "the schema is invalid: it is nested more than %d deep", maxSchemaDepth)
	}
	if sh.objects > maxSchemaObjects {
		return nil, Faultf(ReasonSchemaInvalid, "the schema is invalid: it has %d objects, more than %d", sh.objects, maxSchemaObjects)
	}
	left := maxPatternsSize
	pattern, err := schemaPatterns(x, "", &left)
	if err != nil {
		return nil, Faultf(ReasonSchemaInvalid, "the schema is invalid: %v", err)
	}
	m := &meter{}
	c := jsonschema.NewCompiler()
	c.RegisterExtension("cost", nil, m)
	c.Draft = jsonschema.Draft2020
	c.AssertFormat = true // since 2019-09 it is an annotation otherwise
	// The library opens file:// and http:// by default; a schema comes from a
	// tenant, so nothing outside its own text is ever read.
	c.LoadURL = func(u string) (io.ReadCloser, error) {
		return nil, fmt.Errorf("external reference %q is refused: a schema may only refer into itself", u)
	}
	if err := c.AddResource(schemaURL, strings.NewReader(string(text))); err != nil {
		return nil, Faultf(ReasonSchemaInvalid, "the schema is not JSON: %s", firstLine(err))
	}
	s, err := c.Compile(schemaURL)
	if err != nil {
		return nil, Faultf(ReasonSchemaInvalid, "%s", schemaMessage(err))
	}
	return &Schema{s: s, objects: sh.objects, unique: hasUnique(x), pattern: pattern, meter: m}, nil
}

func schemaMessage(err error) string {
	if se, ok := errors.AsType[*jsonschema.SchemaError](err); ok && se.Err != nil {
		if ve, ok := errors.AsType[*jsonschema.ValidationError](se.Err); ok {
			return "the schema is invalid: " + describeSchema(ve)
		}
		err = se.Err
	}
	return "the schema is invalid: " + strings.ReplaceAll(firstLine(err), schemaURL, "")
}

// Validate checks one JSON value. The error names the JSON pointer of the value
// and the rule that it breaks; it never quotes the value.
func (s *Schema) Validate(value json.RawMessage) error {
	x, err := DecodeJSON(value)
	if err != nil {
		return fmt.Errorf("not JSON: %w", err)
	}
	if s == nil {
		return nil
	}
	if err := checkNumbers(x); err != nil {
		return err
	}
	sh := shapeOf(x)
	if sh.depth*s.objects > maxFrames {
		return fmt.Errorf("the value is nested too deeply for so large a schema")
	}
	if s.unique && sh.pairs > maxPairs {
		return fmt.Errorf("the value has too many items for a schema with uniqueItems")
	}
	if sh.longest*s.pattern > maxMatch {
		return fmt.Errorf("the value has too long a string for so large a pattern as the schema has")
	}
	err = s.validate(x, baseUnits+unitsPerByte*len(value))
	if ve, ok := errors.AsType[*jsonschema.ValidationError](err); ok {
		return errors.New(describe(ve))
	}
	return err
}

// validate is the library's Validate, for at most so many units.
func (s *Schema) validate(x any, most int) (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer func() {
		if r := recover(); r != nil {
			if r != errTooDear { //nolint:errorlint // the value of a panic
				panic(r)
			}
			err = errTooDear
		}
	}()
	s.meter.units, s.meter.most = 0, most
	return s.s.Validate(x)
}

// ruleOf returns the keyword at the end of its location. Two keywords have the name
// of a property and a number after them.
func ruleOf(location string) string {
	for _, k := range []string{"dependentRequired", "dependencies"} {
		if strings.Contains(location, "/"+k+"/") {
			return k
		}
	}
	return location[strings.LastIndexByte(location, '/')+1:]
}

func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}
