package toolimport

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/cmd/codeact/openapi"
)

// operation is a document with one POST /a/{id}, whose text is put in.
const operation = `
openapi: 3.1.0
servers: [{url: "https://tools.example/v1/"}]
paths:
  /a/{id}:
    post:
%s
      responses: {"200": {description: ok, content: {application/json: {schema: {type: object}}}}}
components:
  securitySchemes:
    bearer: {type: http, scheme: Bearer}
    sso: {type: openIdConnect, openIdConnectUrl: "https://x"}
    basic: {type: http, scheme: basic}
    header: {type: apiKey, in: header, name: X-Key}
    old: {type: apiKey, in: header, name: authorization}
    tls: {type: mutualTLS}
`

const id = "{name: id, in: path, required: true, schema: {type: string}}"

func TestFromOpenAPI(t *testing.T) {
	body := func(s string) string {
		return "parameters: [" + id + "]\nrequestBody: {required: true, content: {application/json: {schema: " + s + "}}}"
	}
	tests := map[string]struct {
		text       string
		change     func(string) string // of the document
		options    OpenAPIOptions
		wantErr    string // why it is left out
		wantURL    string
		wantInput  string
		wantAuth   string // Secret and key
		wantReview string
		wantNotice string
	}{
		"no body":                 {text: "parameters: [" + id + "]", wantURL: "https://tools.example/v1/a/{id}", wantInput: `{"additionalProperties":false,"properties":{"id":{"type":"string"}},"required":["id"],"type":"object"}`, wantReview: "the backend sends {}"},
		"a member of the name":    {text: body(`{type: object, properties: {id: {type: integer}}}`), wantURL: "https://tools.example/v1/a/{path_id}", wantInput: `{"properties":{"id":{"type":"integer"},"path_id":{"type":"string"}},"required":["path_id"],"type":"object"}`, wantNotice: "programs call its path parameter id path_id"},
		"a closed body":           {text: body(`{type: object, required: [a], additionalProperties: false, properties: {a: {}}}`), wantInput: `{"additionalProperties":false,"properties":{"a":{},"id":{"type":"string"}},"required":["id","a"],"type":"object"}`},
		"a choice":                {text: body(`{oneOf: [{required: [a], properties: {a: {}}}, {type: object, properties: {id: {}}}]}`), wantURL: "https://tools.example/v1/a/{path_id}", wantInput: `{"allOf":[{"oneOf":[{"properties":{"a":{}},"required":["a"]},{"properties":{"id":{}},"type":"object"}]}],"properties":{"path_id":{"type":"string"}},"required":["path_id"],"type":"object"}`},
		"a closed choice":         {text: body(`{oneOf: [{properties: {a: {}}, additionalProperties: false}]}`), wantErr: "no object beside which"},
		"a list":                  {text: body(`{type: array}`), wantErr: "no object beside which"},
		"any body":                {text: "parameters: [" + id + "]\nrequestBody: {content: {'*/*': {}}}", wantInput: `{"properties":{"id":{"type":"string"}},"required":["id"],"type":"object"}`},
		"a form":                  {text: "parameters: [" + id + "]\nrequestBody: {content: {application/x-www-form-urlencoded: {}}}", wantErr: "its body is application/x-www-form-urlencoded"},
		"JSON of another name":    {text: "parameters: [" + id + "]\nrequestBody: {content: {application/merge-patch+json: {}}}", wantErr: "the backend sends application/json"},
		"a place without name":    {text: "parameters: []", wantErr: "its path names {id}"},
		"a name without place":    {text: "parameters: [" + id + ", {name: x, in: path, required: true}]", wantErr: "does not stand in its path"},
		"a list in the path":      {text: "parameters: [{name: id, in: path, required: true, schema: {type: array}}]", wantErr: "cannot be sent: it is a list or an object"},
		"a label":                 {text: "parameters: [{name: id, in: path, required: true, style: label}]", wantErr: "style label"},
		"JSON in the query":       {text: "parameters: [" + id + ", {name: q, in: query, required: true, content: {application/json: {}}}]", wantErr: "media type of its own"},
		"a list by commas":        {text: "parameters: [" + id + ", {name: q, in: query, explode: false, schema: {type: array}}]", wantURL: "https://tools.example/v1/a/{id}", wantNotice: "its query parameter q is left out: it is a list in one value", wantReview: "its query parameter q is left out"},
		"two of one name":         {text: "parameters: [" + id + ", {name: id, in: query}, {name: 'id[]', in: query}, {name: 'päth id', in: query}]", wantURL: "https://tools.example/v1/a/{id}?id={query_id}&id%5B%5D={query_id_2}&p%C3%A4th+id={p_th_id}"},
		"a header":                {text: "parameters: [" + id + ", {name: X-Org, in: header, required: true}]", wantErr: "--header 'X-Org=VALUE'"},
		"a header that is given":  {text: "parameters: [" + id + ", {name: X-Org, in: header, required: true}]", options: OpenAPIOptions{Headers: map[string]string{"x-org": "a"}}},
		"a header with a default": {text: "parameters: [" + id + ", {name: X-Org, in: header, required: true, schema: {type: integer, default: 7}}]", wantReview: "the header X-Org is always sent with the document's default"},
		"a header of the runtime": {text: "parameters: [" + id + ", {name: Cookie, in: header, required: true}]", options: OpenAPIOptions{Headers: map[string]string{"cookie": "a"}}, wantErr: "belongs to the runtime"},
		"a header that is sent":   {text: "parameters: [" + id + ", {name: Idempotency-Key, in: header, required: true}]"},
		"bearer":                  {text: "parameters: [" + id + "]\nsecurity: [{bearer: []}]", wantAuth: "bearer/token", wantReview: "bearer/token is made up"},
		"bearer of a Secret":      {text: "parameters: [" + id + "]\nsecurity: [{sso: [a, b]}]", options: OpenAPIOptions{Options: Options{Auth: &SecretKey{"shop", "key"}}}, wantAuth: "shop/key", wantReview: "the scopes a, b"},
		"a second way":            {text: "parameters: [" + id + "]\nsecurity: [{basic: []}, {bearer: []}]", wantAuth: "bearer/token"},
		"no way is one":           {text: "parameters: [" + id + "]\nsecurity: [{bearer: []}, {}]", wantAuth: "bearer/token"},
		"a way without":           {text: "parameters: [" + id + "]\nsecurity: [{basic: []}, {}]"},
		"nothing is said":         {text: "parameters: [" + id + "]", options: OpenAPIOptions{Options: Options{Auth: &SecretKey{"shop", "key"}}}, wantAuth: "shop/key"},
		"nothing is asked for":    {text: "parameters: [" + id + "]\nsecurity: []", options: OpenAPIOptions{Options: Options{Auth: &SecretKey{"shop", "key"}}}},
		"a key in Authorization":  {text: "parameters: [" + id + "]\nsecurity: [{old: []}]", wantAuth: "old/token", wantReview: "see that the server takes that"},
		"a key":                   {text: "parameters: [" + id + "]\nsecurity: [{header: []}]", wantErr: "a key in the header X-Key"},
		"basic":                   {text: "parameters: [" + id + "]\nsecurity: [{basic: []}]", wantErr: "HTTP basic authentication"},
		"a certificate":           {text: "parameters: [" + id + "]\nsecurity: [{tls: []}]", wantErr: "a client certificate"},
		"both":                    {text: "parameters: [" + id + "]\nsecurity: [{bearer: [], sso: []}]", wantErr: "2 credentials at once"},
		"declared nowhere":        {text: "parameters: [" + id + "]\nsecurity: [{x: []}]", wantErr: "declared nowhere"},
		"a gateway":               {text: "parameters: [" + id + "]\nsecurity: [{basic: []}]", options: OpenAPIOptions{NoAuth: true}},
		"a relative server":       {text: "parameters: [" + id + "]\nservers: [{url: /v2/}]", wantErr: `its server "/v2/" is relative: use --server https://HOST/v2`},
		"a given server":          {text: "parameters: [" + id + "]\nservers: [{url: /v2/}]", options: OpenAPIOptions{Server: "http://x:81/y/"}, wantURL: "http://x:81/y/a/{id}"},
		"a port of the server":    {text: "parameters: [" + id + "]\nservers: [{url: 'https://x:{port}/', variables: {port: {default: 8443}}}]", wantURL: "https://x:8443/a/{id}"},
		"a variable of nothing":   {text: "parameters: [" + id + "]\nservers: [{url: 'https://{x}/'}]", wantErr: "a variable without a default"},
		"a user in the server":    {text: "parameters: [" + id + "]\nservers: [{url: 'https://u:p@x/'}]", wantErr: "a query, a fragment or a user"},
		"a reserved name":         {text: "operationId: run_code\nparameters: [" + id + "]", wantErr: "use --prefix"},
		"an event stream":         {text: "parameters: [" + id + "]", change: swapped("application/json", "text/event-stream"), wantErr: "its response 200 is text/event-stream"},
		"only later":              {text: "parameters: [" + id + "]", change: swapped(`"200"`, `"202"`), wantErr: "answers later"},
		"a pattern":               {text: "parameters: [{name: id, in: path, required: true, schema: {type: string, pattern: '(?=a)'}}]", wantReview: "is not checked"},
		"more than a URL names":   {text: "parameters: [" + id + many(40) + "]", wantNotice: "its query parameter q31 is left out: a URL names at most 32 arguments"},
		"another place":           {text: "parameters: [{$ref: '#/components/parameters/x'}]", wantErr: "leads to nothing"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			text := fmt.Sprintf(operation, "      "+strings.ReplaceAll(tc.text, "\n", "\n      "))
			if tc.change != nil {
				text = tc.change(text)
			}
			d, err := openapi.Read([]byte(text))
			if err != nil {
				t.Fatal(err)
			}
			r, err := FromOpenAPI(d, tc.options)
			if err != nil {
				t.Fatal(err)
			}
			if tc.wantErr != "" {
				if len(r.Drafts) > 0 || len(r.Notices) == 0 || !strings.Contains(r.Notices[len(r.Notices)-1].String(), tc.wantErr) {
					t.Errorf("%v, want %q", r.Notices, tc.wantErr)
				}
				return
			}
			if len(r.Drafts) != 1 {
				t.Fatal(r.Notices)
			}
			x := r.Drafts[0]
			if u := x.Backend.HTTP.URL; tc.wantURL != "" && u != tc.wantURL {
				t.Errorf("URL %s, want %s", u, tc.wantURL)
			}
			if tc.wantInput != "" && string(x.Tool.InputSchema) != tc.wantInput {
				t.Errorf("input\n%s, want\n%s", x.Tool.InputSchema, tc.wantInput)
			}
			auth := ""
			if x.Auth != nil {
				auth = x.Auth.Name + "/" + x.Auth.Key
			}
			if auth != tc.wantAuth || (auth != "") != (len(x.Tool.Capabilities) == 1) {
				t.Errorf("auth %q, want %q", auth, tc.wantAuth)
			}
			if said := strings.Join(x.Review, "\n"); !strings.Contains(said, tc.wantReview) {
				t.Errorf("review %s, want %s", said, tc.wantReview)
			}
			if said := fmt.Sprint(r.Notices); !strings.Contains(said, tc.wantNotice) {
				t.Errorf("notices %s, want %s", said, tc.wantNotice)
			}
		})
	}
}

