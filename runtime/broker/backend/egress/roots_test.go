package egress

import (
	"crypto/x509"
	"testing"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// TestRoots: every root of the bundle is in the pool, and the pool accepts a
// root as its own issuer, which an empty one would not.
func TestRoots(t *testing.T) {
	pool, n := x509.NewCertPool(), 0
	for r := range bundle.Roots() {
		cert, err := x509.ParseCertificate(r.Certificate)
		if err != nil {
			t.Fatal(err)
		}
		n++
		pool.AddCert(cert)
		if r.Constraint != nil {
			continue
		}
		o := x509.VerifyOptions{Roots: roots(), CurrentTime: cert.NotBefore, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}}
		if n == 1 {
			if _, err := cert.Verify(o); err != nil {
				t.Errorf("%s is no root: %v", cert.Subject, err)
			}
		}
	}
	if n < 100 {
		t.Fatalf("the bundle has %d roots", n)
	}
	if got := roots(); len(got.Subjects()) != len(pool.Subjects()) { //nolint:staticcheck // it is not the system's pool
		t.Errorf("%d roots in the pool, want %d", len(got.Subjects()), n) //nolint:staticcheck // as above
	}
}
