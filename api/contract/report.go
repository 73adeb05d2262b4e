package contract

import (
	"encoding/json"
	"fmt"
)

// Result is how an execution ended.
// +kubebuilder:validation:Enum=Succeeded;Failed
type Result string

// The two ends of an execution. An empty Result means that it still runs.
const (
	ResultSucceeded Result = "Succeeded"
	ResultFailed    Result = "Failed"
)

// Execution is what the runtime pod says of one execution generation. The pod
// owns it in the AgentRun's status; nothing in it is believed before Verify.
// +kubebuilder:object:generate=true
type Execution struct {
	// generation is the execution generation that this report is about.
	// +required
	// +kubebuilder:validation:Minimum=1
	Generation int64 `json:"generation"`
	// runUID is the UID of the AgentRun.
	// +required
	// +kubebuilder:validation:MaxLength=64
	RunUID string `json:"runUID"`
	// bundleDigest is the digest of the bundle that the pod executed.
	// +required
	// +kubebuilder:validation:MaxLength=71
	BundleDigest string `json:"bundleDigest"`
	// claim says which pod executes; it is written before anything else and never changes.
	// +required
	Claim Claim `json:"claim"`
	// result is how the execution ended; empty while it runs.
	// +optional
	Result Result `json:"result,omitempty"`
	// error says why the execution failed.
	// +optional
	Error *ExecutionError `json:"error,omitempty"`
	// output is the JSON text of the value that main returned, exactly as the
	// program gave it. It is text, so that its bytes and digest survive the API
	// server, which re-encodes JSON and tracks the owner of every key in it.
	// +optional
	// +kubebuilder:validation:MaxLength=262144
	Output string `json:"output,omitempty"`
	// outputDigest is the digest of the output's bytes.
	// +optional
	// +kubebuilder:validation:MaxLength=71
	OutputDigest string `json:"outputDigest,omitempty"`
	// calls is the journal: refused calls and admitted ones in the order in which they came.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=320
	Calls []Call `json:"calls,omitempty"`
	// refusedCalls counts all refused calls, listed or not.
	// +optional
	RefusedCalls int64 `json:"refusedCalls,omitempty"`
	// steps are the model's answers and what came of them, for an agent.
	// +optional
	// +listType=map
	// +listMapKey=step
	// +kubebuilder:validation:MaxItems=256
	Steps []Step `json:"steps,omitempty"`
	// pending are the calls that wait for somebody's answer.
	// +optional
	// +listType=map
	// +listMapKey=id
	// +kubebuilder:validation:MaxItems=8
	Pending []Pending `json:"pending,omitempty"`
	// media names the pictures that the tools left for the run's result.
	// +optional
	Media *MediaRef `json:"media,omitempty"`
	// transcript names where the run's contents are kept.
	// +optional
	Transcript *TranscriptRef `json:"transcript,omitempty"`
	// usage says what the execution used.
	// +optional
	Usage *Usage `json:"usage,omitempty"`
	// completionTime is when the execution ended, RFC 3339 in UTC.
	// +optional
	// +kubebuilder:validation:MaxLength=40
	CompletionTime string `json:"completionTime,omitempty"`
}

// Claim binds an execution to the one pod that may run it.
// +kubebuilder:object:generate=true
type Claim struct {
	// podName is the pod's name.
	// +required
	// +kubebuilder:validation:MaxLength=253
	PodName string `json:"podName"`
	// podUID is the pod's UID.
	// +required
	// +kubebuilder:validation:MaxLength=64
	PodUID string `json:"podUID"`
	// time is when the claim was made, RFC 3339 in UTC.
	// +required
	// +kubebuilder:validation:MaxLength=40
	Time string `json:"time"`
}

// ExecutionError is a Fault as a report carries it.
// +kubebuilder:object:generate=true
type ExecutionError struct {
	// reason is the machine-readable cause.
	// +required
	// +kubebuilder:validation:MaxLength=64
	Reason Reason `json:"reason"`
	// message is one sentence for a person.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	Message string `json:"message,omitempty"`
	// line points into the program, from 1.
	// +optional
	Line int64 `json:"line,omitempty"`
	// column points into the line, from 1.
	// +optional
	Column int64 `json:"column,omitempty"`
	// stack lists the functions of the program that were running, the innermost
	// first, with the lines that are known.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MaxLength=128
	Stack []string `json:"stack,omitempty"`
	// evidence is what a terminal child call left behind, as JSON text: the
	// answer and the receipt of the tool as far as they fit limits.outputBytes. Of
	// an agent that came to no end it is the last useful result of its programs.
	// +optional
	// +kubebuilder:validation:MaxLength=262144
	Evidence string `json:"evidence,omitempty"`
}

