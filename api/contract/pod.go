package contract

import "path"

// What the controller writes into a runtime pod and the runtime reads there.
const (
	// BundleDir is where the pinned ConfigMap is mounted.
	BundleDir = "/var/run/codeact/bundle"
	// AuthDir holds one folder for each tool that has a credential.
	AuthDir = "/var/run/codeact/auth"
	// CADir holds one folder for each tool that has root certificates of its own.
	CADir = "/var/run/codeact/ca"
	// CAFile is the name of the certificates in their tool's folder.
	CAFile = "ca.pem"
	// CredentialFile is the name of the credential in its tool's folder.
	CredentialFile = "credential"
	// CacheDir holds the compilation cache that is baked into the image.
	CacheDir = "/var/cache/codeact"
	// TerminationPath is where the runtime leaves the second way out.
	TerminationPath = "/dev/termination-log"

	// EnvBundleDigest, EnvPodName and EnvPodUID tell the runtime what to expect
	// and who it is.
	EnvBundleDigest = "CODEACT_BUNDLE_DIGEST"
	EnvPodName      = "CODEACT_POD_NAME"
	EnvPodUID       = "CODEACT_POD_UID"
	// EnvTraceEndpoint is the collector of traces, by the name that OpenTelemetry's
	// own exporters read; without it nothing is traced.
	EnvTraceEndpoint = "OTEL_EXPORTER_OTLP_ENDPOINT"

	// PodGraceSeconds is the time between the order to end and the kill: the
	// runtime stops its program and reports in it.
	PodGraceSeconds = 15

	// RuntimeContainer is the name of the pod's one container.
	RuntimeContainer = "runtime"
	// RuntimeServiceAccount is the ServiceAccount of every runtime pod, one a namespace.
	RuntimeServiceAccount = "codeact-runtime"
	// RuntimeFieldManager owns status.execution by server-side apply.
	RuntimeFieldManager = "codeact-runtime"
)

// Where the pod finds its run in the Kubernetes API.
const (
	APIGroup         = "codeact.dev"
	APIVersion       = "v1alpha1"
	AgentRunKind     = "AgentRun"
	AgentRunResource = "agentruns"

	// LabelRunUID and LabelGeneration are on everything that belongs to an
	// execution generation of a run.
	LabelRunUID     = APIGroup + "/run-uid"
	LabelGeneration = APIGroup + "/execution-generation"

	// LabelPod is on every pod of the runtime: PodOfRun executes a run, PodOfCheck the
	// tests of a Recipe.
	LabelPod   = APIGroup + "/pod"
	PodOfRun   = "run"
	PodOfCheck = "check"
)

// BundlePath is the bundle's file in the pod.
func BundlePath() string { return path.Join(BundleDir, BundleKey) }

// CredentialPath is the file of one tool's credential in the pod. A tool's name
// is a safe path segment by ToolNamePattern.
func CredentialPath(tool string) string { return path.Join(AuthDir, tool, CredentialFile) }

// CAPath is the file of one tool's root certificates in the pod.
func CAPath(tool string) string { return path.Join(CADir, tool, CAFile) }

// MediaName is the name of the ConfigMap with the media of the execution whose
// pin has the name pin.
func MediaName(pin string) string { return pin + "-media" }

// TranscriptName is the name of the ConfigMap with the transcript of the execution
// whose pin has the name pin.
func TranscriptName(pin string) string { return pin + "-transcript" }
