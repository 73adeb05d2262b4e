package http

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/runtime/broker"
)

// with answers with a status, headers and a body.
func with(code int, body string, headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i+1 < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(code)
		_, _ = io.WriteString(w, body)
	}
}

func TestText(t *testing.T) {
	tests := map[string]struct {
		body, want string
		wantBytes  int64
		wantFails  bool
	}{
		"text":                       {body: "a\n\"b\" <c> é😀\u2028", want: `"a\n\"b\" <c> é😀\u2028"`},
		"JSON is text, too":          {body: `{"a":1}`, want: `"{\"a\":1}"`},
		"nothing":                    {body: "", want: `""`},
		"not UTF-8":                  {body: "a\xff", wantFails: true},
		"half a character":           {body: "é"[:1], wantFails: true},
		"exactly the bound":          {body: strings.Repeat("x", 998), want: `"` + strings.Repeat("x", 998) + `"`},
		"quotes make it more":        {body: strings.Repeat("x", 999), wantBytes: 1001},
		"escapes make it much more":  {body: strings.Repeat("\x01", 500), wantBytes: 3002},
		"more as it comes":           {body: strings.Repeat("x", 5000), wantBytes: 5000},
		"its first bytes are UTF-8?": {body: strings.Repeat("x", 1000) + "\xff", wantBytes: 1001},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewServer(status(200, tc.body))
			defer s.Close()
			p := tool(s.URL)
			p.Backend.HTTP.Response = contract.ResponseText
			ans, f := call(t, newBackend(t, local, p, nil))
			if (f != nil) != tc.wantFails {
				t.Fatalf("failure %v, want one: %v", f, tc.wantFails)
			}
			switch {
			case f != nil:
				if f.Proof != broker.Unproven {
					t.Errorf("failure %+v, want Unproven", f)
				}
			case tc.wantBytes > 0:
				if ans.Bytes != tc.wantBytes || len(ans.Body) > 1001 {
					t.Errorf("%d bytes, %d kept, want %d", ans.Bytes, len(ans.Body), tc.wantBytes)
				}
			case string(ans.Body) != tc.want || ans.Digest != contract.Digest(ans.Body) || ans.Bytes != int64(len(tc.want)):
				t.Errorf("answer %+v, want %s", ans, tc.want)
			}
		})
	}
	t.Run("without its length", func(t *testing.T) {
		s := httptest.NewServer(endless("abc"))
		defer s.Close()
		p := tool(s.URL)
		p.Backend.HTTP.Response = contract.ResponseText
		if _, f := call(t, newBackend(t, local, p, nil)); f == nil || f.Proof != broker.Unproven {
			t.Errorf("failure %+v, want Unproven", f)
		}
	})
}

