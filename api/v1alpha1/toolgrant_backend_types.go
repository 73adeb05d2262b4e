package v1alpha1

import "github.com/codeact-dev/codeact-operator/api/contract"

// ToolBackend says where a tool is.
// +kubebuilder:validation:XValidation:rule="[has(self.http), has(self.mcp), has(self.model)].filter(x, x).size() == 1",message="set exactly one of http, mcp and model"
type ToolBackend struct {
	// http is a tool behind one HTTP request a call.
	// +optional
	HTTP *HTTPBackend `json:"http,omitempty"`
	// mcp is one tool of an MCP server.
	// +optional
	MCP *MCPBackend `json:"mcp,omitempty"`
	// model is a model's endpoint, which agents ask and programs never do.
	// +optional
	Model *ModelBackend `json:"model,omitempty"`
}

// HTTPBackend says how a call becomes a request, and its response a result. The
// arguments that url does not name are the JSON body. Redirects are not followed.
type HTTPBackend struct {
	// url is the address. In its path and query, {name} stands for the argument of
	// that name, escaped; a query parameter whose argument is absent is left out.
	// +required
	// +kubebuilder:validation:MinLength=8
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="isURL(self) && (url(self).getScheme() == 'http' || url(self).getScheme() == 'https') && url(self).getHostname() != ''",message="url must be an absolute http or https URL"
	// +kubebuilder:validation:XValidation:rule="!self.contains('@') && !self.contains('#')",message="url must not hold credentials or a fragment: use spec.auth"
	URL string `json:"url"`
	// method of the request. GET and DELETE have no body: url must name every
	// argument then.
	// +optional
	// +kubebuilder:default=POST
	Method contract.HTTPMethod `json:"method,omitempty"`
	// headers are sent with every call. They are no place for credentials.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	Headers []HTTPHeader `json:"headers,omitempty"`
	// response says how the body becomes the result: as JSON, or as text that
	// becomes one JSON string.
	// +optional
	// +kubebuilder:default=JSON
	Response contract.ResponseForm `json:"response,omitempty"`
	// caBundle holds the root certificates that the server must be known by, as
	// PEM; the public ones without it.
	// +optional
	CABundle *ConfigMapKeyReference `json:"caBundle,omitempty"`
}

// HTTPHeader is one fixed header.
type HTTPHeader struct {
	// name of the header.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9-]+$`
	// +kubebuilder:validation:XValidation:rule="!(self.lowerAscii() in ['accept-encoding', 'authorization', 'connection', 'content-encoding', 'content-length', 'content-type', 'cookie', 'expect', 'forwarded', 'host', 'idempotency-key', 'keep-alive', 'te', 'traceparent', 'tracestate', 'trailer', 'transfer-encoding', 'upgrade', 'user-agent', 'via']) && !self.lowerAscii().startsWith('codeact-') && !self.lowerAscii().startsWith('proxy-')",message="this header belongs to the runtime: use spec.auth for credentials"
	Name string `json:"name"`
	// value of the header: printable ASCII.
	// +required
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^[ -~]*$`
	Value string `json:"value"`
}

// ConfigMapKeyReference names one entry of a ConfigMap in the same namespace.
type ConfigMapKeyReference struct {
	// name is the ConfigMap's name.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// key is the entry.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[-._a-zA-Z0-9]+$`
	Key string `json:"key"`
}

// MCPBackend is one tool of an MCP server that speaks streamable HTTP. A run has
// one session with it.
type MCPBackend struct {
	// url is the server's endpoint.
	// +required
	// +kubebuilder:validation:MinLength=8
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="isURL(self) && (url(self).getScheme() == 'http' || url(self).getScheme() == 'https') && url(self).getHostname() != ''",message="url must be an absolute http or https URL"
	// +kubebuilder:validation:XValidation:rule="!self.contains('@') && !self.contains('#')",message="url must not hold credentials or a fragment: use spec.auth"
	URL string `json:"url"`
	// tool is the tool's name on that server; it defaults to spec.tool.name.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Tool string `json:"tool,omitempty"`
	// caBundle holds the root certificates that the server must be known by, as
	// PEM; the public ones without it.
	// +optional
	CABundle *ConfigMapKeyReference `json:"caBundle,omitempty"`
}

// ModelBackend is a model behind an endpoint of OpenAI's form.
type ModelBackend struct {
	// url is the base address, to which the paths of the api are added, such as
	// https://api.openai.com/v1.
	// +required
	// +kubebuilder:validation:MinLength=8
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="isURL(self) && (url(self).getScheme() == 'http' || url(self).getScheme() == 'https') && url(self).getHostname() != ''",message="url must be an absolute http or https URL"
	// +kubebuilder:validation:XValidation:rule="!self.contains('@') && !self.contains('#')",message="url must not hold credentials or a fragment: use spec.auth"
	URL string `json:"url"`
	// model is the model's name at the endpoint.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Model string `json:"model"`
	// api is what the endpoint speaks.
	// +optional
	// +kubebuilder:default=ChatCompletions
	API contract.ModelAPI `json:"api,omitempty"`
	// caBundle holds the root certificates that the server must be known by, as
	// PEM; the public ones without it.
	// +optional
	CABundle *ConfigMapKeyReference `json:"caBundle,omitempty"`
}
