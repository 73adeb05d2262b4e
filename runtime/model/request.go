package model

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/runtime/loop"
)

// form is what requests are made of, as far as the endpoint can.
type form struct {
	// stream asks for a stream, usage for a count of tokens in it.
	stream, usage bool
	// modern bounds the answer by max_completion_tokens instead of max_tokens.
	modern bool
}

// fullForm is what the first request tries.
var fullForm = form{stream: true, usage: true}

// streamWord is the parameter, and not the end of "upstream".
var streamWord = regexp.MustCompile(`(?i)\bstream(ing)?\b`)

// without returns the form without what the endpoint says that it cannot do.
func (f form) without(x *failure) (form, bool) {
	switch {
	case x.status == http.StatusBadRequest, x.status == http.StatusUnprocessableEntity:
	case x.status == http.StatusInternalServerError && strings.Contains(x.complaint, "tools with stream"): // older llama.cpp
	default:
		return f, false
	}
	switch says := x.complaint; {
	case f.usage && (strings.Contains(says, "stream_options") || strings.Contains(says, "include_usage")):
		f.usage = false
	case !f.modern && strings.Contains(says, "max_completion_tokens"):
		f.modern = true
	case f.stream && streamWord.MatchString(says):
		f.stream, f.usage = false, false
	default:
		return f, false
	}
	return f, true
}

// send sends one request and returns the answer as it is, or with an error nil.
func (c *Client) send(ctx context.Context, token string, r loop.ModelRequest) (*http.Response, error) {
	var res *http.Response
	opts := []option.RequestOption{option.WithResponseBodyInto(&res), option.WithMiddleware(c.toPath)}
	if token != "" {
		opts = append(opts, option.WithAPIKey(token))
	}
	var params responses.ResponseNewParams
	var body []byte
	var err error
	if c.pin.API == contract.ModelAPIChat {
		body, err = c.chatBody(r)
		opts = append(opts, option.WithRequestBody("application/json", body))
	} else {
		params, err = c.responseParams(r)
		if c.form.stream {
			opts = append(opts, option.WithJSONSet("stream", true))
		}
	}
	if err != nil {
		return nil, refused("the request cannot be written as JSON")
	}
	_, err = c.service.New(ctx, params, opts...)
	if res != nil {
		return res, nil // the SDK's reading of an error loses what is in no known form
	}
	return nil, err
}

// toPath sends what the SDK's service of responses sends to the path of the API in
// use: its own service for chat completions costs 21 MB (RATIONALE.md).
func (c *Client) toPath(r *http.Request, next option.MiddlewareNext) (*http.Response, error) {
	at := *c.at
	at.RawQuery = r.URL.RawQuery
	r.URL = &at
	return next(r)
}

// paths are where requests go, below the URL of the grant.
var paths = map[contract.ModelAPI]string{contract.ModelAPIChat: "chat/completions", contract.ModelAPIResponses: "responses"}

// below is a URL of the path below a base.
func below(base url.URL, path string) *url.URL {
	if !strings.HasSuffix(base.Path, "/") {
		base.Path += "/"
		if base.RawPath != "" {
			base.RawPath += "/"
		}
	}
	return base.ResolveReference(&url.URL{Path: path})
}

// marshal writes JSON with its letters as they are.
func marshal(v any) (json.RawMessage, error) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSpace(out.Bytes()), nil
}

// extra are the members that keep their spelling: those of extraBody, which New
// has checked, and numbers, which a float64 would spell anew.
func (c *Client) extra() map[string]any {
	out := map[string]any{}
	var body map[string]json.RawMessage
	if len(c.options.ExtraBody) > 0 {
		_ = json.Unmarshal(c.options.ExtraBody, &body)
	}
	for name, value := range body {
		out[name] = value
	}
	if c.options.Temperature != "" {
		out["temperature"] = json.RawMessage(c.options.Temperature)
	}
	if c.options.TopP != "" {
		out["top_p"] = json.RawMessage(c.options.TopP)
	}
	return out
}
