package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

// Condition types. Ready, Pinned and Succeeded are the ones to wait for;
// Reconciling and Stalled follow kstatus: each is present only while it is True.
const (
	// ConditionReady is True when a Recipe or ToolGrant may be used by new runs.
	ConditionReady = "Ready"
	// ConditionSourceVerified is True when a Recipe's source has its digest and
	// passes the static check.
	ConditionSourceVerified = "SourceVerified"
	// ConditionSchemaValid is True when every schema of the object compiles.
	ConditionSchemaValid = "SchemaValid"
	// ConditionTestsPassed is True when every test of a Recipe passed, or there are none.
	ConditionTestsPassed = "TestsPassed"
	// ConditionToolsResolved is True when every declared tool has a usable grant.
	ConditionToolsResolved = "ToolsResolved"
	// ConditionEnabled is True when runs may execute Recipes in the Recipe's
	// namespace. It is no part of Ready, which is about the Recipe itself.
	ConditionEnabled = "Enabled"
	// ConditionPinned is True when all that a run may see is in its immutable ConfigMap.
	ConditionPinned = "Pinned"
	// ConditionCatalogueComplete is True when the catalogue of a run with its own code,
	// or with an agent, shows everything about its tools. Runs of a Recipe have none.
	ConditionCatalogueComplete = "CatalogueComplete"
	// ConditionSucceeded is Unknown while a run goes on, then True or False.
	ConditionSucceeded = "Succeeded"
	// ConditionReconciling is True while the controller works towards the spec.
	ConditionReconciling = "Reconciling"
	// ConditionStalled is True when nothing will change before the spec does.
	ConditionStalled = "Stalled"
)

// Reasons of conditions that are no failure; the failures are contract.Reason.
const (
	ReasonReady     = "Ready"
	ReasonVerified  = "Verified"
	ReasonValid     = "Valid"
	ReasonResolved  = "Resolved"
	ReasonEnabled   = "Enabled"
	ReasonPinned    = "Pinned"
	ReasonPending   = "Pending"
	ReasonWaiting   = "Waiting"
	ReasonStarting  = "Starting"
	ReasonRunning   = "Running"
	ReasonStopping  = "Stopping"
	ReasonSucceeded = "Succeeded"
	// ReasonAwaitingApproval and ReasonAwaitingResult say that a run waits for an
	// answer in spec.resolutions.
	ReasonAwaitingApproval = "AwaitingApproval"
	ReasonAwaitingResult   = "AwaitingResult"
)

// Reasons of ConditionTestsPassed that are no failure.
const (
	ReasonPassed  = "Passed"
	ReasonNoTests = "NoTests"
	// ReasonSkipped says that the operator does not run tests.
	ReasonSkipped = "Skipped"
	// ReasonNotRun says that something else is wrong with the recipe, and that its
	// tests are run when that is mended.
	ReasonNotRun = "NotRun"
	// ReasonQueued says that as many check pods run as the operator allows.
	ReasonQueued = "Queued"
)

// Reasons of ConditionCatalogueComplete, one for each step of a catalogue.
const (
	ReasonFull                 = "Full"
	ReasonReturnSchemasOmitted = "ReturnSchemasOmitted"
	ReasonCatalogueEmpty       = "CatalogueEmpty"
)

// Labels and annotations that the controllers write.
const (
	// LabelRun is the name of the AgentRun, on its pods and ConfigMaps (cut to 63 bytes).
	LabelRun = "codeact.dev/run"
	// LabelRunUID is the UID of the AgentRun.
	LabelRunUID = contract.LabelRunUID
	// LabelGeneration is the execution generation.
	LabelGeneration = contract.LabelGeneration
	// LabelRecipe is the name of the Recipe, on its check pods and their ConfigMaps (cut
	// to 63 bytes), and LabelRecipeUID its UID.
	LabelRecipe    = "codeact.dev/recipe"
	LabelRecipeUID = "codeact.dev/recipe-uid"
	// AnnotationCheckDigest is the digest of what a check pod runs, on it and its ConfigMap.
	AnnotationCheckDigest = "codeact.dev/check-digest"
	// AnnotationExecutionDigest is the digest of what the spec asked for, on the
	// ConfigMap and the pod: it tells which spec a pod executes when the status
	// write that should have said so was lost.
	AnnotationExecutionDigest = "codeact.dev/execution-digest"
	// AnnotationTraceParent is what a tenant may set on an AgentRun: the W3C
	// traceparent of the span that its spans belong below.
	AnnotationTraceParent = "codeact.dev/traceparent"
	// AnnotationBundleDigest is the digest of the pinned bundle, on the ConfigMap and the pod.
	AnnotationBundleDigest = "codeact.dev/bundle-digest"
)

// Annotations of a Namespace that take the place of the operator's switches, where
// it lets them: "true" or "false". Anything else means false.
const (
	AnnotationCodeActEnabled = "codeact.dev/codeact-enabled"
	AnnotationRecipesEnabled = "codeact.dev/recipes-enabled"
)

// IsReady reports whether the conditions say Ready about exactly this generation.
func IsReady(conditions []metav1.Condition, generation int64) bool {
	c := meta.FindStatusCondition(conditions, ConditionReady)
	return c != nil && c.Status == metav1.ConditionTrue && c.ObservedGeneration == generation
}
