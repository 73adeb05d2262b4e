// Package egress is what every request to a tool has in common: where it may go,
// who must answer, and what it carries of the run.
package egress

import (
	"net"
	"net/http"
	"time"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

// UserAgent is what tools see as the client.
const UserAgent = "codeact-runtime"

const (
	maxHeaderBytes = 64 << 10
	dialTimeout    = 10 * time.Second
)

// Target says how a request may reach its server.
type Target struct {
	// Policy is the operator's.
	Policy contract.OperatorPolicy
	// CAFile holds the root certificates that the server must be known by; empty
	// means the public ones.
	CAFile string
	// HTTPS says that there is a certificate to verify.
	HTTPS bool
}

// Client returns a client that sends what it is told and nothing else: no
// cookies, no redirects, no decompression.
//
// Every request gets a connection of its own. On a kept connection that the
// server closes in the same moment, a request is either lost without proof, or
// sent again by net/http, which takes an Idempotency-Key for permission to do so.
func Client(t Target) *http.Client {
	if t.HTTPS {
		trustRoots()
	}
	var only http.Protocols
	only.SetHTTP1(true)
	return &http.Client{
		Transport: &http.Transport{
			DialContext:            (&net.Dialer{Timeout: dialTimeout}).DialContext,
			DisableKeepAlives:      true,
			DisableCompression:     true,
			Protocols:              &only,
			TLSHandshakeTimeout:    dialTimeout,
			MaxResponseHeaderBytes: maxHeaderBytes,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}
