package contract

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

// TranscriptKey is the key of the transcript in its ConfigMap: its lines, packed
// by gzip.
const TranscriptKey = "transcript.jsonl.gz"

// Bounds of a transcript.
const (
	// MaxTranscriptBytes bounds the packed transcript, so that it fits a ConfigMap.
	MaxTranscriptBytes = 900_000
	// MaxTranscriptText bounds its lines, in bytes.
	MaxTranscriptText = 16 << 20
)

// TranscriptRef says where the transcript of an execution is.
// +kubebuilder:object:generate=true
type TranscriptRef struct {
	// configMap holds it; absent when it could not be stored.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	ConfigMap string `json:"configMap,omitempty"`
	// lastHash is the hash of its last record, which hangs on all before it.
	// +required
	// +kubebuilder:validation:MaxLength=71
	LastHash string `json:"lastHash"`
	// records counts its records.
	// +required
	Records int64 `json:"records"`
	// truncated says that it was too large and says so itself where something is left
	// out.
	// +optional
	Truncated bool `json:"truncated,omitempty"`
}

// TranscriptOrigin is the execution that a transcript is of.
type TranscriptOrigin struct {
	RunUID       string
	Generation   int64
	BundleDigest string
}

// seed is what the first record hangs on, so that no transcript passes for one of
// another execution.
func (o TranscriptOrigin) seed() string {
	return Digest(fmt.Appendf(nil, "codeact.dev/transcript.v1\n%s\n%d\n%s\n", o.BundleDigest, o.Generation, o.RunUID))
}

// Chain makes the records of a transcript, or follows them.
//
// A record is one line: the JSON text of an Event whose last member is its hash.
// The hash is the digest of the hash before it (of the first record: of the
// origin's), a line feed, and the line without that member and without the line
// feed at its end: exactly these bytes, so that nobody has to spell JSON the same way.
type Chain struct {
	records int64
	last    string
}

// NewChain begins the transcript of o.
func NewChain(o TranscriptOrigin) *Chain { return &Chain{last: o.seed()} }

// Ref says where the chain ends.
func (c *Chain) Ref() TranscriptRef { return TranscriptRef{LastHash: c.last, Records: c.records} }

// Record is a line that may become the next one of its Chain.
type Record struct {
	// Line ends with a line feed.
	Line []byte
	hash string
}

const (
	hashHead = `,"hash":"`
	hashTail = `"}`
	// hashBytes is the length of a line's last member, with the end of the object.
	hashBytes = len(hashHead) + len("sha256:") + 64 + len(hashTail)
)

// Next seals e as the next record. The chain stays as it is until Add.
func (c *Chain) Next(e Event) (Record, error) {
	e.N = c.records + 1
	line, err := e.Line()
	if err != nil {
		return Record{}, err
	}
	body := bytes.TrimSuffix(line, []byte("\n"))
	hash := c.seal(body)
	line = append(body[:len(body)-1:len(body)-1], hashHead+hash+hashTail+"\n"...)
	return Record{Line: line, hash: hash}, nil
}

// Add makes r, which Next has just made, the last record.
func (c *Chain) Add(r Record) {
	c.records++
	c.last = r.hash
}

func (c *Chain) seal(body []byte) string {
	return Digest(append(append(make([]byte, 0, len(c.last)+1+len(body)), c.last+"\n"...), body...))
}

// Line is the event as a line of the stream, not sealed. It fails when a value in
// it is no JSON.
func (e Event) Line() ([]byte, error) {
	e.Hash = ""
	var out bytes.Buffer
	w := json.NewEncoder(&out)
	w.SetEscapeHTML(false)
	if err := w.Encode(e); err != nil {
		return nil, fmt.Errorf("event %s: %w", e.Type, err)
	}
	return out.Bytes(), nil
}

// BrokenTranscript is the error of a transcript that is not what was written.
type BrokenTranscript struct {
	// Record is the number of the first record that does not hold.
	Record int64
	// Why says what is wrong with it.
	Why string
}

// Error implements error.
func (b *BrokenTranscript) Error() string {
	return fmt.Sprintf("record %d of the transcript does not hold: %s", b.Record, b.Why)
}

func (c *Chain) broken(format string, args ...any) error {
	return &BrokenTranscript{Record: c.records + 1, Why: fmt.Sprintf(format, args...)}
}

