package contract

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
)

// DigestPattern is the one spelling of a digest: sha256 in lower-case hex.
const DigestPattern = `^sha256:[0-9a-f]{64}$`

var digestRE = regexp.MustCompile(DigestPattern)

// Digest returns the digest of exactly these bytes.
func Digest(b []byte) string {
	s := sha256.Sum256(b)
	return "sha256:" + hex.EncodeToString(s[:])
}

// ValidDigest reports whether s is spelled as DigestPattern says.
func ValidDigest(s string) bool { return digestRE.MatchString(s) }
