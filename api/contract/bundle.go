package contract

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// BundleVersion is the schema version of the bundle. A runtime refuses any other.
const BundleVersion = "codeact.dev/bundle.v1"

// BundleKey is the key of the bundle in its ConfigMap, and so its file name.
const BundleKey = "bundle.json"

// Bundle is all that one execution generation may see: it is written once, into
// an immutable ConfigMap, and addressed by the digest of its canonical bytes.
// It never holds a credential.
type Bundle struct {
	Version string `json:"version"`
	Run     RunRef `json:"run"`
	// Labels are the run's, and only there when a tool is granted run.labels.
	Labels map[string]string `json:"labels,omitempty"`
	// Recipe is set when the program comes from a Recipe.
	Recipe *PinnedRecipe `json:"recipe,omitempty"`
	// Source is the program text; SourceDigest is the digest of exactly its bytes.
	Source       string `json:"source"`
	SourceDigest string `json:"sourceDigest"`
	// Input is the argument of main, as JSON.
	Input json.RawMessage `json:"input"`
	// InputSchema and OutputSchema are the recipe's; empty means any JSON.
	InputSchema  json.RawMessage `json:"inputSchema,omitempty"`
	OutputSchema json.RawMessage `json:"outputSchema,omitempty"`
	Limits       Limits          `json:"limits"`
	// TimeoutMs bounds the whole run, in milliseconds from the pod's claim.
	TimeoutMs int64        `json:"timeoutMs"`
	Tools     []PinnedTool `json:"tools"`
}

// RunRef names one execution generation of one run.
type RunRef struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	UID       string `json:"uid"`
	// Generation is the execution generation, from 1.
	Generation int64 `json:"generation"`
}

// CallID returns the id of a child call, which is its idempotency key:
// <run UID>:<execution generation>:<sequence from 1>.
func (r RunRef) CallID(seq int64) string { return fmt.Sprintf("%s:%d:%d", r.UID, r.Generation, seq) }

// PinnedRecipe says which Recipe the program was taken from.
type PinnedRecipe struct {
	Name           string `json:"name"`
	UID            string `json:"uid"`
	Generation     int64  `json:"generation"`
	ToolName       string `json:"toolName"`
	ManifestDigest string `json:"manifestDigest"`
}

// PinnedTool is one tool of the projection with all that a call needs.
type PinnedTool struct {
	Tool Tool `json:"tool"`
	// Digest is the digest of the declaration.
	Digest  string   `json:"digest"`
	Grant   GrantRef `json:"grant"`
	Backend Backend  `json:"backend"`
	Auth    Auth     `json:"auth"`
	// MaxCalls bounds the calls of this tool in the run; 0 means no bound of its own.
	MaxCalls int64 `json:"maxCalls,omitempty"`
	// TimeoutMs bounds one call, in milliseconds.
	TimeoutMs int64 `json:"timeoutMs"`
}

// Has reports whether the broker may project the capability into calls of t. A
// pinned tool is granted exactly what its declaration asks for.
func (t PinnedTool) Has(capability string) bool {
	return slices.Contains(t.Tool.Capabilities, capability)
}

// GrantRef names the ToolGrant that gave the authority.
type GrantRef struct {
	Name       string `json:"name"`
	UID        string `json:"uid"`
	Generation int64  `json:"generation"`
}

// Backend says where a tool is. Exactly one field is set.
type Backend struct {
	HTTP *HTTPBackend `json:"http,omitempty"`
}

// HTTPBackend is a tool that answers a POST of its arguments with its result.
type HTTPBackend struct {
	URL string `json:"url"`
}

// AuthType says what kind of credential a call carries.
type AuthType string

// The kinds of credential.
const (
	AuthNone                AuthType = "None"
	AuthSecretRef           AuthType = "SecretRef"
	AuthServiceAccountToken AuthType = "ServiceAccountToken"
)

// Auth says which credential a call carries; the credential itself is a file
// that is read at call time and never part of a bundle.
type Auth struct {
	Type AuthType `json:"type"`
	// SecretName and SecretKey name the Secret's entry (AuthSecretRef).
	SecretName string `json:"secretName,omitempty"`
	SecretKey  string `json:"secretKey,omitempty"`
	// Audience is the token's (AuthServiceAccountToken).
	Audience string `json:"audience,omitempty"`
}

// DefaultCallTimeout bounds one child call when its grant does not say.
const DefaultCallTimeout = 10 * time.Second

// Encode returns the canonical bytes of b and their digest. A bundle of more
// than MaxBundleBytes is a BundleTooLarge fault.
func (b Bundle) Encode() ([]byte, string, error) {
	b.Version = BundleVersion
	if len(b.Input) == 0 {
		b.Input = json.RawMessage("null")
	}
	out, err := Canonical(b)
	if err != nil {
		return nil, "", err
	}
	if len(out) > MaxBundleBytes {
		return nil, "", Faultf(ReasonBundleTooLarge, "the run's bundle (program, input, schemas) has %d bytes, more than %d; shorten the input or the schemas", len(out), MaxBundleBytes)
	}
	return out, Digest(out), nil
}

// DecodeBundle reads the bytes of a bundle whose digest must be want. Nothing of
// it is read before the digest holds; a bundle of another version, with unknown
// fields, or whose inner digests do not hold is refused as DigestMismatch.
func DecodeBundle(raw []byte, want string) (Bundle, error) {
	if !ValidDigest(want) {
		return Bundle{}, Faultf(ReasonDigestMismatch, "the expected bundle digest is malformed")
	}
	if got := Digest(raw); got != want {
		return Bundle{}, Faultf(ReasonDigestMismatch, "the bundle's digest is %s, not the pinned %s", got, want)
	}
	var b Bundle
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&b); err != nil {
		return Bundle{}, Faultf(ReasonDigestMismatch, "the bundle cannot be read: %v", err)
	}
	if b.Version != BundleVersion {
		return Bundle{}, Faultf(ReasonDigestMismatch, "the bundle has version %q; this runtime reads %q", b.Version, BundleVersion)
	}
	if Digest([]byte(b.Source)) != b.SourceDigest {
		return Bundle{}, Faultf(ReasonDigestMismatch, "the bundle's source does not have its own source digest")
	}
	for _, t := range b.Tools {
		got, err := t.Tool.Digest()
		if err != nil || got != t.Digest {
			return Bundle{}, Faultf(ReasonDigestMismatch, "the declaration of tool %s does not have its pinned digest", t.Tool.Name)
		}
	}
	return b, nil
}
