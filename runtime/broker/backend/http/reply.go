package http

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/runtime/broker"
	"github.com/codeact-dev/codeact-operator/runtime/broker/backend/egress"
)

// maxHashedBytes bounds how much of an answer that is too large is read for its
// digest.
const maxHashedBytes = 16 << 20

// reply is a response whose header is there.
type reply struct {
	res    *http.Response
	most   int64 // bytes of the result
	form   contract.ResponseForm
	secret egress.Secret
}

// read takes the response apart. Nothing of its body gets into a message but what
// a problem document says.
func (r *reply) read() (broker.Answer, error) {
	switch c := r.res.StatusCode; {
	case c == http.StatusAccepted:
		return broker.Answer{}, r.fail(&broker.Failure{Reason: contract.ReasonCallDeferred, Message: "it will answer later (202 Accepted), and a run never waits for that"})
	case c == http.StatusNoContent, c == http.StatusResetContent:
		return r.answer([]byte("null")), nil
	case c >= 300 && c < 400:
		// 307 and 308 ask for the same request elsewhere. The others are also what
		// servers send after they did the work, to show where its result is.
		f := &broker.Failure{Final: true, Message: fmt.Sprintf("it answered with a redirect (%d), and redirects are not followed", c)}
		if c == http.StatusTemporaryRedirect || c == http.StatusPermanentRedirect {
			f.Proof = broker.Answered
		}
		return broker.Answer{}, r.fail(f)
	case c < 200 || c > 299:
		return broker.Answer{}, r.refusal()
	}
	if e := r.res.Header.Get("Content-Encoding"); e != "" && !strings.EqualFold(e, "identity") {
		return broker.Answer{}, r.fail(&broker.Failure{Message: "it answered with a content encoding that nobody asked for"})
	}
	return r.success()
}

// fail adds to a failure what the header proves.
func (r *reply) fail(f *broker.Failure) *broker.Failure {
	if f.Receipt == "" {
		f.Receipt = r.receipt(r.res.Header.Get(contract.ReceiptHeader))
	}
	return f
}

// receipt returns a receipt that may be kept: it is printable, bounded, and does
// not hold the credential.
func (r *reply) receipt(text string) string {
	text = strings.TrimSpace(text)
	if !utf8.ValidString(text) || strings.ContainsFunc(text, func(c rune) bool { return !unicode.IsPrint(c) }) {
		return ""
	}
	return contract.Truncate(r.secret.Clean(text), contract.MaxReceiptBytes)
}

// mediaType is the content type without its parameters, in lower case.
func (r *reply) mediaType() string {
	t, _, err := mime.ParseMediaType(r.res.Header.Get("Content-Type"))
	if err != nil {
		return ""
	}
	return t
}

// answer is a result that is as large as allowed or not, with its own digest.
func (r *reply) answer(value []byte) broker.Answer {
	return broker.Answer{
		Body: value[:min(int64(len(value)), r.most+1)], Bytes: int64(len(value)), Digest: contract.Digest(value),
		Receipt: r.receipt(r.res.Header.Get(contract.ReceiptHeader)),
	}
}

func (r *reply) success() (broker.Answer, error) {
	most, enveloped := r.most, r.mediaType() == contract.ResultMediaType
	if enveloped {
		most = contract.MaxToolResultBytes(most)
	}
	body, err := io.ReadAll(io.LimitReader(r.res.Body, most+1))
	if err != nil {
		return broker.Answer{}, r.fail(&broker.Failure{Message: "its answer broke off"})
	}
	if r.secret.In(body) {
		return broker.Answer{}, r.fail(&broker.Failure{
			Proof: broker.Done, Reason: contract.ReasonChildResultInvalid, Final: true,
			Message: "its answer holds the credential that it was sent, so nothing of it is kept",
		})
	}
	if int64(len(body)) > most {
		return r.tooLarge(body), nil
	}
	switch {
	case enveloped:
		return r.unwrap(body)
	case r.form == contract.ResponseText:
		return r.text(body)
	}
	return r.json(body)
}

// tooLarge counts and hashes what is behind the allowed bytes, up to a bound. The
// digest is of the body as it came.
func (r *reply) tooLarge(body []byte) broker.Answer {
	h := sha256.New()
	_, _ = h.Write(body)
	n, err := io.Copy(h, io.LimitReader(r.res.Body, maxHashedBytes+1))
	ans := r.answer(body)
	ans.Bytes, ans.Digest = max(int64(len(body))+n, r.most+1), ""
	if err == nil && n <= maxHashedBytes {
		ans.Digest = "sha256:" + hex.EncodeToString(h.Sum(nil))
	}
	return ans
}

// endless reports whether the answer ends only with its connection, so that one
// that was cut looks like a whole one.
func (r *reply) endless() bool {
	return r.res.ContentLength < 0 && len(r.res.TransferEncoding) == 0
}

// json takes a body as JSON; whether it is any is the broker's to judge. An empty
// body that is whole is null. A number that the connection ends may be the
// beginning of another one.
func (r *reply) json(body []byte) (broker.Answer, error) {
	switch text := bytes.TrimSpace(body); {
	case len(text) == 0 && !r.endless():
		return r.answer([]byte("null")), nil
	case len(text) > 0 && text[0] != '{' && text[0] != '[' && text[0] != '"' && r.endless():
		return broker.Answer{}, r.fail(&broker.Failure{Message: "its answer says nowhere how long it is, so it may not be whole"})
	}
	return r.answer(body), nil
}

// text makes one JSON string of the body.
func (r *reply) text(body []byte) (broker.Answer, error) {
	switch {
	case r.endless():
		return broker.Answer{}, r.fail(&broker.Failure{Message: "its answer says nowhere how long it is, so it may not be whole"})
	case !utf8.Valid(body):
		return broker.Answer{}, r.fail(&broker.Failure{Message: "its answer is not text in UTF-8"})
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(string(body)); err != nil {
		return broker.Answer{}, r.fail(&broker.Failure{Message: "its answer is not text in UTF-8"})
	}
	return r.answer(bytes.TrimSuffix(out.Bytes(), []byte("\n"))), nil
}

// unwrap takes the value out of a tool result, and what is not the program's.
func (r *reply) unwrap(body []byte) (broker.Answer, error) {
	x, err := contract.DecodeToolResult(body)
	if err != nil {
		return broker.Answer{}, r.fail(&broker.Failure{Message: "its answer is no " + contract.ResultMediaType})
	}
	ans := r.answer(x.Value)
	ans.Media = x.Media
	if own := r.receipt(x.Receipt); own != "" {
		ans.Receipt = own
	}
	return ans, nil
}
