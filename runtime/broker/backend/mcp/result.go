package mcp

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/runtime/broker"
)

// result is the server's answer, as far as anybody here reads it.
type result struct {
	Content           []block         `json:"content"`
	StructuredContent json.RawMessage `json:"structuredContent"`
	IsError           bool            `json:"isError"`
	ResultType        string          `json:"resultType"`
	Meta              struct {
		Receipt json.RawMessage `json:"codeact.dev/receipt"`
		Media   json.RawMessage `json:"codeact.dev/media"`
	} `json:"_meta"`
}

// block is one block of content. Only text ever gets to a program.
type block struct {
	Type     string          `json:"type"`
	Text     string          `json:"text"`
	MIMEType string          `json:"mimeType"`
	Data     json.RawMessage `json:"data"`
}

// shown is what a result says of the pictures in its content.
type shown struct {
	Marker   string            `json:"marker"`
	Geometry contract.Geometry `json:"geometry"`
}

// result makes an answer of a result, or the failure that it declares itself to
// be. One that cannot be read proves nothing.
func (b *Backend) result(s *session, text json.RawMessage, most int64) (broker.Answer, *broker.Failure) {
	var r result
	if err := json.Unmarshal(text, &r); err != nil {
		return broker.Answer{}, &broker.Failure{Message: "its answer is no result of a tool"}
	}
	if string(r.StructuredContent) == "null" {
		r.StructuredContent = nil
	}
	receipt := s.receipt(r.Meta.Receipt)
	if r.IsError {
		return broker.Answer{}, s.declaredError(r, receipt, s.shows(text))
	}
	if s.shows(text) {
		return broker.Answer{}, &broker.Failure{
			Proof: broker.Done, Reason: contract.ReasonChildResultInvalid, Final: true, Receipt: receipt,
			Message: "its answer holds the credential that it was sent, so nothing of it is kept",
		}
	}
	if r.ResultType != "" && r.ResultType != "complete" {
		return broker.Answer{}, &broker.Failure{Message: "it wants to be given something before it goes on, and a run gives nothing", Receipt: receipt}
	}
	value, err := b.value(r)
	if err != nil {
		return broker.Answer{}, &broker.Failure{Message: "its answer cannot be put into JSON", Receipt: receipt}
	}
	ans := broker.Answer{Body: value, Bytes: int64(len(value)), Digest: contract.Digest(value), Receipt: receipt, Media: r.media()}
	if ans.Bytes > most {
		ans.Body = value[:most+1]
	}
	return ans, nil
}

// value is what the program gets: the structured content; else the text, alone
// as a string or, where the output schema asks for something else, as the JSON
// that it spells; else null.
func (b *Backend) value(r result) (json.RawMessage, error) {
	if len(r.StructuredContent) > 0 {
		return r.StructuredContent, nil
	}
	texts := r.texts()
	switch len(texts) {
	case 0:
		return json.RawMessage("null"), nil
	case 1:
		str, err := encode(texts[0])
		if err != nil || b.output == nil || b.output.Validate(str) == nil {
			return str, err
		}
		if spelled := bytes.TrimSpace([]byte(texts[0])); json.Valid(spelled) {
			return spelled, nil
		}
		return str, nil
	}
	return encode(texts)
}

// encode spells a value as JSON, as JavaScript would: without HTML's escapes.
func encode(v any) (json.RawMessage, error) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), err
}

func (r result) texts() []string {
	var out []string
	for _, c := range r.Content {
		if c.Type == "text" {
			out = append(out, c.Text)
		}
	}
	return out
}

// media is what the tool showed, complete or not; nil without the marker. A
// picture that cannot be read has no data, which makes the whole incomplete.
func (r result) media() *contract.Media {
	var about shown
	if json.Unmarshal(r.Meta.Media, &about) != nil || about.Marker != contract.MediaMarker {
		return nil
	}
	m := &contract.Media{Marker: about.Marker, Geometry: about.Geometry}
	for _, c := range r.Content {
		if c.Type == "image" {
			p := contract.Picture{MIMEType: c.MIMEType}
			if json.Unmarshal(c.Data, &p.Data) != nil {
				p.Data = nil
			}
			m.Pictures = append(m.Pictures, p)
		}
	}
	if len(r.StructuredContent) > 0 {
		m.Text = strings.Join(r.texts(), "\n")
	}
	return m
}

func (s *session) receipt(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) != nil {
		return ""
	}
	return s.clean(text, contract.MaxReceiptBytes)
}

// declaredError is the failure of a tool that says itself that it failed. Of an
// answer that shows a credential only that is kept.
func (s *session) declaredError(r result, receipt string, shown bool) *broker.Failure {
	f := &broker.Failure{Proof: broker.Answered, Message: "it failed", Receipt: receipt}
	if shown {
		return f
	}
	if text := s.clean(strings.Join(r.texts(), " "), maxText); text != "" {
		f.Message = text
	}
	if len(r.StructuredContent) > 0 {
		f.Result = r.StructuredContent
	}
	f.Media = r.media()
	return f
}
