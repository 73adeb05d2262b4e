package v1alpha1_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

// TestHeadersOfTheRuntime: the rule of the CRD refuses just the headers that
// contract.RuntimeHeader names.
func TestHeadersOfTheRuntime(t *testing.T) {
	text, err := os.ReadFile("toolgrant_backend_types.go")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`self\.lowerAscii\(\) in \[([^\]]*)\]\) && ([^"]*)"`).FindStringSubmatch(string(text))
	if m == nil {
		t.Fatal("the rule for header names is gone: mend this test")
	}
	n := 0
	for quoted := range strings.SplitSeq(m[1], ", ") {
		name := strings.Trim(quoted, "'")
		if n++; !contract.RuntimeHeader(name) || !contract.RuntimeHeader(strings.ToUpper(name)) {
			t.Errorf("the CRD refuses %s, the contract does not", name)
		}
	}
	if n != len(contract.RuntimeHeaders()) {
		t.Errorf("the CRD refuses %d headers, the contract %d", n, len(contract.RuntimeHeaders()))
	}
	for _, prefix := range []string{"codeact-", "proxy-"} {
		if !strings.Contains(m[0], "startsWith('"+prefix+"')") && !strings.Contains(string(text), "startsWith('"+prefix+"')") || !contract.RuntimeHeader(prefix+"x") {
			t.Errorf("the prefix %s is not refused by both", prefix)
		}
	}
}
