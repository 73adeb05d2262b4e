package contract

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseURLTemplate(t *testing.T) {
	tests := map[string]struct {
		url       string
		wantPath  []string
		wantQuery []string
		wantErr   string
	}{
		"fixed":                        {url: "https://a.example/x?y=1"},
		"no path":                      {url: "http://a.example"},
		"address":                      {url: "http://[2001:db8::1]:8080/x"},
		"path and query":               {url: "https://a.example/v1/{id}/x/{b}.json?q={q}&r={f}-{t}", wantPath: []string{"id", "b"}, wantQuery: []string{"q", "f", "t"}},
		"query without path":           {url: "https://a.example?q={q}", wantQuery: []string{"q"}},
		"a separator that is meant":    {url: "https://a.example/{group}%2F{name}", wantPath: []string{"group", "name"}},
		"host":                         {url: "https://{h}/x", wantErr: "fixed"},
		"part of the host":             {url: "https://a.{h}/x", wantErr: "fixed"},
		"port":                         {url: "https://a.example:{p}/", wantErr: "fixed"},
		"behind the host":              {url: "https://a.example{x}/", wantErr: "fixed"},
		"scheme":                       {url: "{s}://a.example/", wantErr: "absolute"},
		"user":                         {url: "https://{u}@a.example/", wantErr: "fixed"},
		"user and password":            {url: "https://a:b@a.example/", wantErr: "user or password"},
		"fragment":                     {url: "https://a.example/#{x}", wantErr: "fragment"},
		"other scheme":                 {url: "file:///etc/passwd", wantErr: "absolute"},
		"no host":                      {url: "http:///x", wantErr: "host"},
		"only a port":                  {url: "http://:80/x", wantErr: "host"},
		"bad port":                     {url: "http://a.example:x/", wantErr: "host"},
		"open":                         {url: "https://a.example/{x", wantErr: "brace"},
		"close":                        {url: "https://a.example/x}", wantErr: "brace"},
		"nested":                       {url: "https://a.example/{{x}}", wantErr: "one argument's name"},
		"nothing":                      {url: "https://a.example/{}", wantErr: "one argument's name"},
		"operator":                     {url: "https://a.example/{+x}", wantErr: "one argument's name"},
		"query operator":               {url: "https://a.example/{?x}", wantErr: "brace"},
		"explode":                      {url: "https://a.example/{x*}", wantErr: "one argument's name"},
		"parameter's name":             {url: "https://a.example/?{x}=1", wantErr: "fixed name"},
		"part of a parameter's name":   {url: "https://a.example/?a{x}=1", wantErr: "fixed name"},
		"parameter without a name":     {url: "https://a.example/?={x}", wantErr: "fixed name"},
		"whole parameter":              {url: "https://a.example/?{x}", wantErr: "fixed name"},
		"dots":                         {url: "https://a.example/a/../{x}", wantErr: "of dots"},
		"encoded dots":                 {url: "https://a.example/a/%2e%2E/{x}", wantErr: "of dots"},
		"doubly encoded dots":          {url: "https://a.example/a/%252e%252e/{x}", wantErr: "of dots"},
		"dots behind a semicolon":      {url: "https://a.example/a/..;x/{x}", wantErr: "of dots"},
		"bad escape":                   {url: "https://a.example/%zz/{x}", wantErr: "malformed"},
		"bad escape in the query":      {url: "https://a.example/?a=%zz", wantErr: "malformed"},
		"an escape made by a value":    {url: "https://a.example/%{x}", wantErr: "malformed"},
		"half an escape":               {url: "https://a.example/%4{x}", wantErr: "malformed"},
		"an escape in a query value":   {url: "https://a.example/?a=%{x}", wantErr: "malformed"},
		"blank":                        {url: "https://a.example/a b", wantErr: "character"},
		"line feed":                    {url: "https://a.example/a\nb", wantErr: "character"},
		"backslash":                    {url: `https://a.example\@b.example/`, wantErr: "character"},
		"invalid UTF-8":                {url: "https://a.example/\xff", wantErr: "character"},
		"too long":                     {url: "https://a.example/" + strings.Repeat("x", MaxURLBytes), wantErr: "bytes"},
		"too many":                     {url: "https://a.example/" + strings.Repeat("{x}/", MaxURLNames+1), wantErr: "arguments"},
		"a name that is too long":      {url: "https://a.example/{" + strings.Repeat("x", 65) + "}", wantErr: "one argument's name"},
		"upper case scheme is allowed": {url: "HTTPS://a.example/"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := ParseURLTemplate(tc.url)
			if (err != nil) != (tc.wantErr != "") || err != nil && !strings.Contains(err.Error(), tc.wantErr) {
				t.Fatalf("error %v, want %q", err, tc.wantErr)
			}
			if err != nil {
				return
			}
			if diff := cmp.Diff(tc.wantPath, got.PathNames()); diff != "" {
				t.Errorf("path (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.wantQuery, got.QueryNames()); diff != "" {
				t.Errorf("query (-want +got):\n%s", diff)
			}
			if got.Fixed() != (len(tc.wantPath)+len(tc.wantQuery) == 0) {
				t.Errorf("fixed is %v", got.Fixed())
			}
		})
	}
}

