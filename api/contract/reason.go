package contract

import (
	"errors"
	"fmt"
)

// Reason is the one machine-readable name of what went wrong. It is what the
// runtime reports, what a condition carries and what the CLI prints; it is
// never translated on the way.
type Reason string

// Reasons of a program: what ended one execution.
const (
	ReasonSourceTooLarge  Reason = "SourceTooLarge"
	ReasonInputTooLarge   Reason = "InputTooLarge"
	ReasonOutputTooLarge  Reason = "OutputTooLarge"
	ReasonProhibited      Reason = "Prohibited"
	ReasonSyntaxError     Reason = "SyntaxError"
	ReasonJavaScriptError Reason = "JavaScriptError"
	ReasonHeapExhausted   Reason = "HeapExhausted"
	ReasonStackExhausted  Reason = "StackExhausted"
	ReasonTimeout         Reason = "Timeout"
	ReasonCancelled       Reason = "Cancelled"
	ReasonWorkerLost      Reason = "WorkerLost"
)

// Reasons of a child call that the program may catch: nothing has happened, or
// the tool has proven that it failed.
const (
	ReasonToolFailed       Reason = "ToolFailed"
	ReasonInvalidArguments Reason = "InvalidArguments"
)

// Reasons of a child call that end the execution, whatever the program catches.
const (
	ReasonToolNotAllowed         Reason = "ToolNotAllowed"
	ReasonCallLimitExceeded      Reason = "CallLimitExceeded"
	ReasonApprovalRequired       Reason = "ApprovalRequired"
	ReasonCallDeferred           Reason = "CallDeferred"
	ReasonConstraintViolated     Reason = "ConstraintViolated"
	ReasonDeclarationDrift       Reason = "DeclarationDrift"
	ReasonEffectUncertain        Reason = "EffectUncertain"
	ReasonChildResultTooLarge    Reason = "ChildResultTooLarge"
	ReasonChildResultInvalid     Reason = "ChildResultInvalid"
	ReasonEvidenceBudgetTooSmall Reason = "EvidenceBudgetTooSmall"
	ReasonBrokerUnavailable      Reason = "BrokerUnavailable"
)

// Reasons of a run: what the controller, or the pod before and after the
// program, found.
const (
	ReasonInvalidInput          Reason = "InvalidInput"
	ReasonInvalidOutput         Reason = "InvalidOutput"
	ReasonRecipeNotFound        Reason = "RecipeNotFound"
	ReasonRecipeNotReady        Reason = "RecipeNotReady"
	ReasonToolsNotGranted       Reason = "ToolsNotGranted"
	ReasonModelNotGranted       Reason = "ModelNotGranted"
	ReasonStepLimitExceeded     Reason = "StepLimitExceeded"
	ReasonTokenBudgetExceeded   Reason = "TokenBudgetExceeded"
	ReasonProtocolError         Reason = "ProtocolError"
	ReasonModelError            Reason = "ModelError"
	ReasonDisabled              Reason = "Disabled"
	ReasonQuotaExceeded         Reason = "QuotaExceeded"
	ReasonBundleTooLarge        Reason = "BundleTooLarge"
	ReasonStartDeadlineExceeded Reason = "StartDeadlineExceeded"
	ReasonDeadlineExceeded      Reason = "DeadlineExceeded"
	ReasonInterrupted           Reason = "Interrupted"
	ReasonEffectsAmbiguous      Reason = "EffectsAmbiguous"
	ReasonSuperseded            Reason = "Superseded"
)

// Reasons of a Recipe or a ToolGrant.
const (
	ReasonDigestMismatch Reason = "DigestMismatch"
	ReasonSchemaInvalid  Reason = "SchemaInvalid"
	// ReasonConstraintInvalid is an expression that does not compile or may cost too much.
	ReasonConstraintInvalid Reason = "ConstraintInvalid"
	// ReasonBackendInvalid is a backend that cannot take what the declaration allows.
	ReasonBackendInvalid Reason = "BackendInvalid"
	ReasonNameConflict   Reason = "NameConflict"
	ReasonReservedName   Reason = "ReservedName"
	ReasonRecursive      Reason = "Recursive"
	ReasonLimitsTooHigh  Reason = "LimitsTooHigh"
	// ReasonTestsFailed is a Recipe of which a test failed.
	ReasonTestsFailed Reason = "TestsFailed"
	ReasonExpired     Reason = "Expired"
)

// Class says who can do something about a Reason, and whether a program may
// catch it. Every Reason has exactly one.
type Class string

const (
	// ClassProgram is the program's own fault or its use of a bound.
	ClassProgram Class = "Program"
	// ClassCatchable is a child call's failure that reaches the program as an Error.
	ClassCatchable Class = "Catchable"
	// ClassTerminal is a child call's failure that ends the execution.
	ClassTerminal Class = "Terminal"
	// ClassRun is a failure of the run around the program.
	ClassRun Class = "Run"
	// ClassObject is a fault of a Recipe or ToolGrant that its author mends.
	ClassObject Class = "Object"
)