func TestToolResult(t *testing.T) {
	media := &contract.Media{
		Marker: contract.MediaMarker, Text: "now", Geometry: contract.Geometry{Width: 2, Height: 1},
		Pictures: []contract.Picture{{MIMEType: "image/png", Data: []byte("png")}},
	}
	const picture = `{"marker":"codeact.dev/geometry-bound.v1","text":"now","geometry":{"width":2,"height":1},"pictures":[{"mimeType":"image/png","data":"cG5n"}]}`
	large := `"` + strings.Repeat("x", 999) + `"`
	tests := map[string]struct {
		body        string
		want        string
		wantReceipt string
		wantMedia   *contract.Media
		wantBytes   int64
		wantFails   bool
	}{
		"value":                   {body: ` { "value" : {"a": 1} } `, want: `{"a": 1}`, wantReceipt: "h"},
		"null":                    {body: `{"value":null}`, want: `null`, wantReceipt: "h"},
		"all":                     {body: `{"value":1,"media":` + picture + `,"receipt":"own"}`, want: "1", wantReceipt: "own", wantMedia: media},
		"media of no marker":      {body: `{"value":1,"media":{"text":"x"}}`, want: "1", wantReceipt: "h"},
		"null media":              {body: `{"value":1,"media":null}`, want: "1", wantReceipt: "h"},
		"media that is not whole": {body: `{"value":1,"media":{"marker":"codeact.dev/geometry-bound.v1","pictures":7}}`, want: "1", wantReceipt: "h", wantMedia: &contract.Media{Marker: contract.MediaMarker}},
		"media with more":         {body: `{"value":1,"media":{"marker":"codeact.dev/geometry-bound.v1","x":7}}`, want: "1", wantReceipt: "h", wantMedia: &contract.Media{Marker: contract.MediaMarker}},
		"media that is none":      {body: `{"value":1,"media":[1]}`, want: "1", wantReceipt: "h"},
		"unprintable receipt":     {body: `{"value":1,"receipt":"a\nb"}`, want: "1", wantReceipt: "h"},
		"long receipt":            {body: `{"value":1,"receipt":"` + strings.Repeat("r", 2000) + `"}`, want: "1", wantReceipt: contract.Truncate(strings.Repeat("r", 2000), contract.MaxReceiptBytes)},
		"a value too large":       {body: `{"value":` + large + `}`, wantBytes: 1001, wantReceipt: "h"},
		"all too large":           {body: `{"value":1,"receipt":"` + strings.Repeat("r", contract.MaxMediaBytes+16<<10) + `"}`, wantBytes: contract.MaxMediaBytes + 16<<10 + 24, wantReceipt: "h"},
		"no value":                {body: `{"receipt":"x"}`, wantFails: true, wantReceipt: "h"},
		"another member":          {body: `{"value":1,"extra":2}`, wantFails: true, wantReceipt: "h"},
		"no object":               {body: `1`, wantFails: true, wantReceipt: "h"},
		"two objects":             {body: `{"value":1}{"value":2}`, wantFails: true, wantReceipt: "h"},
		"no JSON":                 {body: `{"value":1`, wantFails: true, wantReceipt: "h"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewServer(with(200, tc.body, "Content-Type", contract.ResultMediaType+"; charset=utf-8", contract.ReceiptHeader, "h"))
			defer s.Close()
			ans, f := call(t, newBackend(t, local, tool(s.URL), nil))
			if (f != nil) != tc.wantFails {
				t.Fatalf("failure %v, want one: %v", f, tc.wantFails)
			}
			if f != nil {
				if f.Proof != broker.Unproven || f.Receipt != tc.wantReceipt {
					t.Errorf("failure %+v", f)
				}
				return
			}
			if ans.Receipt != tc.wantReceipt || cmp.Diff(tc.wantMedia, ans.Media) != "" {
				t.Errorf("receipt %.50q, media %+v", ans.Receipt, ans.Media)
			}
			if tc.wantBytes > 0 {
				if ans.Bytes != tc.wantBytes || len(ans.Body) > 1001 || ans.Digest == "" {
					t.Errorf("%d bytes, %d kept, want %d", ans.Bytes, len(ans.Body), tc.wantBytes)
				}
				return
			}
			if string(ans.Body) != tc.want || ans.Digest != contract.Digest([]byte(tc.want)) {
				t.Errorf("answer %+v, want %s", ans, tc.want)
			}
		})
	}
}

