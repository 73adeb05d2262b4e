package egress

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/runtime/broker"
)

// errProxy is an environment that names no usable proxy.
var errProxy = errors.New("the proxy that the environment names cannot be used")

// TrustError says that the root certificates of a tool are not at hand. Nothing
// was sent.
type TrustError struct{ why string }

// Error implements error.
func (e *TrustError) Error() string { return "its CA bundle " + e.why + ", so nothing was sent" }

// tunnelError is a proxy's answer to CONNECT that is not 200.
type tunnelError struct{ status int }

func (e *tunnelError) Error() string {
	return fmt.Sprintf("its proxy refused the connection with status %d", e.status)
}

// Failed says what the error of one request through a Client means. Sent says
// whether a byte of the request can have left (see Watch). The message is for
// the program: it names the kind of the failure and never a URL or an address.
func Failed(err error, sent bool) *broker.Failure {
	f := &broker.Failure{Message: explain(err)}
	if !sent {
		f.Proof = broker.NeverSent
	}
	var (
		trust   *TrustError
		address *AddressError
	)
	switch {
	case errors.As(err, &trust):
		f.Reason, f.Final = contract.ReasonBrokerUnavailable, true
	case errors.As(err, &address), errors.Is(err, errProxy):
		f.Final = true
	}
	return f
}

// explain names the kind of a failure; the error's own text may hold the URL.
func explain(err error) string {
	var (
		dns     *net.DNSError
		trust   *TrustError
		address *AddressError
		tunnel  *tunnelError
	)
	switch {
	case errors.As(err, &trust):
		return trust.Error()
	case errors.As(err, &address):
		own := *address
		own.Proxy = own.Proxy || viaProxy(err)
		return own.Error()
	case errors.As(err, &tunnel):
		return tunnel.Error()
	case errors.Is(err, errProxy):
		return errProxy.Error()
	case errors.As(err, &dns):
		return "its host name could not be resolved"
	case isRefused(err):
		return "its server refused the connection"
	case isTimeout(err):
		return "there was no answer in time"
	case isTLS(err):
		return "its certificate or TLS handshake was not accepted"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), isReset(err):
		return "the connection was lost"
	case errors.Is(err, context.Canceled):
		return "the call was cancelled"
	}
	return "its server could not be reached, or did not speak HTTP"
}

// viaProxy reports whether dialling the proxy failed, and not the tool.
func viaProxy(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "proxyconnect"
}

func isRefused(err error) bool { return errors.Is(err, syscall.ECONNREFUSED) }

func isReset(err error) bool {
	return errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

func isTimeout(err error) bool {
	var t net.Error
	return errors.As(err, &t) && t.Timeout()
}

func isTLS(err error) bool {
	var (
		verify *tls.CertificateVerificationError
		record tls.RecordHeaderError
		author x509.UnknownAuthorityError
		alert  *net.OpError // crypto/tls wraps the alerts of both sides so
	)
	return errors.As(err, &verify) || errors.As(err, &record) || errors.As(err, &author) ||
		errors.As(err, &alert) && (alert.Op == "remote error" || alert.Op == "local error")
}
