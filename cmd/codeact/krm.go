package main

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/codeact-dev/codeact-operator/cmd/codeact/krm"
)

func newKRM() *cobra.Command {
	return &cobra.Command{
		Use:   "krm",
		Short: "Make Recipes of recipe folders as a KRM function, for kustomize",
		Long: `Make Recipes of recipe folders as a KRM function, for kustomize.

A ResourceList is read from the standard input and written to the standard output
with the Recipes of the folders that its functionConfig names. A Recipe that is in
the list already gets the spec of the files and keeps its metadata; all other items
are as they were. The functionConfig, as a generator or transformer of kustomize:

  apiVersion: krm.codeact.dev/v1alpha1
  kind: RecipeFolders
  metadata:
    name: recipes
    annotations:
      config.kubernetes.io/function: |
        exec:
          path: codeact
          args: [krm]
  spec:
    dirs: [recipes]             # roots or single recipes; .starweaver/recipes without it
    namespace: team-a           # none without it
    labels: {team: a}
    limits: {childCalls: 20}    # the operator's ceilings, where not the default

  kustomize build --enable-alpha-plugins --enable-exec

Folders are seen from the working folder and do not lead out of it. What lint finds
becomes results with file, line and column; after an error no item is changed.

Exit codes: 0 no errors, 1 errors, 2 usage.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			folder, err := os.OpenRoot(".")
			if err != nil {
				return fmt.Errorf("krm: %w", err)
			}
			defer func() { _ = folder.Close() }()
			f := &krm.Function{Folder: folder, Now: time.Now()}
			err = f.Run(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr())
			if errors.Is(err, krm.ErrFailed) {
				return errFailed
			}
			return err
		},
	}
}