// follow takes a line, without its line feed, as the next record.
func (c *Chain) follow(line []byte) (e Event, err error) {
	if len(line) < hashBytes+2 {
		return e, c.broken("it is no record")
	}
	body, sealed := line[:len(line)-hashBytes], string(line[len(line)-hashBytes:])
	hash := sealed[len(hashHead) : len(sealed)-len(hashTail)]
	if sealed != hashHead+hash+hashTail || !ValidDigest(hash) {
		return e, c.broken("it is not sealed")
	}
	unread := json.Unmarshal(line, &e)
	if c.seal(append(slices.Clip(body), '}')) != hash {
		if unread == nil && e.N != c.records+1 {
			return e, c.broken("record %d is in its place: records are missing, or in another order", e.N)
		}
		return e, c.broken("it, or what is before it, is not what was written")
	}
	if unread != nil || e.N != c.records+1 || e.Hash != hash {
		return e, c.broken("it is sealed, and is no record of this version")
	}
	c.records, c.last = c.records+1, hash
	return e, nil
}

// ReadTranscript reads the lines of the transcript of an execution, packed or not,
// and calls visit, if it is set, with each record that holds. The error of visit
// ends it. The first record that does not hold is a *BrokenTranscript. What is
// returned is where the records end, which somebody must compare with what the pod
// reported: a chain alone does not show that its end was cut off.
//
// Without an origin, the first record's own word is taken.
func ReadTranscript(r io.Reader, from *TranscriptOrigin, visit func(line []byte, e Event) error) (TranscriptRef, error) {
	lines, err := unpacked(r)
	if err != nil {
		return TranscriptRef{}, err
	}
	var c *Chain
	truncated := false
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) && len(line) == 0 {
			break
		}
		if c == nil {
			c = NewChain(originOf(from, line))
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return c.Ref(), c.broken("the text cannot be read: %v", err)
		}
		if err != nil {
			return c.Ref(), c.broken("its line is cut off")
		}
		line = line[:len(line)-1]
		e, err := c.follow(line)
		if err != nil {
			return c.Ref(), err
		}
		truncated = truncated || e.Type == EventTruncated
		if visit == nil {
			continue
		}
		if err := visit(line, e); err != nil {
			return c.Ref(), err
		}
	}
	if c == nil {
		return TranscriptRef{}, &BrokenTranscript{Record: 1, Why: "there is none"}
	}
	ref := c.Ref()
	ref.Truncated = truncated
	return ref, nil
}

// originOf is what the transcript with this first line is said to be of.
func originOf(from *TranscriptOrigin, line []byte) TranscriptOrigin {
	if from != nil {
		return *from
	}
	var e Event
	if json.Unmarshal(line, &e) != nil {
		return TranscriptOrigin{}
	}
	return TranscriptOrigin{RunUID: e.RunUID, Generation: e.Generation, BundleDigest: e.BundleDigest}
}

// VerifyTranscript is ReadTranscript for who knows where the transcript ends: one
// that goes less far, or further, does not hold either.
func VerifyTranscript(r io.Reader, from TranscriptOrigin, want TranscriptRef, visit func(line []byte, e Event) error) error {
	got, err := ReadTranscript(r, &from, visit)
	switch {
	case err != nil:
		return err
	case got.Records < want.Records:
		return &BrokenTranscript{Record: got.Records + 1, Why: fmt.Sprintf("the transcript ends before it, and had %d records", want.Records)}
	case got.Records > want.Records:
		return &BrokenTranscript{Record: want.Records + 1, Why: fmt.Sprintf("the transcript had %d records only", want.Records)}
	case got.LastHash != want.LastHash:
		return &BrokenTranscript{Record: got.Records, Why: "its hash is not the one that the pod reported, so that any record may have been changed"}
	}
	return nil
}

var errTranscriptTooLarge = fmt.Errorf("it has more than %d bytes", MaxTranscriptText)

// unpacked are the lines of a text that may be packed. The text ends with an error
// where it becomes larger than any transcript.
func unpacked(r io.Reader) (*bufio.Reader, error) {
	raw := bufio.NewReader(r)
	if magic, _ := raw.Peek(2); string(magic) != "\x1f\x8b" {
		return bufio.NewReader(&atMost{raw, MaxTranscriptText}), nil
	}
	z, err := gzip.NewReader(raw)
	if err != nil {
		return nil, &BrokenTranscript{Record: 1, Why: "the transcript cannot be unpacked"}
	}
	return bufio.NewReader(&atMost{z, MaxTranscriptText}), nil
}

// atMost reads at most left bytes.
type atMost struct {
	r    io.Reader
	left int
}

// Read implements io.Reader.
func (b *atMost) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	if b.left -= n; b.left < 0 {
		return 0, errTranscriptTooLarge
	}
	return n, err
}
