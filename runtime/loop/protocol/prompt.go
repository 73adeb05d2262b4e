package protocol

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

// PromptInput is what the system text of a run is made of.
type PromptInput struct {
	// Instructions are the user's, and come first; blank ones are left out.
	Instructions string
	Finalize     contract.Finalize
	// Limits are those of each program, ChildCalls that of the run. What is not set
	// is not spoken of.
	Limits contract.Limits
	// MaxSteps bounds the answers of the run; 0 is not spoken of.
	MaxSteps  int64
	Catalogue contract.Catalogue
}

// Render returns the system text: the user's instructions, the contract of the
// protocol, and the catalogue. The same input gives the same bytes.
func Render(in PromptInput) string {
	var b strings.Builder
	if text := strings.TrimFunc(in.Instructions, space); text != "" {
		b.WriteString(text + "\n\n")
	}
	b.WriteString(answerText)
	if in.Finalize == contract.FinalizeModel {
		b.WriteString(modelText)
	} else {
		b.WriteString(directText)
	}
	b.WriteString(programText)
	callable := len(in.Catalogue.Names) > 0
	if callable {
		b.WriteString(callText)
	}
	b.WriteString(absentText)
	if list := limitsOf(in, callable); list != "" {
		b.WriteString("- Limits: " + list + ".\n")
	}
	b.WriteString(catalogueText(in.Catalogue))
	return b.String()
}

const answerText = `# Answers

Every answer is exactly one JSON object and nothing else, no prose or code fence around it: a program to run, or the end.

` + codeForm + "\n" + finalForm + `

What comes of it is the next message:
CODE_RESULT: {"result":…}
CODE_ERROR: {"reason":…,"message":…,"line":…,"effects":[…]} means: correct the program. effects are the tool calls that took effect already (state Completed) or may have (Dispatched, Uncertain): do not repeat them.
PROTOCOL_ERROR: … means: the answer was no such object. The third one fails the run.

`

const directText = `The first result that is neither null nor a blank string ends the run and is its output, unchanged. So let one program do the whole task and return the finished answer; return null to go on. A final message ends the run at any time, with its output.
`

// modelText speaks of the bound of a result, because only here is a long one read.
var modelText = fmt.Sprintf(`A result does not end the run. Once a program has succeeded, answer with the final message: more code is refused (FINALIZE_MODE: …) and not run. A final message ends the run at any time, with its output. Of a result, at most %d bytes are shown.
`, MaxFeedbackBytes)

const programText = `
# Programs

- A program is one script in strict-mode JavaScript. It declares function main(input) at its top level: a plain function, neither async nor an arrow. main is called once with the run's input, which is null when there is none.
- What main returns is the result, as JSON. undefined, a function, a BigInt, a cycle, an iterator or a promise fails.
- Every program starts afresh: nothing that an earlier one defined is left. Tool calls that were made stay made.
`

const callText = `- tools.call(name, args) calls a tool and returns its result as a JSON value, at once, without await. One call at a time, only while main runs. name is exactly a name of the list below; args is always given, and is JSON that its parameters allow.
- tools.call throws an Error that the program may catch when the tool failed or args do not match. Everything else ends the program, whatever it catches: another name, a spent budget, a refused or deferred call, an unusable result, an uncertain effect.
`

const absentText = `- Absent: async, await, Promise; import, export, require; timers; the clock (Date.now(), new Date() without arguments); Math.random; console; eval, Function; globalThis, WebAssembly; network, files, processes, environment.
- Build long text by pushing parts to an array and joining it, never by s += in a loop.
`

// limitsOf lists the figures that a program must keep to.
func limitsOf(in PromptInput, callable bool) string {
	var list []string
	add := func(n int64, format string) {
		if n > 0 {
			list = append(list, fmt.Sprintf(format, n))
		}
	}
	l := in.Limits
	add(l.SourceBytes, "code: %d bytes")
	add(l.OutputBytes, "result and output: %d bytes")
	if callable {
		add(l.OutputBytes, "a tool's result: %d bytes")
	}
	if l.HeapBytes%(1<<20) == 0 {
		add(l.HeapBytes>>20, "memory: %d MiB")
	} else {
		add(l.HeapBytes, "memory: %d bytes")
	}
	if l.WallClockMs%1000 == 0 {
		add(l.WallClockMs/1000, "time of a program: %d s")
	} else {
		add(l.WallClockMs, "time of a program: %d ms")
	}
	add(l.Fuel, "loop passes and function calls: %d")
	if callable && l.ChildCalls != nil {
		list = append(list, fmt.Sprintf("tool calls in the run: %d", *l.ChildCalls))
	}
	add(in.MaxSteps, "answers in the run: %d")
	return strings.Join(list, "; ")
}

func catalogueText(c contract.Catalogue) string {
	const head = "\n# Tools\n\n"
	switch {
	case c.Step == contract.CatalogueEmpty:
		return head + "The list of this run's tools is too long to be shown, so none can be called: tools.call ends the program.\n"
	case len(c.Names) == 0:
		return head + "There are none: tools.call ends the program.\n"
	case c.Step == contract.CatalogueWithoutReturnSchemas:
		return head + "parameters is the JSON Schema of args. The schemas of the results are left out here: do not take the shape of a result for granted.\n\n" + string(c.Text) + "\n"
	}
	return head + "parameters is the JSON Schema of args, return_schema that of the result; {} allows any JSON.\n\n" + string(c.Text) + "\n"
}

// maxShownInput bounds how much of the run's input the model is shown, in bytes.
// Its program gets all of it.
const maxShownInput = 8 << 10

// Task returns the user's message: the prompt, and the run's input unless that is
// null or none. A long input is cut, with its size.
func Task(prompt string, input json.RawMessage) string {
	text := oneLine(input)
	switch {
	case text == "" || text == "null":
		return prompt
	case len(text) > maxShownInput:
		return fmt.Sprintf("%s\n\nINPUT, of which main gets all %d bytes, begins: %s", prompt, len(text), contract.Truncate(text, maxShownInput))
	}
	return prompt + "\n\nINPUT, the argument of main: " + text
}
