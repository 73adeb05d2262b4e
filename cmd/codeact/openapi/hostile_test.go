package openapi

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// within fails when f takes longer than what an honest document may take by far.
func within(t *testing.T, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	select {
	case <-done:
	case <-time.After(30 * time.Second):
		t.Fatal("it does not end")
	}
}

// TestLongLaughs has few aliases of a long text: few values, and far more text than
// there is memory.
func TestLongLaughs(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	for name, text := range map[string]string{
		"values": "a: &a " + long + "\nb: [" + strings.Repeat("*a, ", 1000) + "]\n",
		"keys":   "a: &a {? " + long + " : 1}\nb: [" + strings.Repeat("*a, ", 1000) + "]\n",
	} {
		if _, err := Read([]byte("openapi: 3.0.0\n" + text)); err == nil || !strings.Contains(err.Error(), "bytes of text") {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

// TestLargeSchemas refuses schemas that are too large to be one of a tool before a text
// is made of them.
func TestLargeSchemas(t *testing.T) {
	names := func(n int, format string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, format, i)
		}
		return b.String()
	}
	for name, schema := range map[string]string{
		"an enum":     "{enum: [" + names(300_000, "v%d, ") + "]}",
		"a default":   "{default: {x: {y: " + strings.Repeat("z", 2<<20) + "}}}",
		"a pattern":   "{pattern: " + strings.Repeat("z", 2<<20) + "}",
		"required":    "{type: object, required: [" + names(200_000, "v%d, ") + "]}",
		"read only":   "{type: object, properties: {" + names(100_000, "v%d: {readOnly: true}, ") + "}}",
		"long names":  "{properties: {" + names(4, "? "+strings.Repeat("z", 1<<19)+"%d : {}, ") + "}}",
		"many parts":  "{allOf: [" + names(100, "{required: [a%d]}, ") + "], required: [" + names(8193, "v%d, ") + "]}",
		"all of them": "{properties: {" + names(8000, "v%d: {type: string, description: "+strings.Repeat("z", 200)+"}, ") + "}}",
	} {
		t.Run(name, func(t *testing.T) {
			d := read(t, "openapi: 3.0.0\nx: "+schema)
			within(t, func() {
				if f, ok, _ := d.NewSchemas(ForRequest).Flatten(d.root["x"]); ok && len(f.Properties) > 4 {
					t.Errorf("it is flat, with %d properties", len(f.Properties))
				}
				if _, err := d.NewSchemas(ForRequest).Make(d.root["x"]); err == nil || err.Error() != "its schema is too large" {
					t.Errorf("error %v", err)
				}
			})
		})
	}
}

// TestServerVariables puts each default in once, and never into another one.
func TestServerVariables(t *testing.T) {
	var variables strings.Builder
	for i := range 40 {
		fmt.Fprintf(&variables, "v%02d: {default: '{v%02d}{v%02d}'}, ", i, i+1, i+1)
	}
	for name, tc := range map[string]struct{ url, variables, want, wantErr string }{
		"defaults":       {"https://{host}:{port}/{v}", "host: {default: a.example}, port: {default: 8443}, v: {default: v1}", "https://a.example:8443/v1", ""},
		"one is none":    {"https://{host}/{v}", "host: {default: a.example}", "", "variable without a default"},
		"one is open":    {"https://{host", "host: {default: a.example}", "", "variable without a default"},
		"an object":      {"https://a.example/{v}", "v: {default: {a: b}}", "https://a.example/", ""},
		"they double":    {"https://a.example/{v00}", variables.String() + "v40: {default: x}", "", "variable without a default"},
		"a long default": {"https://a.example/" + strings.Repeat("{v}", 5000), "v: {default: " + strings.Repeat("x", 5000) + "}", "", "longer than 8192 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			d := read(t, "openapi: 3.0.0\nservers: [{url: '"+tc.url+"', variables: {"+tc.variables+"}}]\npaths: {/a: {get: {}}}")
			within(t, func() {
				ops, _ := d.Operations()
				got, _, err := ops[0].Server()
				if got != tc.want || (err != nil) != (tc.wantErr != "") || err != nil && !strings.Contains(err.Error(), tc.wantErr) {
					t.Errorf("server %.80q, error %.200v; want %q, %q", got, err, tc.want, tc.wantErr)
				}
			})
		})
	}
}

func TestManyParameters(t *testing.T) {
	d := read(t, "openapi: 3.0.0\npaths: {/a: {get: {parameters: ["+strings.Repeat("{name: a, in: query}, ", 513)+"]}}}")
	ops, _ := d.Operations()
	if _, err := ops[0].Parameters(); err == nil || !strings.Contains(err.Error(), "more than 512 parameters") {
		t.Errorf("error %v", err)
	}
}