func TestExpand(t *testing.T) {
	const some = "https://a.example/v1/{id}/x?q={q}&k=1&r={f}-{t}"
	tests := map[string]struct {
		url, args string
		want      string
		wantRest  string
	}{
		"all":                  {some, `{"id":"a b","q":"c&d=e","f":1,"t":true,"more":[1]}`, "https://a.example/v1/a%20b/x?q=c%26d%3De&k=1&r=1-true", `{"more":[1]}`},
		"only what must be":    {some, `{"id":7}`, "https://a.example/v1/7/x?k=1", `{}`},
		"null is absent":       {some, `{"id":7,"q":null,"f":1}`, "https://a.example/v1/7/x?k=1", `{}`},
		"an array repeats":     {some, `{"id":7,"q":["a","b",1,false]}`, "https://a.example/v1/7/x?q=a&q=b&q=1&q=false&k=1", `{}`},
		"an empty array":       {some, `{"id":7,"q":[]}`, "https://a.example/v1/7/x?k=1", `{}`},
		"an empty query value": {some, `{"id":7,"q":""}`, "https://a.example/v1/7/x?q=&k=1", `{}`},
		"dots in a query":      {some, `{"id":7,"q":"../.."}`, "https://a.example/v1/7/x?q=..%2F..&k=1", `{}`},
		"characters":           {some, `{"id":"aZ09-._~","q":"é\ud83d\ude00+%#?"}`, "https://a.example/v1/aZ09-._~/x?q=%C3%A9%F0%9F%98%80%2B%25%23%3F&k=1", `{}`},
		"reserved":             {some, `{"id":":?#[]@!$&'()*+,;="}`, "https://a.example/v1/%3A%3F%23%5B%5D%40%21%24%26%27%28%29%2A%2B%2C%3B%3D/x?k=1", `{}`},
		"numbers":              {some, `{"id":-1.5,"q":1e+21}`, "https://a.example/v1/-1.5/x?q=1e%2B21&k=1", `{}`},
		"no query left":        {"http://a/x?q={q}", `{}`, "http://a/x", `{}`},
		"never a query":        {"http://a/x?", `{}`, "http://a/x?", `{}`},
		"fixed":                {"http://a/x?b=%20", `{"c":1}`, "http://a/x?b=%20", `{"c":1}`},
		"named twice":          {"http://a/{x}/{x}?y={x}", `{"x":"1"}`, "http://a/1/1?y=1", `{}`},
		"separator is meant":   {"http://a/{g}%2F{n}", `{"g":"1","n":"2"}`, "http://a/1%2F2", `{}`},
		"dots in a name":       {"http://a/{x}", `{"x":"a..b"}`, "http://a/a..b", `{}`},
		"file":                 {"http://a/{x}.json", `{"x":"a"}`, "http://a/a.json", `{}`},
		"percent sign":         {"http://a/{x}", `{"x":"100%"}`, "http://a/100%25", `{}`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			tmpl, err := ParseURLTemplate(tc.url)
			if err != nil {
				t.Fatal(err)
			}
			var args map[string]json.RawMessage
			if err := json.Unmarshal([]byte(tc.args), &args); err != nil {
				t.Fatal(err)
			}
			got, rest, err := tmpl.Expand(args)
			if err != nil {
				t.Fatal(err)
			}
			if got != tc.want {
				t.Errorf("URL %s\nwant %s", got, tc.want)
			}
			if text, _ := json.Marshal(rest); string(text) != tc.wantRest {
				t.Errorf("rest %s, want %s", text, tc.wantRest)
			}
		})
	}
}

