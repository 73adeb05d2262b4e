package mcp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// events is the body of an event stream as the SDK gets to read it: only events
// that a client without any capability of its own has a use for. Answers are
// kept aside in the server's own bytes, because the SDK makes floats of numbers.
type events struct {
	body    io.ReadCloser
	in      *bufio.Reader
	s       *session
	x       *exchange // nil for a stream that answers nothing
	limit   int64     // of one event, in bytes
	left    int64     // of the stream
	endless bool      // what is over stays silent instead of ending

	out  bytes.Buffer
	data bytes.Buffer
	id   []byte
	wait []byte // the stream's retry field
	any  bool   // the event has a field
	kind string // the event's name
	err  error
}

var errFlood = errors.New("the server sent too much")

func newEvents(body io.ReadCloser, s *session, x *exchange) *events {
	e := &events{body: body, in: bufio.NewReader(body), s: s, x: x, limit: maxNotice, left: maxStream, endless: x == nil}
	if x != nil {
		e.limit, e.left = x.limit, x.limit+maxStream
	}
	return e
}

// Close implements io.Closer.
func (e *events) Close() error { return e.body.Close() }

// Read implements io.Reader.
func (e *events) Read(p []byte) (int, error) {
	for e.out.Len() == 0 {
		if e.err != nil {
			return 0, e.end()
		}
		e.line()
	}
	return e.out.Read(p)
}

// end ends the stream. The SDK breaks the session, and with it a call on its
// way, when a stream for notices ends a few times: such a stream only falls
// silent, and the session knows that it no longer hears.
func (e *events) end() error {
	if !e.endless {
		e.x.ended()
		return e.err
	}
	e.s.deaf.Store(true)
	_ = e.body.Close()
	<-e.s.ctx.Done()
	return io.ErrUnexpectedEOF
}

// line reads one line of the stream and, behind the last one of an event, judges
// the event.
func (e *events) line() {
	line, err := e.readLine()
	if err != nil {
		e.err = err
		if errors.Is(err, io.EOF) && len(line) == 0 && json.Valid(e.data.Bytes()) {
			e.event() // a server that leaves out the last blank line
		}
		return
	}
	line = bytes.TrimRight(line, "\r\n")
	if len(line) == 0 {
		e.event()
		return
	}
	name, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(name) {
	case "data":
		if e.data.Len() > 0 {
			e.data.WriteByte('\n')
		}
		e.data.Write(value)
	case "event":
		e.kind = string(value)
	case "id":
		e.id = bytes.Clone(value)
	case "retry":
		e.wait = bytes.Clone(value)
	}
	e.any = true
}

// readLine reads a line within the bounds of the event and of the stream.
func (e *events) readLine() ([]byte, error) {
	var line []byte
	for {
		part, err := e.in.ReadSlice('\n')
		e.left -= int64(len(part))
		line = append(line, part...)
		if int64(e.data.Len()+len(line)) > e.limit {
			e.tooLarge(line)
			return nil, errFlood
		}
		if e.left < 0 {
			e.flooded()
			return nil, errFlood
		}
		switch {
		case err == nil:
			return line, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			if errors.Is(err, io.EOF) {
				err = io.EOF
			}
			return line, err
		}
	}
}

func (e *events) tooLarge(line []byte) {
	if e.x == nil {
		return
	}
	if e.data.Len() == 0 {
		e.data.Write(bytes.TrimPrefix(bytes.TrimPrefix(line, []byte("data:")), []byte(" ")))
	}
	if !startsAnswer(e.data.Bytes()) {
		e.flooded()
		return
	}
	n := int64(e.data.Len())
	e.x.note(func(x *exchange) { x.tooLarge = n })
	e.x.lost()
}

// tooMany is tooLarge for a message with too many values.
func (e *events) tooMany(text []byte) {
	e.err = errFlood
	if json.Valid(text) {
		e.tooLarge(nil)
	} else {
		e.flooded()
	}
}

func (e *events) flooded() {
	if e.x == nil {
		return
	}
	e.x.note(func(x *exchange) { x.flood = true })
	e.x.lost()
}

// event passes one event on, or drops it. Its id stays with the stream either
// way, so that a stream that is resumed goes on behind it.
func (e *events) event() {
	pass := e.any
	if e.kind != "" && e.kind != "message" {
		e.data.Reset()
	}
	text := e.data.Bytes()
	if len(text) > 0 {
		n := values(text)
		if e.x != nil && n > e.x.mostValues() {
			e.tooMany(text)
			return
		}
		m := parse(text)
		if pass = m.bounded(n) && e.s.admits(m, e.x); !pass {
			e.data.Reset()
			pass = len(e.id) > 0
		} else if e.x != nil && m.Method == nil {
			e.err = io.EOF // the answer: nothing behind it matters
			text = e.x.shown(m, text)
		}
	}
	if pass {
		if len(e.id) > 0 {
			fmt.Fprintf(&e.out, "id: %s\n", e.id)
		}
		if len(e.wait) > 0 {
			fmt.Fprintf(&e.out, "retry: %s\n", e.wait)
		}
		if e.data.Len() > 0 {
			e.out.WriteString("data: ")
			_ = json.Compact(&e.out, text)
			e.out.WriteByte('\n')
		}
		e.out.WriteByte('\n')
	}
	e.data.Reset()
	e.id, e.wait, e.kind, e.any = nil, nil, "", false
}

// whole is the body of a JSON response: one answer, read within its bound.
type whole struct {
	body io.ReadCloser
	s    *session
	x    *exchange
	text *bytes.Reader
}

// Close implements io.Closer.
func (w *whole) Close() error { return w.body.Close() }

// Read implements io.Reader.
func (w *whole) Read(p []byte) (int, error) {
	if w.text == nil {
		if err := w.read(); err != nil {
			return 0, err
		}
	}
	return w.text.Read(p)
}

func (w *whole) read() error {
	text, err := io.ReadAll(io.LimitReader(w.body, w.x.limit+1))
	switch {
	case err != nil:
		return err
	case int64(len(text)) > w.x.limit, values(text) > w.x.mostValues() && json.Valid(text):
		if startsAnswer(text) {
			w.x.note(func(x *exchange) { x.tooLarge = int64(len(text)) })
		} else {
			w.x.note(func(x *exchange) { x.flood = true })
		}
		return errFlood
	}
	m := parse(text)
	if values(text) > w.x.mostValues() || m == nil || m.Method != nil || !w.s.admits(m, w.x) {
		return errors.New("the body is no answer")
	}
	w.text = bytes.NewReader(w.x.shown(m, text))
	return nil
}
