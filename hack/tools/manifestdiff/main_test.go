package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCompare(t *testing.T) {
	const base = `
apiVersion: v1
kind: ConfigMap
metadata: {name: a, namespace: ns, labels: {app: x}}
data: {k: v}
---
apiVersion: v1
kind: Namespace
metadata: {name: ns}
`
	tests := map[string]struct {
		got     string
		want    []string // parts of the report; none: equal
		wantErr bool
	}{
		"the same": {got: base},
		"order, comments, namespace and Helm's marks": {got: `
# Source: x
kind: ConfigMap
apiVersion: v1
data:
  "k": "v"
metadata:
  labels: {helm.sh/chart: c-1, app.kubernetes.io/managed-by: Helm, app: x}
  namespace: ns
  name: a
---
# nothing here
---
`},
		"a value":                   {got: strings.Replace(base, "k: v", "k: w", 1), want: []string{"ConfigMap ns/a", `"w"`}},
		"a label":                   {got: strings.Replace(base, "app: x", "app: z", 1), want: []string{`"z"`}},
		"a label that is no string": {got: strings.Replace(base, "app: x", "app: true", 1), want: []string{"bool(true)"}},
		"a name":                    {got: strings.Replace(base, "name: a", "name: b", 1), want: []string{"ConfigMap ns/a", "ConfigMap ns/b"}},
		"twice":                     {got: base + "---" + base, wantErr: true},
		"not YAML":                  {got: "{", wantErr: true},
		"no object":                 {got: "", want: []string{"ConfigMap ns/a"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			want, got := filepath.Join(dir, "want"), filepath.Join(dir, "got")
			for f, content := range map[string]string{want: base, got: tc.got} {
				if err := os.WriteFile(f, []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			report, err := compare(want, got)
			if (err != nil) != tc.wantErr {
				t.Fatalf("error %v, want error %v", err, tc.wantErr)
			}
			if len(tc.want) == 0 && report != "" {
				t.Errorf("want no difference, got\n%s", report)
			}
			for _, part := range tc.want {
				if !strings.Contains(report, part) {
					t.Errorf("the report lacks %q:\n%s", part, report)
				}
			}
		})
	}
}