// many are optional parameters of the query.
func many(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, ", {name: q%d, in: query}", i)
	}
	return b.String()
}

func swapped(old, with string) func(string) string {
	return func(s string) string { return strings.Replace(s, old, with, 1) }
}

// TestResults: which answers become which results.
func TestResults(t *testing.T) {
	tests := map[string]struct {
		responses  string
		wantForm   contract.ResponseForm
		wantSchema string
		wantAccept string
		wantErr    string
	}{
		"JSON":              {responses: `"200": {content: {application/json: {schema: {type: string}}}}`, wantForm: "JSON", wantSchema: `{"type":"string"}`},
		"with its charset":  {responses: `"200": {content: {"application/json; charset=utf-8": {schema: {type: string}}}}`, wantForm: "JSON", wantSchema: `{"type":"string"}`},
		"another JSON":      {responses: `"200": {content: {application/hal+json: {schema: {type: string}}}}`, wantForm: "JSON", wantSchema: `{"type":"string"}`, wantAccept: "application/hal+json"},
		"text":              {responses: `"200": {content: {text/csv: {}}}`, wantForm: "Text", wantSchema: `{"type":"string"}`},
		"XML":               {responses: `"200": {content: {application/xml: {}}}`, wantForm: "Text", wantSchema: `{"type":"string"}`, wantAccept: "application/xml"},
		"JSON before text":  {responses: `"200": {content: {text/plain: {}, application/json: {}, application/xml: {}}}`, wantForm: "JSON"},
		"nothing":           {responses: `"204": {}`, wantSchema: `{"type":"null"}`},
		"what is not said":  {responses: `"200": {}`},
		"two":               {responses: `"200": {content: {application/json: {schema: {type: string}}}}, "204": {}`, wantForm: "JSON", wantSchema: `{"anyOf":[{"type":"string"},{"type":"null"}]}`},
		"twice":             {responses: `"200": {content: {application/json: {schema: {type: string}}}}, "2XX": {content: {application/json: {schema: {type: string}}}}`, wantForm: "JSON", wantSchema: `{"type":"string"}`},
		"later, perhaps":    {responses: `"200": {content: {application/json: {schema: {type: string}}}}, "202": {}`, wantForm: "JSON", wantSchema: `{"type":"string"}`},
		"mixed":             {responses: `"200": {content: {application/json: {}}}, "201": {content: {text/plain: {}}}`, wantErr: "JSON or text by their status"},
		"a picture":         {responses: `"200": {content: {image/png: {}}}`, wantErr: "its response 200 is image/png"},
		"only by default":   {responses: `default: {content: {application/json: {schema: {type: string}}}}`},
		"somewhere else":    {responses: `"200": {content: {application/json: {schema: {$ref: "x"}}}}`, wantErr: "leads out"},
		"not of this world": {responses: `"200": {content: {application/json: {schema: {type: thing}}}}`, wantErr: "output schema"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			d, err := openapi.Read([]byte(`{openapi: 3.0.0, servers: [{url: "http://x"}], paths: {/a: {get: {responses: {` + tc.responses + `}}}}}`))
			if err != nil {
				t.Fatal(err)
			}
			r, err := FromOpenAPI(d, OpenAPIOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if tc.wantErr != "" {
				if len(r.Drafts) > 0 || !strings.Contains(fmt.Sprint(r.Notices), tc.wantErr) {
					t.Errorf("%v, want %q", r.Notices, tc.wantErr)
				}
				return
			}
			if len(r.Drafts) != 1 {
				t.Fatal(r.Notices)
			}
			x, accept := r.Drafts[0], ""
			for _, h := range x.Backend.HTTP.Headers {
				accept = h.Value
			}
			got := []string{string(x.Backend.HTTP.Response), string(x.Tool.OutputSchema), accept}
			if diff := cmp.Diff([]string{string(tc.wantForm), tc.wantSchema, tc.wantAccept}, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestOperationNames(t *testing.T) {
	d, err := openapi.Read([]byte(`
openapi: 3.0.0
paths:
  /a/{b.c}/: {get: {}}
  /a/b-c: {get: {}}
  /x: {get: {operationId: a.b}, post: {operationId: a_b}, put: {operationId: A-B}}
  /y: {get: {operationId: ` + strings.Repeat("x", 80) + `}, put: {operationId: ` + strings.Repeat("x", 90) + `}}
  /z: {get: {operationId: "äö"}}
`))
	if err != nil {
		t.Fatal(err)
	}
	ops, _ := d.Operations()
	got := operationNames(ops, "")
	x := strings.Repeat("x", 62)
	want := []string{"get_a_b_c", "get_a_b_c_2", "a_b", "A-B_2", "a_b_3", x + "xx", x + "_2", "get_z"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	r, err := FromOpenAPI(d, OpenAPIOptions{Server: "http://x", Options: Options{Only: []string{"GET /nowhere"}}})
	if err == nil || len(r.Drafts) > 0 {
		t.Errorf("an operation that is nowhere: %v", err)
	}
}

// TestOperationOf: a grant is compared with the operation that it calls.
func TestOperationOf(t *testing.T) {
	d, err := openapi.Read([]byte(`
openapi: 3.0.0
servers: [{url: /v1}]
paths:
  /a/{x}: {get: {}, put: {operationId: put}}
  /a/{x}?beta=true: {get: {}}
  /b/a/{x}: {get: {}}
  /c: {get: {operationId: cc}}
`))
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		method contract.HTTPMethod
		url    string
		tool   string
		server string
		want   string
	}{
		"the whole path":      {method: "GET", url: "https://s/v1/a/{id}", want: "GET /a/{x}"},
		"with its query":      {method: "GET", url: "https://s/v1/a/{id}?q={q}", want: "GET /a/{x}"},
		"a query in the path": {method: "GET", url: "https://s/v1/a/{id}?beta=true&q={q}", want: "GET /a/{x}?beta=true"},
		"the name":            {method: "POST", url: "https://s/v1/old", tool: "cc", want: "GET /c"},
		"path over name":      {method: "GET", url: "https://s/v1/a/{id}", tool: "cc", want: "GET /a/{x}"},
		"name over the end":   {method: "PUT", url: "https://s/v2/c", tool: "put", want: "PUT /a/{x}"},
		"the longest end":     {method: "GET", url: "https://s/v2/b/a/{id}", want: "GET /b/a/{x}"},
		"a given server":      {method: "GET", url: "https://s/v1/b/a/{id}", server: "https://t/v1/b", want: "GET /a/{x}"},
		"the default method":  {url: "https://s/v1/a/{id}"},
		"nothing":             {method: "GET", url: "https://s/"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			g := contract.Grant{Tool: contract.Tool{Name: tc.tool}, Backend: contract.Backend{HTTP: &contract.HTTPBackend{Method: tc.method, URL: tc.url}}}
			op, found := operationOf(d, g, OpenAPIOptions{Server: tc.server})
			if found != (tc.want != "") || found && op.Key() != tc.want {
				t.Errorf("%v %s, want %s", found, op.Key(), tc.want)
			}
		})
	}
}

// FuzzFromOpenAPI: whatever a document says, no draft is one that a controller
// would refuse for its schemas or backend.
func FuzzFromOpenAPI(f *testing.F) {
	text, err := os.ReadFile("../testdata/pets.openapi.yaml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(text))
	f.Add(fmt.Sprintf(operation, "      parameters: ["+id+"]"))
	f.Fuzz(func(t *testing.T, text string) {
		d, err := openapi.Read([]byte(text))
		if err != nil {
			return
		}
		r, err := FromOpenAPI(d, OpenAPIOptions{Server: "http://x"})
		if err != nil {
			t.Fatal(err) // every name is another one
		}
		for _, x := range r.Drafts {
			if err := contract.CheckBackend(x.Tool, x.Backend); err != nil {
				t.Error(err)
			}
			if _, err := x.YAML(); err != nil {
				t.Error(err)
			}
			for _, s := range [][]byte{x.Tool.InputSchema, x.Tool.OutputSchema} {
				if _, err := contract.CompileSchema(s); err != nil {
					t.Error(err)
				}
			}
		}
	})
}
