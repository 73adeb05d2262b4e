package toolimport

import (
	"strings"
	"testing"

	"github.com/codeact-dev/codeact-operator/cmd/codeact/openapi"
)

// TestLongPrefix leaves no room for a second name: that is an error, and comes to an end.
func TestLongPrefix(t *testing.T) {
	d, err := openapi.Read([]byte("openapi: 3.0.0\nservers: [{url: https://a.example}]\npaths: {/a: {get: {}}, /b: {get: {}}}"))
	if err != nil {
		t.Fatal(err)
	}
	o := OpenAPIOptions{Options: Options{Prefix: strings.Repeat("p", maxName)}}
	if _, err := FromOpenAPI(d, o); err == nil || !strings.Contains(err.Error(), "would both be the tool") {
		t.Errorf("error %v", err)
	}
}
