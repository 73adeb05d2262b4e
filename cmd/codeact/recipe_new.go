package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/cmd/codeact/recipefile"
)

func newRecipeNew() *cobra.Command {
	var root string
	c := &cobra.Command{
		Use:   "new NAME [--root DIR]",
		Short: "Begin a recipe: a folder with a manifest, a program, a schema and a test",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return runRecipeNew(root, args[0], cmd.OutOrStdout())
		},
	}
	c.Flags().StringVar(&root, "root", recipefile.DefaultRoot, "root of the recipes; it is made where there is none")
	return c
}

// scaffold are the files of a new recipe; the manifest has its name put in.
var scaffold = []struct{ path, text string }{
	{recipefile.ManifestName, `version = 1
name = "%s"
description = "Says what it is for."
tools = ["get_item"]
input_schema = "input.schema.json"
tests = "tests"

[limits]
childCalls = 1
`},
	{recipefile.DefaultSource, `function main(input) {
  const item = tools.call("get_item", { id: input.id });
  return { id: input.id, name: item.name.trim() };
}
`},
	{"input.schema.json", `{
  "type": "object",
  "properties": { "id": { "type": "string", "minLength": 1 } },
  "required": ["id"],
  "additionalProperties": false
}
`},
	{"tests/trims_the_name.json", `{
  "input": { "id": "7" },
  "calls": [{ "tool": "get_item", "args": { "id": "7" }, "returns": { "name": " Lamp " } }],
  "expect": { "output": { "id": "7", "name": "Lamp" } }
}
`},
}

func runRecipeNew(root, name string, out io.Writer) error {
	switch {
	case !contract.ValidToolName(name):
		return fmt.Errorf("recipe new: the name %q may only hold letters, digits, '_' and '-', at most 64", contract.Truncate(name, 64))
	case contract.ReservedName(name):
		return fmt.Errorf("recipe new: the name %q belongs to the runtime", name)
	}
	dir := filepath.Join(root, name)
	if err := os.MkdirAll(root, 0o755); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o755); errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("recipe new: %s exists already", dir)
	} else if err != nil {
		return err
	}
	for _, f := range scaffold {
		text := f.text
		if f.path == recipefile.ManifestName {
			text = fmt.Sprintf(text, name)
		}
		path := filepath.Join(dir, filepath.FromSlash(f.path))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return err
		}
		if _, err := fmt.Fprintln(out, path); err != nil {
			return err
		}
	}
	return nil
}
