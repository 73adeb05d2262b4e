package mcp

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
	"syscall"
)

// explain names the kind of a failure; the error's own text may hold the URL.
func explain(err error) string {
	var dns *net.DNSError
	switch {
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
		alert  tls.AlertError
		author x509.UnknownAuthorityError
	)
	return errors.As(err, &verify) || errors.As(err, &record) || errors.As(err, &alert) || errors.As(err, &author)
}

// watch returns a context for one request, and whether a byte of it can have left.
func watch(ctx context.Context) (watched context.Context, sent func() bool) {
	var got atomic.Bool
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { got.Store(true) },
	}), got.Load
}

func (s *session) scrub(text string) string {
	for _, secret := range s.sentSecrets() {
		text = strings.ReplaceAll(text, secret, "[credential]")
	}
	return text
}

func (s *session) holdsSecret(text []byte) bool {
	for _, secret := range s.sentSecrets() {
		if strings.Contains(string(text), secret) {
			return true
		}
	}
	return false
}
