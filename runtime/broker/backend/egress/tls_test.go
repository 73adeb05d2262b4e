package egress

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/runtime/broker"
)

// authority is a CA of the test's own.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

func newAuthority(t *testing.T, name string) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &authority{cert, key, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}
}

// issue gives a server certificate; change may spoil it.
func (a *authority) issue(t *testing.T, change func(*x509.Certificate)) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "tool"}, DNSNames: []string{"tool.example"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if change != nil {
		change(tmpl)
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, a.cert, &key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// secure is a TLS server that counts its requests.
func secure(t *testing.T, cert tls.Certificate, change func(*tls.Config)) (url string, requests *atomic.Int64) {
	t.Helper()
	requests = &atomic.Int64{}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, "1")
	}))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.TLS = &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS10}
	if change != nil {
		change(s.TLS)
	}
	s.StartTLS()
	t.Cleanup(s.Close)
	return s.URL, requests
}

func file(t *testing.T, text []byte) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), contract.CAFile)
	if err := os.WriteFile(name, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestCertificates(t *testing.T) {
	ours, theirs := newAuthority(t, "ours"), newAuthority(t, "theirs")
	good := ours.issue(t, nil)
	tests := map[string]struct {
		cert   tls.Certificate
		server func(*tls.Config)
		ca     []byte
		wantOK bool
	}{
		"known":                    {cert: good, ca: ours.pem, wantOK: true},
		"one of two roots":         {cert: good, ca: append(append([]byte{}, theirs.pem...), ours.pem...), wantOK: true},
		"one root is unreadable":   {cert: good, ca: append([]byte("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"), ours.pem...), wantOK: true},
		"TLS 1.2":                  {cert: good, server: func(c *tls.Config) { c.MaxVersion = tls.VersionTLS12 }, ca: ours.pem, wantOK: true},
		"TLS 1.1":                  {cert: good, server: func(c *tls.Config) { c.MaxVersion = tls.VersionTLS11 }, ca: ours.pem},
		"another issuer":           {cert: theirs.issue(t, nil), ca: ours.pem},
		"only the public roots":    {cert: good},
		"expired":                  {cert: ours.issue(t, func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) }), ca: ours.pem},
		"not yet valid":            {cert: ours.issue(t, func(c *x509.Certificate) { c.NotBefore = time.Now().Add(time.Minute) }), ca: ours.pem},
		"another host":             {cert: ours.issue(t, func(c *x509.Certificate) { c.IPAddresses, c.DNSNames = nil, []string{"other.example"} }), ca: ours.pem},
		"only a common name":       {cert: ours.issue(t, func(c *x509.Certificate) { c.IPAddresses, c.DNSNames, c.Subject.CommonName = nil, nil, "127.0.0.1" }), ca: ours.pem},
		"not for servers":          {cert: ours.issue(t, func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth} }), ca: ours.pem},
		"wants a certificate, too": {cert: good, server: func(c *tls.Config) { c.ClientAuth, c.MaxVersion = tls.RequireAnyClientCert, tls.VersionTLS12 }, ca: ours.pem},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			url, requests := secure(t, tc.cert, tc.server)
			target := Target{Policy: loopback, HTTPS: true}
			if tc.ca != nil {
				target.CAFile = file(t, tc.ca)
			}
			f := ask(t, Client(target), url)
			if (f == nil) != tc.wantOK || (requests.Load() == 1) != tc.wantOK {
				t.Fatalf("failure %+v, %d requests", f, requests.Load())
			}
			if f != nil && (f.Proof != broker.NeverSent || f.Reason != "" || !strings.Contains(f.Message, "certificate or TLS")) {
				t.Errorf("failure %+v, want NeverSent", f)
			}
		})
	}
}

func TestUnusableCASendsNothing(t *testing.T) {
	ours := newAuthority(t, "ours")
	url, requests := secure(t, ours.issue(t, nil), nil)
	tests := map[string]string{
		"no file":         filepath.Join(t.TempDir(), "absent"),
		"a folder":        t.TempDir(),
		"empty":           file(t, nil),
		"no certificate":  file(t, []byte("hello")),
		"another block":   file(t, []byte("-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n")),
		"larger than any": file(t, append(append([]byte{}, ours.pem...), make([]byte, maxRootsBytes)...)),
	}
	for name, ca := range tests {
		t.Run(name, func(t *testing.T) {
			f := ask(t, Client(Target{Policy: loopback, HTTPS: true, CAFile: ca}), url)
			if f == nil || f.Proof != broker.NeverSent || f.Reason != contract.ReasonBrokerUnavailable || !strings.HasPrefix(f.Message, "its CA bundle ") || strings.Contains(f.Message, ca) {
				t.Errorf("failure %+v, want BrokerUnavailable and NeverSent", f)
			}
		})
	}
	if n := requests.Load(); n != 0 {
		t.Errorf("%d requests arrived", n)
	}
}

// TestRotatedCA: the roots of the moment count for one client, also those that
// are gone.
func TestRotatedCA(t *testing.T) {
	old, next := newAuthority(t, "old"), newAuthority(t, "next")
	oldURL, _ := secure(t, old.issue(t, nil), nil)
	nextURL, _ := secure(t, next.issue(t, nil), nil)
	ca := file(t, old.pem)
	c := Client(Target{Policy: loopback, HTTPS: true, CAFile: ca})
	for i, step := range []struct {
		write            []byte
		wantOld, wantNew bool
	}{{old.pem, true, false}, {append(append([]byte{}, old.pem...), next.pem...), true, true}, {next.pem, false, true}, {nil, false, false}, {old.pem, true, false}} {
		if err := os.WriteFile(ca, step.write, 0o600); err != nil {
			t.Fatal(err)
		}
		if f := ask(t, c, oldURL); (f == nil) != step.wantOld {
			t.Errorf("step %d, old: %v", i, f)
		}
		if f := ask(t, c, nextURL); (f == nil) != step.wantNew {
			t.Errorf("step %d, new: %v", i, f)
		}
	}
}
