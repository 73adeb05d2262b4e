//go:build unix

package recipefile

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestPipe has pipes that nobody ever writes to where files should be.
func TestPipe(t *testing.T) {
	for _, name := range []string{"a/recipe.toml", "a/main.js", "a/t.json"} {
		t.Run(name, func(t *testing.T) {
			root := tree(t, recipeWith("tests = \"t.json\"\n", "a/t.json", "{}"))
			path := filepath.Join(root, name)
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			if err := syscall.Mkfifo(path, 0o644); err != nil {
				t.Skip(err) // not every file system has pipes
			}
			if _, got := read(t, root, root); len(got) != 1 || got[0] != name+": it is no regular file" {
				t.Errorf("problems %q", got)
			}
		})
	}
}

func TestNameOfFolder(t *testing.T) {
	root := tree(t, recipeWith(""))
	bad := filepath.Join(root, "b\xff")
	if err := os.Mkdir(bad, 0o755); err != nil {
		t.Skip(err) // some file systems take no name that is not UTF-8
	}
	if err := os.WriteFile(filepath.Join(bad, ManifestName), []byte(minimal), 0o644); err != nil {
		t.Fatal(err)
	}
	names, problems := read(t, root, root)
	if len(names) != 1 || len(problems) != 1 || !strings.Contains(problems[0], "b\ufffd: the folder's name is not UTF-8") {
		t.Errorf("recipes %q, problems %q", names, problems)
	}
}
