package contract

import (
	"encoding/json"
	"slices"
)

// UnknownTool stands in an event for the name of a tool that the bundle does not have,
// where nothing that is said is kept (TranscriptNone).
const UnknownTool = "(unknown)"

// EventType says what an Event is about.
type EventType string

// The types of event. Each change of a call is one event of the most particular
// type; the end of a run by a call is one more.
const (
	EventExecutionStarted EventType = "execution.started"
	// EventCall is a change of a call that has no type of its own.
	EventCall EventType = "call"
	// EventCallDenied is a call that the run has no authority for.
	EventCallDenied EventType = "call.denied"
	// EventCallOverflow is a call that no budget was left for, or an answer that is
	// too large.
	EventCallOverflow EventType = "call.overflow"
	// EventCallAbandoned is a call that was charged and never sent.
	EventCallAbandoned EventType = "call.abandoned"
	// EventCallProgress is how far a tool says it is, at most once in
	// the interval of the broker.
	EventCallProgress EventType = "call.progress"
	// EventCallDrifted is a call of a tool that is no longer declared as pinned.
	EventCallDrifted EventType = "call.drifted"
	// EventLatched is the end of all calls: from here on nothing reaches a tool.
	EventLatched           EventType = "latched"
	EventExecutionFinished EventType = "execution.finished"
)

// The types of event of an agent. Every step that has started is finished, with
// the kind of the answer as its state.
const (
	EventStepStarted    EventType = "step.started"
	EventModelRequested EventType = "model.requested"
	// EventModelAnswered is the end of a request, also of one that failed.
	EventModelAnswered   EventType = "model.answered"
	EventProgramStarted  EventType = "program.started"
	EventProgramFinished EventType = "program.finished"
	// EventProgramRefused is a program that came where only the end was allowed.
	EventProgramRefused EventType = "program.refused"
	// EventProtocolError is an answer that is no message.
	EventProtocolError EventType = "protocol.error"
	// EventFinal is the output of the run.
	EventFinal        EventType = "final"
	EventStepFinished EventType = "step.finished"
	// EventModelDelta is a part of an answer that is still on its way. What it says
	// comes again as a whole in EventModelAnswered.
	EventModelDelta EventType = "model.delta"
	// EventModelRetried says that an attempt broke off: the parts of its answer are
	// void.
	EventModelRetried EventType = "model.retried"
	// EventToolStarted and EventToolFinished are one native tool call of the model:
	// of a tool, of a recipe or of run_code. Below it are the calls of the broker.
	EventToolStarted  EventType = "tool.started"
	EventToolFinished EventType = "tool.finished"
	// EventPending says that the run waits for somebody to answer a call, and
	// EventResolved that somebody has.
	EventPending  EventType = "pending"
	EventResolved EventType = "resolved"
	// EventError is the failure of the run, before its end.
	EventError EventType = "error"
	// EventTruncated stands in a transcript from which something is left out for its
	// size: where the contents end, and once more as its last record, with what was
	// left out in all.
	EventTruncated EventType = "transcript.truncated"
	// EventTranscriptLost says that the transcript could not be stored.
	EventTranscriptLost EventType = "transcript.lost"
	// EventLinesDropped says that nobody read the stream fast enough, so that lines
	// of it are missing here.
	EventLinesDropped EventType = "lines.dropped"
)

// Recorded reports whether events of the type are records of the transcript. The
// others are told only while the run goes on: what they say comes again, or is
// about the stream itself.
func (t EventType) Recorded() bool {
	return !slices.Contains([]EventType{EventModelDelta, EventCallProgress, EventTranscriptLost, EventLinesDropped}, t)
}

