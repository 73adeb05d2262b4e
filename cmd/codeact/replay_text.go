package main

import (
	"bytes"
	"cmp"
	"fmt"
	"io"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/runtime/replay"
)

// writeReplayText writes a replay as a person reads it.
func writeReplayText(w io.Writer, t *transcript, rep replay.Report) error {
	var out bytes.Buffer
	v := view{&out}
	v.line(0, "run %s (%s), execution %d: %d records, %s", rep.Run, rep.RunUID, rep.Generation, len(t.events), t.checked)
	for _, n := range rep.Notes {
		v.line(0, "NOTE: %s", n)
	}
	count := map[replay.Verdict]int{}
	calls := 0
	for _, p := range rep.Programs {
		count[p.Verdict]++
		calls += p.Calls
		v.replayed(p)
	}
	if rep.DirectCalls > 0 {
		v.line(0, "%s by the model itself: no program is behind them, and nothing is replayed", counted(rep.DirectCalls, "call"))
	}
	verdict := map[replay.Verdict]string{replay.Holds: "holds", replay.Diverges: "DIVERGES", replay.Unverified: "NOT VERIFIED"}[rep.Verdict]
	text := fmt.Sprintf("%s: %d of %s with %s", verdict, count[replay.Holds], counted(len(rep.Programs), "program"), counted(calls, "call"))
	if n := count[replay.Diverges]; n > 0 {
		text += fmt.Sprintf(", %d diverging", n)
	}
	if n := count[replay.Unverified]; n > 0 {
		text += fmt.Sprintf(", %d not verified", n)
	}
	v.line(0, "%s", text)
	_, err := w.Write(out.Bytes())
	return err
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// programTitle names a program of a run.
func programTitle(step int64, id, tool, recipe string) string {
	what := "the program"
	if recipe != "" {
		what = "recipe " + recipe
	} else if tool != "" {
		what = tool
	}
	if step == 0 {
		return what
	}
	return fmt.Sprintf("step %d, %s %s", step, what, id)
}

func (v view) replayed(p replay.Result) {
	title := programTitle(p.Step, p.ID, p.Tool, p.Recipe)
	end := "the failure " + string(p.Reason)
	if p.Reason == "" {
		end = "the output"
		if p.OutputBytes > 0 {
			end += " of " + counted(p.OutputBytes, "byte")
		}
		end += " " + p.OutputDigest
	}
	switch {
	case p.Divergence != nil:
		v.line(0, "%s: DIVERGES: %s", title, p.Divergence.Title())
		v.divergence(1, *p.Divergence)
	case p.Verdict == replay.Unverified:
		v.line(0, "%s: NOT VERIFIED: %s; %d of %s as recorded", title, p.Why, p.Calls, counted(p.Recorded, "call"))
	case p.Why != "":
		v.line(0, "%s: holds: %s", title, p.Why)
	default:
		v.line(0, "%s: holds: %s, %s", title, counted(p.Calls, "call"), end)
	}
}

// divergence writes two values, and before them the parts that differ first.
func (v view) divergence(indent int, d replay.Divergence) {
	if d.At != "" && d.At != "$" {
		v.line(indent, "recorded %s = %s", d.At, short(cmp.Or(d.RecordedPart, "nothing")))
		v.line(indent, "replayed %s = %s", d.At, short(cmp.Or(d.ReplayedPart, "nothing")))
	}
	v.line(indent, "recorded %s", short(cmp.Or(d.Recorded, "no call")))
	v.line(indent, "replayed %s", short(cmp.Or(d.Replayed, "no call")))
}

func short(text string) string {
	if len(text) <= shortBytes {
		return text
	}
	return contract.Truncate(text, shortBytes) + " …"
}

// writeComparisons writes what another recipe does otherwise.
func writeComparisons(w io.Writer, t *transcript, all comparisons) error {
	var out bytes.Buffer
	v := view{&out}
	v.line(0, "run %s (%s), execution %d: %d records, %s", all.Run, all.RunUID, all.Generation, len(t.events), t.checked)
	differ := 0
	for _, c := range all.Programs {
		if !c.Same {
			differ++
		}
		v.comparison(c)
	}
	if all.Same {
		v.line(0, "the same: %s", counted(len(all.Programs), "execution"))
	} else {
		v.line(0, "DIFFERENT: %d of %s", differ, counted(len(all.Programs), "execution"))
	}
	_, err := w.Write(out.Bytes())
	return err
}

func (v view) comparison(c replacementDiff) {
	word := "differs"
	if c.Same {
		word = "the same"
	}
	v.line(0, "%s, with %s: %s", programTitle(c.Step, c.ID, c.Tool, c.Recipe), c.Dir, word)
	for _, x := range c.Calls {
		place := fmt.Sprintf("call %d, %s", cmp.Or(x.After, x.Before), x.Tool)
		switch x.Change {
		case replay.Same:
			v.line(1, "  %s: as recorded", place)
		case replay.Moved:
			v.line(1, "~ %s: it was call %d", place, x.Before)
		case replay.Gone:
			v.line(1, "- %s: not made any more: %s", place, short(x.Recorded))
		case replay.Unreached:
			v.line(1, "? %s: not reached", place)
		case replay.New:
			v.line(1, "+ %s: new: %s", place, short(x.Replayed))
		case replay.Changed:
			v.line(1, "! %s: other arguments, first at %s", place, cmp.Or(x.At, "$"))
			v.divergence(3, replay.Divergence{At: x.At, RecordedPart: x.RecordedPart, ReplayedPart: x.ReplayedPart, Recorded: x.Recorded, Replayed: x.Replayed})
		}
	}
	if c.Why != "" {
		v.line(1, "%s", c.Why)
	}
	v.line(1, "before: %s", short(c.Before))
	v.line(1, "after:  %s", short(cmp.Or(c.After, "not known")))
	if c.At != "" && c.At != "$" {
		v.line(1, "%s was %s, and is %s", c.At, short(cmp.Or(c.RecordedPart, "nothing")), short(cmp.Or(c.ReplayedPart, "nothing")))
	}
}
