// Package toolgrant decides whether a ToolGrant may be used by runs.
package toolgrant

import (
	"fmt"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/api/v1alpha1"
)

// Snapshot is all that the decision sees.
type Snapshot struct {
	// Now is the time of the look.
	Now time.Time
	// Grant is the object.
	Grant *v1alpha1.ToolGrant
	// Others are ToolGrants of the same namespace. Only those that declare the
	// same tool matter.
	Others []v1alpha1.ToolGrant
}

// Verb says what a Plan does. The zero Verb is invalid.
type Verb string

// The verbs.
const (
	// VerbAccept makes the grant Ready.
	VerbAccept Verb = "Accept"
	// VerbRefuse says what is wrong with it.
	VerbRefuse Verb = "Refuse"
)

// Plan is the decision.
type Plan struct {
	Verb Verb
	// Fault is why the grant is refused.
	Fault *contract.Fault
	// Schema is the first schema that does not compile, or nil.
	Schema *contract.Fault
	// DeclarationDigest is the digest of the declaration, empty when it has none.
	DeclarationDigest string
	// RequeueAfter is when to look again, because of time alone; 0 is never.
	RequeueAfter time.Duration
}

// checks are asked in this order; the first fault refuses the grant.
var checks = []func(Snapshot) *contract.Fault{
	checkSchemas,
	checkSelector,
	checkConstraints,
	checkBackend,
	checkExpiry,
	checkName,
}

// longest is the longest wait for an end. Behind 292 years a Duration has no more
// room, and a millisecond more is one that is over.
const longest = 365 * 24 * time.Hour

// Decide judges one grant.
func Decide(s Snapshot) Plan {
	p := Plan{Verb: VerbAccept, Schema: checkSchemas(s)}
	if d, err := s.Grant.Declaration().Digest(); err == nil {
		p.DeclarationDigest = d
	}
	for _, c := range checks {
		if f := c(s); f != nil {
			p.Verb, p.Fault = VerbRefuse, f
			break
		}
	}
	if end := s.Grant.Spec.Grant.NotAfter; end != nil && !expired(s.Grant, s.Now) {
		// A grant holds until notAfter itself.
		p.RequeueAfter = min(end.Sub(s.Now), longest) + time.Millisecond
	}
	return p
}

func checkSchemas(s Snapshot) *contract.Fault {
	t := s.Grant.Declaration()
	for _, x := range []struct {
		path string
		text []byte
	}{{"spec.tool.inputSchema", t.InputSchema}, {"spec.tool.outputSchema", t.OutputSchema}} {
		if _, err := contract.CompileSchema(x.text); err != nil {
			return contract.Faultf(contract.ReasonSchemaInvalid, "%s: %s", x.path, message(err))
		}
	}
	return nil
}

func message(err error) string {
	if f, ok := contract.AsFault(err); ok {
		return f.Message
	}
	return err.Error()
}

func checkSelector(s Snapshot) *contract.Fault {
	of := map[string]*metav1.LabelSelector{"spec.grant.runSelector": s.Grant.Spec.Grant.RunSelector}
	if n := s.Grant.Spec.AllowedNamespaces; n != nil {
		of["spec.allowedNamespaces.selector"] = n.Selector
	}
	for _, path := range slices.Sorted(maps.Keys(of)) {
		// No selector is one that selects nothing.
		if _, err := metav1.LabelSelectorAsSelector(of[path]); err != nil {
			return contract.Faultf(contract.ReasonSchemaInvalid, "%s: %v", path, err)
		}
	}
	return nil
}

func checkExpiry(s Snapshot) *contract.Fault {
	if !expired(s.Grant, s.Now) {
		return nil
	}
	return contract.Faultf(contract.ReasonExpired, "the grant ended at %s; move spec.grant.notAfter to renew it",
		s.Grant.Spec.Grant.NotAfter.UTC().Format(time.RFC3339))
}

func expired(g *v1alpha1.ToolGrant, now time.Time) bool {
	end := g.Spec.Grant.NotAfter
	return end != nil && now.After(end.Time)
}

// checkName gives a tool's name to the oldest grant that declares it and has
// not expired, whatever the order of events was.
func checkName(s Snapshot) *contract.Fault {
	oldest := s.Grant
	for i := range s.Others {
		o := &s.Others[i]
		if o.UID == s.Grant.UID || o.Namespace != s.Grant.Namespace || o.Spec.Tool.Name != s.Grant.Spec.Tool.Name ||
			expired(o, s.Now) || !v1alpha1.Older(o, oldest) {
			continue
		}
		oldest = o
	}
	if oldest == s.Grant {
		return nil
	}
	return contract.Faultf(contract.ReasonNameConflict,
		"ToolGrant %s, which is older, declares the tool %q already; rename the tool or delete one of the two",
		oldest.Name, oldest.Spec.Tool.Name)
}

// String names the plan in logs.
func (p Plan) String() string {
	if p.Fault != nil {
		return fmt.Sprintf("%s: %s", p.Verb, p.Fault.Reason)
	}
	return string(p.Verb)
}
