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
	// Labels are the run's, and only there when a tool is granted run.labels or
	// has constraints.
	Labels map[string]string `json:"labels,omitempty"`
	// Recipe is set when the program comes from a Recipe.
	Recipe *PinnedRecipe `json:"recipe,omitempty"`
	// Agent is set when a model writes the programs; Source is empty then.
	Agent *PinnedAgent `json:"agent,omitempty"`
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
	// Catalogue is what the author of a program that nobody has reviewed could know
	// of its tools; nil for a Recipe's.
	Catalogue *PinnedCatalogue `json:"catalogue,omitempty"`
	// Transcript says whether the run's contents are kept; empty is Full.
	Transcript Transcript `json:"transcript,omitempty"`
	// TraceParent is the W3C traceparent of whoever asked for the run, or "".
	TraceParent string `json:"traceParent,omitempty"`
	// Operator is what the operator's administrator decided for this run.
	Operator OperatorPolicy `json:"operator"`
	// CodeAct lets programs run, Recipes those of Recipes; see CheckEnabled.
	CodeAct Switch `json:"codeAct"`
	Recipes Switch `json:"recipes"`
}

// OperatorPolicy is the operator's part in how a run reaches its tools. Its zero
// value is the closed one.
type OperatorPolicy struct {
	// AllowLoopback and AllowLinkLocal let tools have such an address.
	AllowLoopback  bool `json:"allowLoopback,omitempty"`
	AllowLinkLocal bool `json:"allowLinkLocal,omitempty"`
	// ProxyFromEnvironment lets calls go through the proxies that the pod's
	// environment names.
	ProxyFromEnvironment bool `json:"proxyFromEnvironment,omitempty"`
	// WarnOnDrift calls an MCP tool whose declaration is no longer the pinned one,
	// and says so, instead of refusing it.
	WarnOnDrift bool `json:"warnOnDrift,omitempty"`
	// TraceContent puts arguments and results into the spans of calls.
	TraceContent bool `json:"traceContent,omitempty"`
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
	// TimeoutMs bounds one attempt of a call, in milliseconds.
	TimeoutMs int64 `json:"timeoutMs"`
	// Retry says how often a call is tried; nil is once.
	Retry *Retry `json:"retry,omitempty"`
	// Constraints must hold for every call, ResultConstraints for every result.
	Constraints       []Constraint `json:"constraints,omitempty"`
	ResultConstraints []Constraint `json:"resultConstraints,omitempty"`
	// Direct says that the model may call the tool itself (ProtocolTools).
	Direct bool `json:"direct,omitempty"`
	// NotFromCode keeps the tool from the programs of the run or of its model. A
	// recipe of the agent that declares the tool may call it nevertheless.
	NotFromCode bool `json:"notFromCode,omitempty"`
	// Approval says whether somebody must approve each direct call; empty is Never.
	Approval Approval `json:"approval,omitempty"`
}

// Retry says how often a call that is not Effectful is tried. Every attempt has
// the same id.
type Retry struct {
	// Attempts counts the first one, too, from 2 to 5.
	Attempts int64 `json:"attempts"`
	// BackoffMs is the wait before the second attempt, in milliseconds; it doubles
	// with each further one.
	BackoffMs int64 `json:"backoffMs"`
}

// Constraint is one condition in CEL and what to say when it does not hold.
type Constraint struct {
	Expression string `json:"expression"`
	Message    string `json:"message,omitempty"`
}

// Has reports whether the broker may project the capability into calls of t. A
// pinned tool is granted exactly what its declaration asks for.
func (t PinnedTool) Has(capability string) bool {
	return slices.Contains(t.Tool.Capabilities, capability)
}

// GrantRef names the ToolGrant that gave the authority.
type GrantRef struct {
	// Namespace is empty for a grant of the run's own namespace.
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
	UID        string `json:"uid"`
	Generation int64  `json:"generation"`
}

// Backend says where a tool is. Exactly one field is set.
type Backend struct {
	HTTP *HTTPBackend `json:"http,omitempty"`
	MCP  *MCPBackend  `json:"mcp,omitempty"`
	// Model is never a tool's in a bundle: it becomes the bundle's PinnedModel.
	Model *ModelBackend `json:"model,omitempty"`
	// CA is the root certificates that the server must be known by; nil means the
	// public ones.
	CA *CABundle `json:"ca,omitempty"`
}

// CABundle names the ConfigMap entry with the PEM certificates. It is a mounted
// file that is read at call time.
type CABundle struct {
	ConfigMap string `json:"configMap"`
	Key       string `json:"key"`
}

// HTTPBackend is a tool behind one HTTP request a call.
type HTTPBackend struct {
	// URL is the address: in its path and query, {name} stands for the argument of
	// that name.
	URL string `json:"url"`
	// Method is POST when it is empty.
	Method HTTPMethod `json:"method,omitempty"`
	// Headers are sent with every call.
	Headers []HTTPHeader `json:"headers,omitempty"`
	// Response says how the body becomes the result; JSON when it is empty.
	Response ResponseForm `json:"response,omitempty"`
}

// HTTPMethod is the method of an HTTP tool's requests.
// +kubebuilder:validation:Enum=GET;POST;PUT;PATCH;DELETE
type HTTPMethod string

// HTTPHeader is one fixed header of an HTTP tool's requests.
type HTTPHeader struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// ResponseForm says how the body of an answer becomes the result.
// +kubebuilder:validation:Enum=JSON;Text
type ResponseForm string

// The forms of a response.
const (
	// ResponseJSON takes the body as JSON text.
	ResponseJSON ResponseForm = "JSON"
	// ResponseText makes one JSON string of the body, which must be UTF-8.
	ResponseText ResponseForm = "Text"
)

// MCPBackend is one tool of an MCP server that speaks streamable HTTP.
type MCPBackend struct {
	URL string `json:"url"`
	// Tool is the tool's name on that server.
	Tool string `json:"tool"`
}

// ModelBackend is a model behind an endpoint of OpenAI's form.
type ModelBackend struct {
	// URL is the base address, to which the paths of the API are added.
	URL string `json:"url"`
	// Model is the model's name at the endpoint.
	Model string   `json:"model"`
	API   ModelAPI `json:"api"`
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
	if b.Agent != nil && (b.Source != "" || b.Recipe != nil) {
		return Bundle{}, Faultf(ReasonDigestMismatch, "the bundle has an agent and a program beside it")
	}
	if b.Agent != nil {
		for _, r := range b.Agent.Recipes {
			if Digest([]byte(r.Source)) != r.SourceDigest {
				return Bundle{}, Faultf(ReasonDigestMismatch, "the source of recipe %s does not have its own source digest", r.Name)
			}
		}
	}
	for _, t := range b.Tools {
		got, err := t.Tool.Digest()
		if err != nil || got != t.Digest {
			return Bundle{}, Faultf(ReasonDigestMismatch, "the declaration of tool %s does not have its pinned digest", t.Tool.Name)
		}
	}
	return b, nil
}
