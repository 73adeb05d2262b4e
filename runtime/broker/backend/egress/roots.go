package egress

import (
	"crypto/x509"
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
