package contract

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
)

const (
	// ResultMediaType marks the body of an HTTP answer as a ToolResult instead of
	// the bare result.
	ResultMediaType = "application/vnd.codeact.result+json"
	// ReceiptHeader is the header of an HTTP answer that holds a receipt: printable
	// text, cut to MaxReceiptBytes.
	ReceiptHeader = "Codeact-Receipt"
)

// ToolResult is the body of an answer of ResultMediaType:
//
//	{"value": any,
//	 "media": {"marker": "codeact.dev/geometry-bound.v1", "text": "...",
//	           "geometry": {"width": 1, "height": 1},
//	           "pictures": [{"mimeType": "image/png", "data": "<base64>"}]},
//	 "receipt": "..."}
//
// Value is what the program gets, and must be there; it is what limits.outputBytes
// bounds and what the digest in the journal is of. Media and receipt never reach
// the program. There are no other members.
type ToolResult struct {
	Value json.RawMessage `json:"value"`
	// Media is nil when there is none with the marker; it need not be complete.
	Media *Media `json:"media,omitempty"`
	// Receipt is what the tool gives as proof of its effect.
	Receipt string `json:"receipt,omitempty"`
}

// resultSlackBytes is room for the members' names and the receipt.
const resultSlackBytes = 8 << 10

// MaxToolResultBytes bounds the text of a ToolResult whose value may have most bytes.
func MaxToolResultBytes(most int64) int64 { return most + MaxMediaBytes + resultSlackBytes }

// DecodeToolResult reads a ToolResult. Text that is none is an error, but media
// that cannot be read is only incomplete.
func DecodeToolResult(text []byte) (ToolResult, error) {
	var raw struct {
		Value   json.RawMessage `json:"value"`
		Media   json.RawMessage `json:"media"`
		Receipt string          `json:"receipt"`
	}
	if err := strictly(text, &raw); err != nil {
		return ToolResult{}, errors.New("the text is no tool result: an object of value, media and receipt")
	}
	if raw.Value == nil {
		return ToolResult{}, errors.New("the tool result has no value")
	}
	return ToolResult{Value: raw.Value, Media: markedMedia(raw.Media), Receipt: raw.Receipt}, nil
}

func markedMedia(text json.RawMessage) *Media {
	m, err := readMedia(text)
	if err != nil {
		var marker struct {
			Marker string `json:"marker"`
		}
		_ = json.Unmarshal(text, &marker)
		m = Media{Marker: marker.Marker}
	}
	if m.Marker != MediaMarker {
		return nil
	}
	return &m
}

// readMedia reads media picture by picture, so that a list of a million takes no
// more memory than one of MaxMediaPictures.
func readMedia(text json.RawMessage) (Media, error) {
	var raw struct {
		Marker   string          `json:"marker"`
		Text     string          `json:"text"`
		Geometry Geometry        `json:"geometry"`
		Pictures json.RawMessage `json:"pictures"`
	}
	if err := strictly(text, &raw); err != nil {
		return Media{}, err
	}
	m := Media{Marker: raw.Marker, Text: raw.Text, Geometry: raw.Geometry}
	if raw.Pictures == nil || string(raw.Pictures) == "null" {
		return m, nil
	}
	d := json.NewDecoder(bytes.NewReader(raw.Pictures))
	d.DisallowUnknownFields()
	if t, err := d.Token(); err != nil || t != json.Delim('[') {
		return m, errors.New("the pictures are no list")
	}
	for d.More() {
		var p Picture
		if len(m.Pictures) == MaxMediaPictures {
			return m, errTooManyPictures
		}
		if err := d.Decode(&p); err != nil {
			return m, err
		}
		m.Pictures = append(m.Pictures, p)
	}
	return m, nil
}

func strictly(text []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("text after the JSON value")
	}
	return nil
}
