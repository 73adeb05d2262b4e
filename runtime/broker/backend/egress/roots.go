package egress

import (
	"crypto/x509"
	"io"
	"os"
	"sync"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// trustRoots gives the process root certificates where the system has none, as
// in the image; the system's own are used otherwise (x509.SetFallbackRoots). It
// takes 5 ms, which a runtime without a tool behind https need not spend.
var trustRoots = sync.OnceFunc(func() { x509.SetFallbackRoots(roots()) })

// roots are Mozilla's, with the constraints that it puts on some.
func roots() *x509.CertPool {
	pool := x509.NewCertPool()
	for r := range bundle.Roots() {
		cert, err := x509.ParseCertificate(r.Certificate)
		switch {
		case err != nil: // a test holds the bundle to be readable
		case r.Constraint != nil:
			pool.AddCertWithConstraint(cert, r.Constraint)
		default:
			pool.AddCert(cert)
		}
	}
	return pool
}

// maxRootsBytes bounds the file of root certificates: a ConfigMap's bound.
const maxRootsBytes = 1 << 20

// readRoots reads the root certificates of a tool. Nobody but their issuers is
// trusted then. The error is a *TrustError.
func readRoots(file string) (*x509.CertPool, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, &TrustError{"could not be read"}
	}
	defer func() { _ = f.Close() }()
	text, err := io.ReadAll(io.LimitReader(f, maxRootsBytes+1))
	switch {
	case err != nil:
		return nil, &TrustError{"could not be read"}
	case len(text) > maxRootsBytes:
		return nil, &TrustError{"is larger than 1 MiB"}
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, &TrustError{"holds no certificate"}
	}
	return pool, nil
}