func TestRefusals(t *testing.T) {
	const date = "Mon, 02 Mar 2026 12:00:00 GMT"
	problem := func(body string) []string {
		return []string{"Content-Type", "application/problem+json; charset=utf-8", "X-Body", body}
	}
	tests := map[string]struct {
		code        int
		body        string
		headers     []string
		want        string // of the message, behind the tool's name
		wantProof   broker.Proof
		wantResult  string
		wantReceipt string
		wantAfter   time.Duration
	}{
		"detail":              {code: 404, body: `{"title":"T","detail":"no such order"}`, headers: problem(""), want: "it refused the call with status 404: no such order", wantProof: broker.Answered, wantResult: `{"title":"T","detail":"no such order"}`},
		"title":               {code: 422, body: `{"title":"T","detail":7}`, headers: problem(""), want: "it refused the call with status 422: T", wantProof: broker.Answered, wantResult: `{"title":"T","detail":7}`},
		"neither":             {code: 400, body: `{"detail":" "}`, headers: problem(""), want: "it refused the call with status 400", wantProof: broker.Answered, wantResult: `{"detail":" "}`},
		"control characters":  {code: 400, body: `{"detail":"a\n\u001b[31mb\u202ec\u0000"}`, headers: problem(""), want: "it refused the call with status 400: a  [31mb c", wantProof: broker.Answered, wantResult: `{"detail":"a\n\u001b[31mb\u202ec\u0000"}`},
		"long":                {code: 400, body: `{"detail":"` + strings.Repeat("é", 400) + `"}`, headers: problem(""), want: "it refused the call with status 400: " + contract.Truncate(strings.Repeat("é", 400), 512), wantProof: broker.Answered, wantResult: `{"detail":"` + strings.Repeat("é", 400) + `"}`},
		"an array":            {code: 400, body: `["detail"]`, headers: problem(""), want: "it refused the call with status 400", wantProof: broker.Answered, wantResult: `["detail"]`},
		"JSON says nothing":   {code: 400, body: `{"detail":"x"}`, headers: []string{"Content-Type", "application/json"}, want: "it refused the call with status 400", wantProof: broker.Answered, wantResult: `{"detail":"x"}`},
		"no JSON":             {code: 400, body: `x`, want: "it refused the call with status 400", wantProof: broker.Answered},
		"too large":           {code: 400, body: `{"detail":"` + strings.Repeat("x", 1000) + `"}`, headers: problem(""), want: "it refused the call with status 400", wantProof: broker.Answered},
		"receipt":             {code: 409, headers: []string{contract.ReceiptHeader, "r-1"}, want: "it refused the call with status 409", wantProof: broker.Answered, wantReceipt: "r-1"},
		"unprintable receipt": {code: 409, headers: []string{contract.ReceiptHeader, "a\xffb"}, want: "it refused the call with status 409", wantProof: broker.Answered},
		"server error":        {code: 503, body: `{"detail":"busy"}`, headers: append(problem(""), contract.ReceiptHeader, "r-1"), want: "it answered with status 503: busy", wantResult: `{"detail":"busy"}`, wantReceipt: "r-1"},
		"seconds":             {code: 429, headers: []string{"Retry-After", "7"}, want: "it answered with status 429", wantAfter: 7 * time.Second},
		"many seconds":        {code: 503, headers: []string{"Retry-After", "999999"}, want: "it answered with status 503", wantAfter: 24 * time.Hour},
		"too many seconds":    {code: 503, headers: []string{"Retry-After", "99999999999999999999"}, want: "it answered with status 503"},
		"negative":            {code: 503, headers: []string{"Retry-After", "-7"}, want: "it answered with status 503"},
		"a time of day":       {code: 503, headers: []string{"Retry-After", "Mon, 02 Mar 2026 12:00:09 GMT", "Date", date}, want: "it answered with status 503", wantAfter: 9 * time.Second},
		"a time that is over": {code: 503, headers: []string{"Retry-After", "Mon, 02 Mar 2026 11:00:00 GMT", "Date", date}, want: "it answered with status 503"},
		"a far time":          {code: 408, headers: []string{"Retry-After", "Mon, 02 Mar 2099 11:00:00 GMT", "Date", date}, want: "it answered with status 408", wantAfter: 24 * time.Hour},
		"nonsense":            {code: 503, headers: []string{"Retry-After", "soon"}, want: "it answered with status 503"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewServer(with(tc.code, tc.body, tc.headers...))
			defer s.Close()
			_, f := call(t, newBackend(t, local, tool(s.URL), nil))
			if f == nil {
				t.Fatal("no failure")
			}
			want := broker.Failure{Proof: tc.wantProof, Message: "tool pay: " + tc.want, Receipt: tc.wantReceipt, RetryAfter: tc.wantAfter}
			if tc.wantResult != "" {
				want.Result = json.RawMessage(tc.wantResult)
			}
			if diff := cmp.Diff(want, *f); diff != "" {
				t.Errorf("failure (-want +got):\n%s", diff)
			}
		})
	}
}

// TestFailureShowsItsState: a failing answer may be a tool result: its media and
// receipt count, its value is evidence.
func TestFailureShowsItsState(t *testing.T) {
	const body = `{"value":{"code":7},"media":{"marker":"codeact.dev/geometry-bound.v1","text":"now"},"receipt":"own"}`
	for _, code := range []int{409, 500} {
		s := httptest.NewServer(with(code, body, "Content-Type", contract.ResultMediaType))
		_, f := call(t, newBackend(t, local, tool(s.URL), nil))
		s.Close()
		if f == nil || string(f.Result) != `{"code":7}` || f.Receipt != "own" || f.Media == nil || f.Media.Text != "now" {
			t.Errorf("failure %+v", f)
		}
	}
}