var classes = map[Reason]Class{
	ReasonSourceTooLarge: ClassProgram, ReasonInputTooLarge: ClassProgram, ReasonOutputTooLarge: ClassProgram,
	ReasonProhibited: ClassProgram, ReasonSyntaxError: ClassProgram, ReasonJavaScriptError: ClassProgram,
	ReasonHeapExhausted: ClassProgram, ReasonStackExhausted: ClassProgram, ReasonTimeout: ClassProgram,
	ReasonCancelled: ClassProgram, ReasonWorkerLost: ClassProgram,

	ReasonToolFailed: ClassCatchable, ReasonInvalidArguments: ClassCatchable,

	ReasonToolNotAllowed: ClassTerminal, ReasonCallLimitExceeded: ClassTerminal, ReasonApprovalRequired: ClassTerminal,
	ReasonCallDeferred: ClassTerminal, ReasonEffectUncertain: ClassTerminal, ReasonChildResultTooLarge: ClassTerminal,
	ReasonConstraintViolated: ClassTerminal, ReasonDeclarationDrift: ClassTerminal,
	ReasonChildResultInvalid: ClassTerminal, ReasonEvidenceBudgetTooSmall: ClassTerminal, ReasonBrokerUnavailable: ClassTerminal,

	ReasonInvalidInput: ClassRun, ReasonInvalidOutput: ClassRun, ReasonRecipeNotFound: ClassRun, ReasonRecipeNotReady: ClassRun,
	ReasonToolsNotGranted: ClassRun, ReasonModelNotGranted: ClassRun, ReasonStepLimitExceeded: ClassRun,
	ReasonTokenBudgetExceeded: ClassRun, ReasonProtocolError: ClassRun, ReasonModelError: ClassRun, ReasonDisabled: ClassRun, ReasonQuotaExceeded: ClassRun, ReasonBundleTooLarge: ClassRun,
	ReasonStartDeadlineExceeded: ClassRun, ReasonDeadlineExceeded: ClassRun, ReasonInterrupted: ClassRun,
	ReasonEffectsAmbiguous: ClassRun, ReasonSuperseded: ClassRun,

	ReasonDigestMismatch: ClassObject, ReasonSchemaInvalid: ClassObject, ReasonConstraintInvalid: ClassObject, ReasonBackendInvalid: ClassObject, ReasonNameConflict: ClassObject,
	ReasonReservedName: ClassObject, ReasonRecursive: ClassObject, ReasonLimitsTooHigh: ClassObject, ReasonExpired: ClassObject, ReasonTestsFailed: ClassObject,
}

// Class returns the one class of r, or "" for a Reason that this version does
// not know.
func (r Reason) Class() Class { return classes[r] }

// Known reports whether r is part of the taxonomy.
func (r Reason) Known() bool { _, ok := classes[r]; return ok }

// rank orders Reasons when several things went wrong in one execution:
// Cancelled > Timeout > terminal child call > other program errors >
// OutputTooLarge. A higher rank wins.
func (r Reason) rank() int {
	switch {
	case r == ReasonCancelled:
		return 5
	case r == ReasonTimeout:
		return 4
	case r.Class() == ClassTerminal:
		return 3
	case r == ReasonOutputTooLarge:
		return 1
	default:
		return 2
	}
}

// Fault is the one error type of the product: everything that fails for a
// reason a user can read is, or wraps, a Fault. Message never holds a secret, a
// prompt or a tool's output beyond the bounded text that the tool declared safe.
type Fault struct {
	// Reason is the machine-readable cause.
	Reason Reason
	// Message is one sentence for a person, at most MaxMessageBytes.
	Message string
	// Line and Column point into the program, from 1; 0 means unknown.
	Line, Column int
	// Stack lists the functions of the program that were running, the innermost
	// first, as "name (main.js:line)", or "name (main.js)" where the line is not
	// known; at most MaxStackFrames. It is empty where it would say no more than
	// Line does.
	Stack []string
}

// MaxStackFrames and MaxFrameBytes bound Fault.Stack.
const (
	MaxStackFrames = 8
	MaxFrameBytes  = 128
)

// MaxMessageBytes bounds every message that leaves a process, in UTF-8 bytes.
const MaxMessageBytes = 2048

// Faultf makes a Fault with a formatted, bounded message.
func Faultf(r Reason, format string, args ...any) *Fault {
	return &Fault{Reason: r, Message: Truncate(fmt.Sprintf(format, args...), MaxMessageBytes)}
}

// At returns a copy of f that points at a line and column, both from 1.
func (f *Fault) At(line, column int) *Fault {
	g := *f
	g.Line, g.Column = line, column
	return &g
}

// Error implements error.
func (f *Fault) Error() string {
	if f.Message == "" {
		return string(f.Reason)
	}
	return string(f.Reason) + ": " + f.Message
}

// AsFault finds the Fault in err's chain.
func AsFault(err error) (*Fault, bool) {
	return errors.AsType[*Fault](err)
}

// Worst returns the fault whose Reason takes precedence; of two equal ranks the
// first one wins, because it came first. Either may be nil.
func Worst(a, b *Fault) *Fault {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	case b.Reason.rank() > a.Reason.rank():
		return b
	default:
		return a
	}
}