// Event is one line of what a run tells while it goes on: on the standard output
// of its pod, and in its transcript. It never has a credential. What the tenant
// and its model say is in Content alone, which is nil where no transcript is kept.
type Event struct {
	// N counts the records of the transcript from 1; 0 for an event that is none.
	N int64 `json:"n,omitempty"`
	// Time is RFC 3339 in UTC.
	Time string    `json:"time"`
	Type EventType `json:"type"`
	// Run is <namespace>/<name>.
	Run        string `json:"run"`
	RunUID     string `json:"runUID"`
	Generation int64  `json:"generation"`
	// BundleDigest is that of the bundle that is executed (execution.started).
	BundleDigest string `json:"bundleDigest,omitempty"`
	// Step is the agent's, from 1.
	Step int64 `json:"step,omitempty"`
	// ID is that of a program, which is a call of the logical tool code.
	ID string `json:"id,omitempty"`
	// Seq, Tool and Grant name the call.
	Seq   int64  `json:"seq,omitempty"`
	Tool  string `json:"tool,omitempty"`
	Grant string `json:"grant,omitempty"`
	// State is the call's, the result of the execution or of a program, or the kind
	// of a step.
	State  string `json:"state,omitempty"`
	Reason Reason `json:"reason,omitempty"`
	// DurationMs is the time since the call was admitted, or since the execution,
	// the step, the request or the program began. That of a call does not hold what
	// it waited for somebody's answer, which is that of the event resolved.
	DurationMs int64 `json:"durationMs"`
	// InputTokens and OutputTokens are what the model's endpoint counted, and
	// Attempts how often it was asked.
	InputTokens  int64 `json:"inputTokens,omitempty"`
	OutputTokens int64 `json:"outputTokens,omitempty"`
	Attempts     int64 `json:"attempts,omitempty"`
	// Done and Total are a tool's progress; Total is 0 when it does not say.
	Done  *float64 `json:"done,omitempty"`
	Total *float64 `json:"total,omitempty"`
	// Omitted counts what is left out for its size (transcript.truncated), or lines
	// that are missing (lines.dropped).
	Omitted *Omitted `json:"omitted,omitempty"`
	// Content is what was said; nil where no transcript is kept.
	Content *EventContent `json:"content,omitempty"`
	// Hash seals a record, see Chain; "" for an event that is none. It is the last
	// member of its line.
	Hash string `json:"hash,omitempty"`
}

// Omitted counts what a transcript has no room for.
type Omitted struct {
	// Contents counts the records whose contents are left out, and Records the events
	// that are no record at all.
	Contents int64 `json:"contents,omitempty"`
	Records  int64 `json:"records,omitempty"`
	// Bytes is the size of all these contents.
	Bytes int64 `json:"bytes,omitempty"`
}

// EventContent is what was said at an event. Which fields are set follows from the
// type of the event.
type EventContent struct {
	// Messages are those that the model is shown for the first time
	// (model.requested), and Dropped counts those that it is no longer shown.
	Messages []EventMessage `json:"messages,omitempty"`
	Dropped  int            `json:"dropped,omitempty"`
	// Text is the answer of the model, or a part of it; Reasoning is what it said
	// apart from it, FinishReason the endpoint's own word (model.answered).
	Text         string `json:"text,omitempty"`
	Reasoning    string `json:"reasoning,omitempty"`
	FinishReason string `json:"finishReason,omitempty"`
	// ToolCalls are the native tool calls of the answer (model.answered).
	ToolCalls []ModelToolCall `json:"toolCalls,omitempty"`
	// Source is a program, and SourceDigest the digest of its bytes
	// (execution.started, program.started, tool.started).
	Source       string `json:"source,omitempty"`
	SourceDigest string `json:"sourceDigest,omitempty"`
	// Recipe is the name of the Recipe that the program is of (execution.started,
	// tool.started), Limits are those of the program, and the schemas are the
	// recipe's. With these, and with what its calls returned, anybody can execute the
	// program again. Of a recipe that an agent calls they come with its first call, as
	// its Source does: those that follow have the SourceDigest alone.
	Recipe       string          `json:"recipe,omitempty"`
	Limits       *Limits         `json:"limits,omitempty"`
	InputSchema  json.RawMessage `json:"inputSchema,omitempty"`
	OutputSchema json.RawMessage `json:"outputSchema,omitempty"`
	// Input is the argument of main (execution.started, tool.started); of a recipe
	// that an agent calls, Arguments are. InputDigest is the digest of its own bytes,
	// where a model spelled it.
	Input       json.RawMessage `json:"input,omitempty"`
	InputDigest string          `json:"inputDigest,omitempty"`
	// Arguments are those of a call as the broker sent them, where it was sent or
	// abandoned; Result is what the program saw, but for blanks between its tokens.
	Arguments json.RawMessage `json:"arguments,omitempty"`
	Result    json.RawMessage `json:"result,omitempty"`
	// ResultDigest is the digest of the answer's own bytes, as the journal has it.
	ResultDigest string `json:"resultDigest,omitempty"`
	// Message says in a sentence why something failed, or who answered a call.
	Message string `json:"message,omitempty"`
	// Line and Column point into the program, from 1.
	Line   int `json:"line,omitempty"`
	Column int `json:"column,omitempty"`
	// Evidence is what a terminal call left.
	Evidence string `json:"evidence,omitempty"`
	// Output is that of the run (final, execution.finished), and OutputDigest the
	// digest of its bytes.
	Output       json.RawMessage `json:"output,omitempty"`
	OutputDigest string          `json:"outputDigest,omitempty"`
	// Omitted names what of the above is not there as a whole. What it does not name
	// is there, or never was.
	Omitted []Omission `json:"omitted,omitempty"`
}

// EventMessage is one message that a model is shown.
type EventMessage struct {
	Role       string `json:"role"`
	Text       string `json:"text,omitempty"`
	ToolCallID string `json:"toolCallID,omitempty"`
}
