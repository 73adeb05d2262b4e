package sandbox

import (
	"encoding/json"
	"regexp"
	"strconv"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

// failure is an exception as the prelude describes it.
type failure struct {
	Name    string `json:"name"`
	Message string `json:"message"`
	Stack   string `json:"stack"`
}

// describeFailure makes the fault of an exception. Nothing in the text can
// change the reason.
func describeFailure(text string, reason contract.Reason) *contract.Fault {
	var f failure
	if err := json.Unmarshal([]byte(text), &f); err != nil {
		return contract.Faultf(contract.ReasonWorkerLost, "an exception could not be read")
	}
	message := f.Message
	switch {
	case f.Name != "" && message != "":
		message = f.Name + ": " + message
	case message == "":
		message = f.Name
	}
	fault := contract.Faultf(reason, "%s", message)
	if line, column, ok := position(f); ok {
		fault = fault.At(line, column)
	}
	return fault
}

var frame = regexp.MustCompile(`(?m)\(?` + regexp.QuoteMeta(sourceName) + `:(\d{1,6}):(\d{1,6})\)?$`)

// position finds the innermost frame of the program.
func position(f failure) (line, column int, ok bool) {
	m := frame.FindStringSubmatch(f.Stack)
	if m == nil {
		return 0, 0, false
	}
	line, _ = strconv.Atoi(m[1])
	column, _ = strconv.Atoi(m[2])
	return line, column, true
}