func TestCredentialComesBackToNobody(t *testing.T) {
	const token = `s3cret/token+"with" all <sorts>`
	quoted, _ := json.Marshal(token)
	echoes := map[string]string{
		"as it is":          token,
		"in JSON":           string(quoted),
		"escaped":           strings.ReplaceAll(string(quoted), "s3", `\u0073\u0033`),
		"in base64":         `{"basic":"` + base64.StdEncoding.EncodeToString([]byte("Bearer "+token)) + `"}`,
		"in a URL":          `"https://a.example/?t=s3cret%2Ftoken%2B%22with%22%20all%20%3Csorts%3E"`,
		"in a picture":      `{"value":1,"media":{"marker":"m","pictures":[{"data":"` + base64.StdEncoding.EncodeToString([]byte("x"+token)) + `"}]}}`,
		"in a tool receipt": `{"value":1,"receipt":` + string(quoted) + `}`,
	}
	for name, body := range echoes {
		for _, kind := range []string{"application/json", contract.ResultMediaType, problemType} {
			for _, code := range []int{200, 400, 500} {
				s := httptest.NewServer(with(code, body, "Content-Type", kind, contract.ReceiptHeader, "r-1"))
				ans, f := call(t, newBackend(t, local, tool(s.URL, contract.CapabilityAuth), fixed(token)))
				s.Close()
				want := broker.Failure{Message: "tool pay: it answered with status 500", Receipt: "r-1"}
				switch code {
				case 200:
					want = broker.Failure{
						Proof: broker.Done, Reason: contract.ReasonChildResultInvalid, Final: true, Receipt: "r-1",
						Message: "tool pay: its answer holds the credential that it was sent, so nothing of it is kept",
					}
				case 400:
					want = broker.Failure{Proof: broker.Answered, Message: "tool pay: it refused the call with status 400", Receipt: "r-1"}
				}
				if f == nil || cmp.Diff(want, *f) != "" || ans.Body != nil {
					t.Errorf("%s, %s, %d: answer %s, failure %+v", name, kind, code, ans.Body, f)
				}
			}
		}
	}
	t.Run("in the receipt's header", func(t *testing.T) {
		s := httptest.NewServer(with(200, "1", contract.ReceiptHeader, "got "+token))
		defer s.Close()
		ans, f := call(t, newBackend(t, local, tool(s.URL, contract.CapabilityAuth), fixed(token)))
		if f != nil || ans.Receipt != "" || string(ans.Body) != "1" {
			t.Errorf("answer %+v, failure %v", ans, f)
		}
	})
	t.Run("a short one is not looked for", func(t *testing.T) {
		s := httptest.NewServer(with(200, `"1234567"`))
		defer s.Close()
		if _, f := call(t, newBackend(t, local, tool(s.URL, contract.CapabilityAuth), fixed("1234567"))); f != nil {
			t.Error(f)
		}
	})
}

// TestWhatAFailureMeans takes failures of this backend through the broker: state
// and reason in the journal for each effect.
func TestWhatAFailureMeans(t *testing.T) {
	const token = "s3cret-token"
	tests := map[string]struct {
		answer                             http.HandlerFunc
		wantReadOnly, wantIdem, wantEffect string
	}{
		"4xx":            {with(404, ""), "Failed ToolFailed", "Failed ToolFailed", "Failed ToolFailed"},
		"408":            {with(408, ""), "Failed ToolFailed", "Uncertain EffectUncertain", "Uncertain EffectUncertain"},
		"429":            {with(429, ""), "Failed ToolFailed", "Uncertain EffectUncertain", "Uncertain EffectUncertain"},
		"500":            {with(500, ""), "Failed ToolFailed", "Uncertain EffectUncertain", "Uncertain EffectUncertain"},
		"lost":           {raw(""), "Failed ToolFailed", "Uncertain EffectUncertain", "Uncertain EffectUncertain"},
		"the credential": {with(200, `"`+token+`"`), "Completed ChildResultInvalid", "Completed ChildResultInvalid", "Completed ChildResultInvalid"},
		"empty":          {with(200, ""), "Completed ", "Completed ", "Completed "},
	}
	for name, tc := range tests {
		for effect, want := range map[contract.Effect]string{
			contract.EffectReadOnly: tc.wantReadOnly, contract.EffectIdempotent: tc.wantIdem, contract.EffectEffectful: tc.wantEffect,
		} {
			s := httptest.NewServer(tc.answer)
			p := tool(s.URL, contract.CapabilityAuth)
			p.Tool.Effect = effect
			b, err := broker.New(broker.Config{
				Limits: contract.DefaultLimits(), Now: time.Now,
				Tools: []broker.Tool{{PinnedTool: p, Backend: newBackend(t, local, p, fixed(token))}},
			})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			_, err = b.Call(ctx, "pay", json.RawMessage(`{}`))
			cancel()
			s.Close()
			c := b.End().Calls[0]
			if got := string(c.State) + " " + string(c.Reason); got != want {
				t.Errorf("%s, %s: %s, want %s (%v)", name, effect, got, want, err)
			}
			var f *contract.Fault
			if errors.As(err, &f) && strings.Contains(f.Message, token) {
				t.Errorf("%s: message %q", name, f.Message)
			}
		}
	}
}
