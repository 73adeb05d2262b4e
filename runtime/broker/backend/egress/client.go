// Package egress is what every request to a tool has in common: where it may go,
// who must answer, and what it carries of the run.
package egress

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"sync/atomic"
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
	// CAFile holds the root certificates that the server must be known by, as PEM;
	// it is read anew for every request. Empty means the public ones.
	CAFile string
	// HTTPS says that there is a certificate to verify.
	HTTPS bool
}

// Client returns a client that sends what it is told and nothing else: no
// cookies, no redirects, no decompression. Every address that it dials is
// checked against the policy after its name was resolved. What its errors mean
// is Failed's to say.
//
// Every request gets a connection of its own. On a kept connection that the
// server closes in the same moment, a request is either lost without proof, or
// sent again by net/http, which takes an Idempotency-Key for permission to do so.
func Client(t Target) *http.Client { return newClient(t, nil) }

// newClient takes a resolver for tests; nil is the system's.
func newClient(t Target, r *net.Resolver) *http.Client {
	if t.HTTPS && t.CAFile == "" {
		trustRoots()
	}
	var only http.Protocols
	only.SetHTTP1(true)
	dialer := &net.Dialer{Timeout: dialTimeout, Resolver: r, ControlContext: control(t.Policy)}
	d := &door{target: t, transport: &http.Transport{
		DialContext:            dialer.DialContext,
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12},
		DisableKeepAlives:      true,
		DisableCompression:     true,
		Protocols:              &only,
		TLSHandshakeTimeout:    dialTimeout,
		MaxResponseHeaderBytes: maxHeaderBytes,
		OnProxyConnectResponse: tunnelled,
	}}
	if t.Policy.ProxyFromEnvironment {
		d.transport.Proxy = proxyFor(t.Policy)
	}
	return &http.Client{
		Transport:     d,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// door is the transport with the root certificates of the moment.
type door struct {
	target    Target
	transport *http.Transport
}

// RoundTrip implements http.RoundTripper.
func (d *door) RoundTrip(r *http.Request) (*http.Response, error) {
	if d.target.CAFile == "" || r.URL.Scheme != "https" {
		return spoken(d.transport.RoundTrip(r))
	}
	pool, err := readRoots(d.target.CAFile)
	if err != nil {
		if r.Body != nil {
			_ = r.Body.Close()
		}
		return nil, err
	}
	// No connection is kept, so a transport of its own costs a request nothing.
	once := d.transport.Clone()
	once.TLSClientConfig.RootCAs = pool
	return spoken(once.RoundTrip(r))
}

// errSwitched is a server that goes on in another protocol.
var errSwitched = errors.New("the server switched the protocol")

// spoken refuses a response that is none: behind a 101, net/http hands over the
// connection itself, and no context ends a read from that.
func spoken(res *http.Response, err error) (*http.Response, error) {
	if err != nil || res.StatusCode != http.StatusSwitchingProtocols {
		return res, err
	}
	_ = res.Body.Close()
	return nil, errSwitched
}

// Watch returns a context for one request, and whether a byte of that request
// can have left: it cannot before there is a connection for it.
func Watch(ctx context.Context) (watched context.Context, sent func() bool) {
	var got atomic.Bool
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { got.Store(true) },
	}), got.Load
}

// proxyFor finds the proxy of a request in the environment, as net/http does. A
// request that it sends directly is checked when it is dialled.
func proxyFor(p contract.OperatorPolicy) func(*http.Request) (*url.URL, error) {
	return func(r *http.Request) (*url.URL, error) {
		proxy, err := http.ProxyFromEnvironment(r)
		if err != nil {
			return nil, errProxy // the error's own text holds the variable's value
		}
		if proxy == nil {
			return nil, nil
		}
		return proxy, checkHost(r.URL.Hostname(), p)
	}
}

// tunnelled refuses a tunnel that the proxy did not open, with an error that
// Failed knows.
func tunnelled(_ context.Context, _ *url.URL, _ *http.Request, res *http.Response) error {
	if res.StatusCode != http.StatusOK {
		return &tunnelError{res.StatusCode}
	}
	return nil
}