// hostileValues are values for a place in the path that must never be sent.
var hostileValues = []string{
	`""`, `"."`, `".."`, `"..."`, `". ."`, `".. "`, `" "`, `"../x"`, `"x/../y"`, `"x/.."`, `"/"`, `"//"`, `"a/b"`, `"\\"`, `"..\\x"`, `"a\\b"`,
	`"%2e"`, `"%2e%2e"`, `"%2E%2e"`, `".%2e"`, `"%2e."`, `"%252e%252e"`, `"%25252e%25252e"`, `"%2f"`, `"%2F..%2F"`, `"a%2fb"`, `"%5c"`,
	`"%5C..%5C"`, `"%252f"`, `"%255c"`, `"%25252f"`, `"..%2f"`, `"..%5c"`, `"..;"`, `"..;/x"`, `"..;x=1"`, `".;"`, `"%2e%2e;a"`, `"..%3bx"`, `";"`, `";x"`, `"%3Bx"`,
	`"．．"`, `"．"`, `"․․"`, `"。"`, `"．．／x"`, `"a\u0000"`, `"\u0000"`, `"\n"`, `"a\r\nHost: x"`, `"a\tb"`, `"\u007f"`, `"\u0085"`, `"a%00"`, `"a%0d%0aX"`,
	`"%250a"`, `"\ud800"`, `"\udc00"`, `"\ud800\ud800"`, `"a\udbffx"`, `"\udc00\ud800"`, `"\ud83d\u0041"`, "\"\xff\"", "\"\xc0\xae\"", "\"\xed\xa0\x80\"",
	`null`, `[]`, `["a"]`, `{}`, `{"a":1}`, `1e999`, `-1e999`, `1e-99999`, `"http://a/../"`,
}

func TestExpandRefuses(t *testing.T) {
	tmpl, err := ParseURLTemplate("https://a.example/v1/{id}/x?q={q}&r={f}-{t}")
	if err != nil {
		t.Fatal(err)
	}
	refused := func(t *testing.T, args map[string]json.RawMessage, name string) {
		t.Helper()
		got, _, err := tmpl.Expand(args)
		f, ok := AsFault(err)
		if !ok || f.Reason != ReasonInvalidArguments {
			t.Fatalf("%s: URL %s, error %v, want InvalidArguments", args[name], got, err)
		}
		if !strings.Contains(f.Message, `"`+name+`"`) {
			t.Errorf("message %q does not name the argument", f.Message)
		}
	}
	for _, v := range hostileValues {
		refused(t, map[string]json.RawMessage{"id": json.RawMessage(v)}, "id")
	}
	for _, v := range []string{
		`{}`, `[[]]`, `[null]`, `[{"a":1}]`, `["a",[1]]`, `"\u0000"`, `"\n"`, `["\n"]`, `"\ud800"`, `["\udc00"]`, `1e999`, "\"\xff\"",
	} {
		refused(t, map[string]json.RawMessage{"id": json.RawMessage("1"), "q": json.RawMessage(v)}, "q")
	}
	refused(t, map[string]json.RawMessage{"id": json.RawMessage("1"), "f": json.RawMessage("[1]"), "t": json.RawMessage("1")}, "f")
	refused(t, nil, "id")
	if _, _, err := tmpl.Expand(map[string]json.RawMessage{"id": json.RawMessage("1"), "q": json.RawMessage(`"` + strings.Repeat("x", MaxExpandedURLBytes) + `"`)}); err == nil {
		t.Error("a URL without end is taken")
	}
}

