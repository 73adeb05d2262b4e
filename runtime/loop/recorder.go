package loop

import (
	"bytes"
	"compress/gzip"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

// space is a number of bytes, packed and not.
type space struct{ packed, text int }

// What a transcript may fill with contents, with events without them, and with the
// end of the run, which always fits.
var (
	forAll      = space{contract.MaxTranscriptBytes, contract.MaxTranscriptText}
	forEvents   = space{forAll.packed - 8<<10, forAll.text - 64<<10}
	forContents = space{forEvents.packed - 64<<10, forEvents.text - 1<<20}
)

// recorder packs the transcript as it grows: only packed bytes are held.
type recorder struct {
	origin contract.TranscriptOrigin
	chain  *contract.Chain
	out    bytes.Buffer
	zip    *gzip.Writer
	// text counts the bytes of all lines, pending those that may not be in out yet.
	text, pending int
	// contents, events and all are the room that there is.
	contents, events, all space
	// truncated says that contents are not taken any more.
	truncated bool
	omitted   contract.Omitted
	closed    bool
}

func newRecorder(o contract.TranscriptOrigin) *recorder {
	r := &recorder{origin: o, chain: contract.NewChain(o), contents: forContents, events: forEvents, all: forAll}
	// The fastest level needs half the time of the default one, and a sixth more
	// room (BenchmarkRecorder).
	r.zip, _ = gzip.NewWriterLevel(&r.out, gzip.BestSpeed)
	return r
}

// record takes e and returns its line as it stands in the transcript, behind a line
// that says that contents end here, if they do. An event for which there is no room
// is a line that is not sealed. ending says that the run ends with e.
func (r *recorder) record(e contract.Event, ending bool) [][]byte {
	var lines [][]byte
	if e.Content != nil && !r.closed {
		if !r.truncated {
			if line := r.add(e, r.contents); line != nil {
				return [][]byte{line}
			}
		}
		e.Content = e.Content.Bare()
		r.omitted.Contents++
		r.omitted.Bytes += e.Content.OmittedBytes()
		if !r.truncated {
			r.truncated = true
			lines = append(lines, r.told(r.mark(e), r.events))
		}
	}
	room := r.events
	if ending {
		room = r.all
	}
	return append(lines, r.told(e, room))
}

// mark is the event that says what is left out so far.
func (r *recorder) mark(of contract.Event) contract.Event {
	omitted := r.omitted
	return contract.Event{
		Type: contract.EventTruncated, Time: of.Time, Run: of.Run, RunUID: of.RunUID, Generation: of.Generation, Step: of.Step, Omitted: &omitted,
	}
}

// told is the line of an event that says no contents, recorded or not.
func (r *recorder) told(e contract.Event, room space) []byte {
	if !r.closed {
		if line := r.add(e, room); line != nil {
			return line
		}
		r.omitted.Records++
	}
	line, err := e.Line()
	if err != nil {
		return nil
	}
	return line
}

// add makes e the next record and returns its line, or nil when there is no room.
func (r *recorder) add(e contract.Event, room space) []byte {
	rec, err := r.chain.Next(e)
	if err != nil || r.text+len(rec.Line) > room.text || !r.pack(rec.Line, room.packed) {
		return nil
	}
	r.chain.Add(rec)
	r.text += len(rec.Line)
	return rec.Line
}

// largest is the most that n bytes may become with the end of the packed text: the
// format stores what it cannot pack in blocks of 5 bytes more.
func largest(n int) int { return n + 5*(n/(16<<10)+2) + 64 }

// pack packs the line if that leaves at most room bytes, whatever the line is; or,
// if that is not certain, by itself, to see how large it really becomes.
func (r *recorder) pack(line []byte, room int) bool {
	if r.out.Len()+largest(r.pending+len(line)) > room {
		_ = r.zip.Flush()
		r.pending = 0
	}
	if r.out.Len()+largest(len(line)) > room {
		return room == r.contents.packed && r.packAlone(line, room)
	}
	_, _ = r.zip.Write(line)
	r.pending += len(line)
	return true
}

// packAlone makes a member of its own of the line: readers of the format read
// members one after another.
func (r *recorder) packAlone(line []byte, room int) bool {
	_ = r.zip.Close()
	var member bytes.Buffer
	r.zip.Reset(&member)
	_, _ = r.zip.Write(line)
	_ = r.zip.Close()
	r.zip.Reset(&r.out)
	if r.out.Len()+member.Len()+largest(0) > room {
		return false
	}
	_, _ = member.WriteTo(&r.out)
	return true
}

// close ends the transcript with what was left out, if anything was. of is the last
// event of the run.
func (r *recorder) close(of contract.Event) [][]byte {
	if r.closed {
		return nil
	}
	var lines [][]byte
	if r.omitted != (contract.Omitted{}) {
		r.truncated = true
		lines = append(lines, r.told(r.mark(of), r.all))
	}
	_ = r.zip.Close()
	r.closed = true
	return lines
}

// ref says where the transcript ends.
func (r *recorder) ref() contract.TranscriptRef {
	ref := r.chain.Ref()
	ref.Truncated = r.truncated
	return ref
}
