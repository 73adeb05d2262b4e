package egress

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"

	"go.opentelemetry.io/otel/propagation"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

// The headers that projected capabilities send.
const (
	HeaderRunNamespace = "Codeact-Run-Namespace"
	HeaderRunName      = "Codeact-Run-Name"
	HeaderRunUID       = "Codeact-Run-Uid"
	// HeaderRunLabels carries a JSON object.
	HeaderRunLabels = "Codeact-Run-Labels"
)

// Headers returns the headers of the capabilities that the tool has, but for its
// credential.
func Headers(b contract.Bundle, t contract.PinnedTool) (http.Header, error) {
	h := http.Header{}
	if t.Has(contract.CapabilityRunIdentity) {
		h.Set(HeaderRunNamespace, b.Run.Namespace)
		h.Set(HeaderRunName, b.Run.Name)
		h.Set(HeaderRunUID, b.Run.UID)
	}
	if t.Has(contract.CapabilityRunLabels) {
		labels := b.Labels
		if labels == nil {
			labels = map[string]string{}
		}
		text, err := json.Marshal(labels)
		if err != nil {
			return nil, fmt.Errorf("the run's labels: %w", err)
		}
		h.Set(HeaderRunLabels, string(text))
	}
	return h, nil
}

// TraceContext puts the span of ctx into the headers of a call, as W3C Trace
// Context says, where the tool has the capability. Without a span it does nothing.
func TraceContext(ctx context.Context, t contract.PinnedTool, h http.Header) {
	if t.Has(contract.CapabilityTraceContext) {
		propagation.TraceContext{}.Inject(ctx, propagation.HeaderCarrier(h))
	}
}

// Credentials gives the credential of a tool at call time, so that a rotated
// one counts from the next call on.
type Credentials interface {
	Credential(tool string) ([]byte, error)
}

// Files reads credentials from the files that are mounted into the pod.
type Files struct {
	// Path says which file holds a tool's credential.
	Path func(tool string) string
}

// maxCredentialBytes bounds a credential; it has to fit a request header.
const maxCredentialBytes = 32 << 10

// Credential implements Credentials.
func (f Files) Credential(tool string) ([]byte, error) {
	file, err := os.Open(f.Path(tool))
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	return io.ReadAll(io.LimitReader(file, maxCredentialBytes+1))
}

// Bearer reads a credential and checks that a header can carry it. The error
// never holds a part of it.
func Bearer(c Credentials, tool string) (string, error) {
	if c == nil {
		return "", errors.New("there is no credential at hand, so nothing was sent")
	}
	raw, err := c.Credential(tool)
	if err != nil {
		return "", errors.New("its credential could not be read, so nothing was sent")
	}
	s := strings.TrimRight(string(raw), "\r\n")
	switch {
	case s == "":
		return "", errors.New("its credential is empty, so nothing was sent")
	case len(s) > maxCredentialBytes:
		return "", fmt.Errorf("its credential has more than %d bytes, so nothing was sent", maxCredentialBytes)
	case strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' }):
		return "", errors.New("its credential has a character that no header may carry, so nothing was sent")
	}
	return s, nil
}
