package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/codeact-dev/codeact-operator/cmd/codeact/recipefile"
)

// newRecipe lists what an author does with recipes in files; each has a file of its own.
func newRecipe() *cobra.Command {
	c := &cobra.Command{
		Use:   "recipe",
		Short: "Check, test and render recipes that are kept in files",
		Long: `Check, test and render recipes that are kept in files.

A root is a folder of recipes, .starweaver/recipes where none is named. Each recipe
is a folder in it with

  recipe.toml        the manifest
  main.js            the program: JavaScript that declares function main(input)
  input.schema.json  the JSON Schema of the input, and whatever else the manifest names

The manifest's keys:

  version = 1
  name = "look_up"                      what the recipe is called as a tool
  description = "..."                   at most 8 KiB
  source = "main.js"                    the program, main.js without it
  source_digest = "sha256:..."          of exactly its bytes; another program is refused
  tools = ["get_item"]                  every tool that the program may call, at most 64
  input_schema = "input.schema.json"    {"type":"object"} without it
  output_schema = "output.schema.json"  any JSON without it
  tests = "tests"                       a file, or a folder of .json, .yaml and .toml files
  [limits]                              as in a Recipe: childCalls, wallClockMs, ...

Other keys are refused. Paths are seen from the recipe's folder and lead nowhere else.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_ = cmd.Help()
			return errors.New("recipe: name a subcommand")
		},
	}
	c.AddCommand(newRecipeLint(), newRecipeRender(), newRecipeDigest(), newRecipeNew(), newRecipeTest(), newRecipeFromRun())
	return c
}

// loadRoots reads every folder that was named, or the default one. A folder without
// any recipe is a mistake of who named it.
func loadRoots(ctx context.Context, dirs []string) ([]*recipefile.Root, error) {
	if len(dirs) == 0 {
		dirs = []string{recipefile.DefaultRoot}
	}
	var out []*recipefile.Root
	for _, dir := range dirs {
		root, err := recipefile.Load(ctx, dir)
		if err != nil {
			return nil, err
		}
		if len(root.Recipes)+len(root.Problems) == 0 {
			return nil, fmt.Errorf("%s holds no recipe: no folder in it has a %s", dir, recipefile.ManifestName)
		}
		out = append(out, root)
	}
	return out, nil
}
