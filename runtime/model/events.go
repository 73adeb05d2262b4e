package model

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
)

// events reads server-sent events. The SDK's decoder drops what stands behind the
// last blank line, so that a stream that was cut inside a frame looks like one that
// ended.
type events struct{ r *bufio.Reader }

// next returns the next event with data in it; its end is io.EOF. Comments, events
// without data, and comments that a gateway made data of are passed over.
func (e *events) next() (name string, data []byte, err error) {
	var left bool
	for {
		line, err := e.line(maxDocumentBytes - len(data))
		ended := errors.Is(err, io.EOF)
		if err != nil && !ended {
			return "", nil, err
		}
		if len(line) > 0 {
			field, value, _ := bytes.Cut(line, []byte(":"))
			value = bytes.TrimPrefix(value, []byte(" "))
			switch string(field) {
			case "event":
				name = string(value)
			case "data":
				if left {
					data = append(data, '\n')
				}
				data, left = append(data, value...), true
			}
			if !ended {
				continue
			}
		}
		trimmed := bytes.TrimSpace(data)
		switch {
		case len(trimmed) > 0 && trimmed[0] != ':':
			if ended && string(trimmed) != "[DONE]" && !json.Valid(trimmed) {
				return "", nil, broken("its stream was cut inside a frame")
			}
			return name, trimmed, nil
		case ended && len(line) > 0 && line[0] != ':' && !left:
			return "", nil, broken("its stream was cut inside a frame")
		case ended:
			return "", nil, io.EOF
		}
		name, data, left = "", nil, false
	}
}

// line returns one line without its end. With io.EOF it is what stands behind the
// last end of a line.
func (e *events) line(most int) ([]byte, error) {
	var out []byte
	for {
		part, err := e.r.ReadSlice('\n')
		out = append(out, part...)
		if len(out) > most {
			return nil, refused("a frame of its stream is longer than %d bytes", maxDocumentBytes)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		return bytes.TrimRight(out, "\r\n"), err
	}
}
