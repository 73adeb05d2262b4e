package broker

import (
	"maps"
	"slices"
	"time"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

const maxNameBytes = 64

// timeLayout is RFC 3339 with milliseconds.
const timeLayout = "2006-01-02T15:04:05.000Z07:00"

// journal is the record of the calls of one run. The Broker guards it.
type journal struct {
	run      contract.RunRef
	calls    []contract.Call
	refused  int64 // refused calls, listed or not
	admitted int64 // charged calls
	used     map[string]*used
	closed   bool
}

// used is what the calls of one tool used.
type used struct {
	contract.ToolUsage
	took time.Duration
}

// of returns what a tool used, to be added to.
func (j *journal) of(tool string) *used {
	u := j.used[tool]
	if u == nil {
		u = &used{ToolUsage: contract.ToolUsage{Name: tool}}
		j.used[tool] = u
	}
	return u
}

// tools is what every tool used that was called, sorted by name.
func (j *journal) tools() []contract.ToolUsage {
	var out []contract.ToolUsage
	for _, name := range slices.Sorted(maps.Keys(j.used)) {
		u := j.used[name].ToolUsage
		u.WallMs = j.used[name].took.Milliseconds()
		out = append(out, u)
	}
	return out
}

func (j *journal) snapshot() []contract.Call { return slices.Clone(j.calls) }

// refuse records a refused call, as long as the journal has room for it, and
// reports whether it had.
func (j *journal) refuse(name string, t *tool, r contract.Reason, at string) (c contract.Call, listed bool) {
	c = contract.Call{Tool: contract.Truncate(name, maxNameBytes), State: contract.CallRefused, Reason: r, StartTime: at, EndTime: at}
	if t != nil {
		c = t.fill(c)
	}
	if j.closed {
		return c, false
	}
	if listed = j.refused < contract.MaxRefusedCalls; listed {
		j.calls = append(j.calls, c)
	}
	j.refused++
	return c, listed
}

// admit charges a call, gives it its id and records the intent. It returns the
// place of the entry.
func (j *journal) admit(t *tool, digest, at string, bytes int) int {
	j.admitted++
	u := j.of(t.Tool.Tool.Name)
	u.Calls++
	u.ArgumentBytes += int64(bytes)
	j.calls = append(j.calls, t.fill(contract.Call{
		Seq: j.admitted, ID: j.run.CallID(j.admitted), Tool: t.Tool.Tool.Name,
		State: contract.CallDispatched, ArgumentsDigest: digest, StartTime: at,
	}))
	return len(j.calls) - 1
}

// fill adds what the grant says.
func (t *tool) fill(c contract.Call) contract.Call {
	c.Grant, c.GrantNamespace, c.GrantUID, c.GrantGeneration = t.Grant.Name, t.Grant.Namespace, t.Grant.UID, t.Grant.Generation
	c.Effect = t.effect()
	return c
}

func (t *tool) effect() contract.Effect { return t.Tool.Tool.Effect }

// stamp is a time in UTC as the journal spells it.
func stamp(t time.Time) string { return t.UTC().Format(timeLayout) }