// Usage says what an execution used.
// +kubebuilder:object:generate=true
type Usage struct {
	// wallMs is the time of the program, child calls included, in milliseconds.
	// +optional
	WallMs int64 `json:"wallMs"`
	// heapBytes is the peak size of the interpreter's memory, in bytes.
	// +optional
	HeapBytes int64 `json:"heapBytes"`
	// fuel counts the loop heads and function entries that the interpreter went
	// through; the same program, input and results of calls use the same.
	// +optional
	Fuel int64 `json:"fuel"`
	// childCalls counts the admitted calls.
	// +optional
	ChildCalls int64 `json:"childCalls"`
	// inputTokens are those of all requests to the model.
	// +optional
	InputTokens int64 `json:"inputTokens,omitempty"`
	// outputTokens are those of all answers of the model.
	// +optional
	OutputTokens int64 `json:"outputTokens,omitempty"`
	// tokensEstimated says that the endpoint counted no request of the run: the
	// numbers are a quarter of the bytes, and maxTokens was not compared with them.
	// Of an endpoint that counts some requests, only those are counted.
	// +optional
	TokensEstimated bool `json:"tokensEstimated,omitempty"`
	// tools says the same of each tool that was called.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	Tools []ToolUsage `json:"tools,omitempty"`
}

// ToolUsage says what the calls of one tool used.
// +kubebuilder:object:generate=true
type ToolUsage struct {
	// name is the tool's.
	// +required
	// +kubebuilder:validation:MaxLength=64
	Name string `json:"name"`
	// calls counts the admitted calls.
	// +optional
	Calls int64 `json:"calls"`
	// argumentBytes is the size of their arguments together, in bytes.
	// +optional
	ArgumentBytes int64 `json:"argumentBytes"`
	// resultBytes is the size of their answers together, in bytes.
	// +optional
	ResultBytes int64 `json:"resultBytes"`
	// wallMs is their time together, in milliseconds, without what they waited for
	// somebody's answer.
	// +optional
	WallMs int64 `json:"wallMs"`
}

// Fail records f as the end of e.
func (e *Execution) Fail(f *Fault) {
	e.Result = ResultFailed
	e.Output, e.OutputDigest = "", ""
	e.Error = &ExecutionError{
		Reason: f.Reason, Message: Truncate(f.Message, MaxMessageBytes),
		Line: int64(f.Line), Column: int64(f.Column), Stack: f.Stack[:min(len(f.Stack), MaxStackFrames)],
	}
}

// Succeed records value, which must be JSON, as the end of e.
func (e *Execution) Succeed(value json.RawMessage) error {
	if !json.Valid(value) {
		return fmt.Errorf("the output is not JSON")
	}
	e.Result, e.Error = ResultSucceeded, nil
	e.Output, e.OutputDigest = string(value), Digest(value)
	return nil
}

// Expected is what the controller knows of the execution that it launched.
type Expected struct {
	RunUID       string
	Generation   int64
	BundleDigest string
}

// Verify reports whether e is about exactly the expected execution and is whole
// in itself. Only a verified report may mean success. An output that went
// missing (see TerminationMessage) is not an error; one that was changed is.
func (e *Execution) Verify(want Expected) error {
	switch {
	case e == nil:
		return fmt.Errorf("there is no report")
	case e.RunUID != want.RunUID:
		return fmt.Errorf("the report is about the run UID %q", Truncate(e.RunUID, 64))
	case e.Generation != want.Generation:
		return fmt.Errorf("the report is about the execution generation %d, not %d", e.Generation, want.Generation)
	case e.BundleDigest != want.BundleDigest:
		return fmt.Errorf("the report is about another bundle")
	case e.Claim.PodUID == "":
		return fmt.Errorf("the report names no pod")
	case e.Media != nil && !ValidDigest(e.Media.Digest):
		return fmt.Errorf("the report names media without their digest")
	case e.Transcript != nil && (!ValidDigest(e.Transcript.LastHash) || e.Transcript.Records < 1):
		return fmt.Errorf("the report names a transcript without its end")
	}
	switch e.Result {
	case "":
		return nil
	case ResultFailed:
		if e.Error == nil || !e.Error.Reason.Known() {
			return fmt.Errorf("the report says Failed without a known reason")
		}
		if t := e.Error.Evidence; t != "" && (len(t) > MaxEvidenceBytes || !json.Valid([]byte(t))) {
			return fmt.Errorf("the report's evidence is not JSON of at most %d bytes", MaxEvidenceBytes)
		}
		return nil
	case ResultSucceeded:
		if e.Error != nil {
			return fmt.Errorf("the report says Succeeded and has an error")
		}
		return e.verifyOutput()
	}
	return fmt.Errorf("the report has an unknown result")
}

func (e *Execution) verifyOutput() error {
	if !ValidDigest(e.OutputDigest) {
		return fmt.Errorf("the report says Succeeded without an output digest")
	}
	if e.Output == "" {
		return nil // left out: JSON text is never empty
	}
	if Digest([]byte(e.Output)) != e.OutputDigest || !json.Valid([]byte(e.Output)) {
		return fmt.Errorf("the report's output does not have its own digest")
	}
	return nil
}