// TestExpandRefusesHalves: no two values, and no value with the text beside it,
// come together as a separator, however often a server decodes.
func TestExpandRefusesHalves(t *testing.T) {
	tests := map[string]struct{ url, x, y string }{
		"two values":            {"http://a/p/{x}{y}", "%2", "fadmin"},
		"backslash":             {"http://a/p/{x}{y}", "%5", "C"},
		"text behind":           {"http://a/p/{x}fadmin", "a%2", ""},
		"text before":           {"http://a/p%252{x}", "fq", ""},
		"decoded once more":     {"http://a/p/{x}{y}", "%252", "f"},
		"one character by half": {"http://a/p/{x}2f", "%", ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			tmpl, err := ParseURLTemplate(tc.url)
			if err != nil {
				t.Fatal(err)
			}
			x, _ := json.Marshal(tc.x)
			y, _ := json.Marshal(tc.y)
			got, _, err := tmpl.Expand(map[string]json.RawMessage{"x": x, "y": y})
			if f, ok := AsFault(err); !ok || f.Reason != ReasonInvalidArguments {
				t.Errorf("URL %s, error %v, want InvalidArguments", got, err)
			}
		})
	}
}

// FuzzExpand: whatever the arguments, a URL that comes out is the template's: its
// server, its fixed path, its number of segments, its parameters, and each value
// reads back as what was put in.
func FuzzExpand(f *testing.F) {
	for _, v := range hostileValues {
		f.Add(v, v)
	}
	for _, v := range []string{`"a b"`, `1`, `true`, `["a","b&c=d"]`, `"é😀"`, `"100%"`, `"%41"`, `"a;b"`, `-0.5e3`} {
		f.Add(v, v)
	}
	tmpl, err := ParseURLTemplate("https://a.example:8443/v1/a%20b/{id}/x-{id}.json?fix=%26&q={q}&r=pre{q}")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, id, q string) {
		bounded(t)
		args := map[string]json.RawMessage{"id": json.RawMessage(id), "q": json.RawMessage(q), "other": json.RawMessage("1")}
		got, rest, err := tmpl.Expand(args)
		if err != nil {
			if fault, ok := AsFault(err); !ok || fault.Reason != ReasonInvalidArguments || len(fault.Message) > MaxMessageBytes {
				t.Fatalf("error %v", err)
			}
			return
		}
		if len(rest) != 1 || rest["other"] == nil {
			t.Fatalf("rest %v", rest)
		}
		value, err := scalar(json.RawMessage(id))
		if err != nil {
			t.Fatalf("the path took %q", id)
		}
		u, err := url.Parse(got)
		if err != nil || u.Scheme != "https" || u.Host != "a.example:8443" || u.User != nil || u.Fragment != "" {
			t.Fatalf("URL %q", got)
		}
		if want := "/v1/a b/" + value + "/x-" + value + ".json"; u.Path != want {
			t.Fatalf("path %q, want %q", u.Path, want)
		}
		for s, i := u.EscapedPath(), 0; i < 5; i++ {
			if segs := strings.FieldsFunc(s, func(r rune) bool { return r == '/' || r == '\\' }); len(segs) != 4 {
				t.Fatalf("after %d decodings %q has %d segments", i, s, len(segs))
			} else if strings.Trim(segs[2], ".") == "" {
				t.Fatalf("after %d decodings %q has a segment of dots", i, s)
			}
			if i < decodings {
				s = percentDecode(s)
			}
		}
		want := url.Values{"fix": {"&"}}
		list, ok := array(json.RawMessage(q))
		if !ok {
			list = []json.RawMessage{json.RawMessage(q)}
		}
		for _, raw := range list {
			if isNull(raw) {
				continue
			}
			v, err := scalar(raw)
			if err != nil {
				t.Fatalf("the query took %q", q)
			}
			want["q"], want["r"] = append(want["q"], v), append(want["r"], "pre"+v)
		}
		values, err := url.ParseQuery(u.RawQuery)
		if err != nil || cmp.Diff(want, values) != "" {
			t.Fatalf("query %q: %v %s", u.RawQuery, err, cmp.Diff(want, values))
		}
	})
}
