package http

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/runtime/broker"
	"github.com/codeact-dev/codeact-operator/runtime/broker/backend/egress"
)

func TestRequests(t *testing.T) {
	type sent struct{ Method, URI, Body, ContentType, Length string }
	tests := map[string]struct {
		method contract.HTTPMethod
		path   string
		args   string
		want   sent
	}{
		"POST by default":        {"", "/x", `{"a":1}`, sent{"POST", "/x", `{"a":1}`, "application/json", "7"}},
		"any JSON without names": {"POST", "/x?y=1", `[1]`, sent{"POST", "/x?y=1", `[1]`, "application/json", "3"}},
		"the rest is the body":   {"PUT", "/x/{id}?q={q}", `{"z":"<&>","id":"a/b c"  ,"q":["x","y"],"a":1}`, sent{}},
		"rest":                   {"PUT", "/x/{id}?q={q}", `{"z":"<&>","id":"a:b c"  ,"q":["x","y"],"a":1}`, sent{"PUT", "/x/a%3Ab%20c?q=x&q=y", `{"a":1,"z":"<&>"}`, "application/json", "17"}},
		"no rest":                {"PATCH", "/x/{id}", `{"id":7}`, sent{"PATCH", "/x/7", `{}`, "application/json", "2"}},
		"null arguments":         {"PATCH", "/x?q={q}", `null`, sent{"PATCH", "/x", `{}`, "application/json", "2"}},
		"GET":                    {"GET", "/x/{id}?q={q}", `{"id":7}`, sent{"GET", "/x/7", "", "", ""}},
		"GET without arguments":  {"GET", "/x", `{}`, sent{"GET", "/x", "", "", ""}},
		"DELETE":                 {"DELETE", "/x/{id}", `{"id":"7"}`, sent{"DELETE", "/x/7", "", "", ""}},
		"root":                   {"GET", "?q={q}", `{"q":1}`, sent{"GET", "/?q=1", "", "", ""}},
		"fixed escapes stay":     {"GET", "/a%2Fb/%7Bx%7D?a=%20+", `{}`, sent{"GET", "/a%2Fb/%7Bx%7D?a=%20+", "", "", ""}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var got sent
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				got = sent{r.Method, r.RequestURI, string(body), r.Header.Get("Content-Type"), r.Header.Get("Content-Length")}
				_, _ = io.WriteString(w, "1")
			}))
			defer s.Close()
			p := tool(s.URL + tc.path)
			p.Backend.HTTP.Method = tc.method
			r := request()
			r.Arguments = json.RawMessage(tc.args)
			_, err := newBackend(t, local, p, nil).Call(t.Context(), r)
			var f *broker.Failure
			if (err != nil) != (tc.want == sent{}) || err != nil && (!errors.As(err, &f) || f.Reason != contract.ReasonInvalidArguments) {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("request (-want +got):\n%s", diff)
			}
		})
	}
}

func TestStaticHeaders(t *testing.T) {
	got := http.Header{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r.Header
		_, _ = io.WriteString(w, "1")
	}))
	defer s.Close()
	p := tool(s.URL, contract.CapabilityRunIdentity)
	p.Backend.HTTP.Headers = []contract.HTTPHeader{{Name: "x-tenant", Value: "a b"}, {Name: "Accept", Value: "application/vnd.x+json"}}
	b := local
	b.Run.UID = "u"
	if _, f := call(t, newBackend(t, b, p, nil)); f != nil {
		t.Fatal(f)
	}
	for name, want := range map[string]string{
		"X-Tenant": "a b", "Accept": "application/vnd.x+json", "User-Agent": egress.UserAgent, "Idempotency-Key": "u:1:1",
		"Content-Type": "application/json", egress.HeaderRunUID: "u",
	} {
		if v := got[name]; len(v) != 1 || v[0] != want {
			t.Errorf("%s is %q, want %q", name, v, want)
		}
	}
	for _, name := range []string{"authorization", "IDEMPOTENCY-KEY", "Codeact-Run-Uid", "host", "Transfer-Encoding", "proxy-authorization"} {
		p.Backend.HTTP.Headers = []contract.HTTPHeader{{Name: name, Value: "x"}}
		if _, err := New(b, p, nil); err == nil {
			t.Errorf("the header %s was taken", name)
		}
	}
	p.Backend.HTTP.Headers, p.Backend.HTTP.Method = nil, "TRACE"
	if _, err := New(b, p, nil); err == nil {
		t.Error("the method TRACE was taken")
	}
}
