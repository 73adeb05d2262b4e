// Package report is the only part of the runtime that talks to the Kubernetes
// API. It claims an execution for its pod, writes the journal through, and
// delivers the report: all of it is one field, status.execution of one AgentRun.
// Beside it, it leaves the media of the run's result and the transcript of the
// execution, in one ConfigMap each.
package report

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

// API is how the API server is reached.
type API = *rest.Config

// InCluster is the way to the API server that every pod has.
func InCluster() (API, error) { return rest.InClusterConfig() }

// Pod is the pod that this process runs in.
type Pod struct{ Name, UID string }

// Config says how a Client behaves. The zero value of every duration takes its
// default.
type Config struct {
	// API is how the API server is reached.
	API API
	// Run is the execution generation, BundleDigest what it was pinned as, and
	// Pod the pod that executes it.
	Run          contract.RunRef
	BundleDigest string
	Pod          Pod
	// Now tells the time.
	Now func() time.Time

	// ClaimFor bounds how long Claim tries; 20 s.
	ClaimFor time.Duration
	// WriteFor bounds how long WriteThrough tries; 10 s.
	WriteFor time.Duration
	// RefusedFor bounds how long a write is tried that the API server forbids; 5 s.
	RefusedFor time.Duration
	// Attempt bounds one request; 5 s.
	Attempt time.Duration
	// FirstWait is the wait after the first failure; it doubles up to 2 s; 50 ms.
	FirstWait time.Duration
	// LookEvery is the first wait between two looks for an answer; it doubles up to
	// ten times of that; 500 ms.
	LookEvery time.Duration
}

// UserAgent is what the API server sees as the client.
const UserAgent = "codeact-runtime"

// Client speaks about one execution generation of one AgentRun.
type Client struct {
	cfg  Config
	rest rest.Interface // of our group
	core rest.Interface
}

// New returns a client; it sends nothing yet.
func New(cfg Config) (*Client, error) {
	for _, d := range []struct {
		v *time.Duration
		d time.Duration
	}{
		{&cfg.ClaimFor, 20 * time.Second}, {&cfg.WriteFor, 10 * time.Second}, {&cfg.RefusedFor, 5 * time.Second},
		{&cfg.Attempt, 5 * time.Second}, {&cfg.FirstWait, 50 * time.Millisecond}, {&cfg.LookEvery, defaultLook},
	} {
		if *d.v == 0 {
			*d.v = d.d
		}
	}
	api := rest.CopyConfig(cfg.API)
	api.GroupVersion = &schema.GroupVersion{Group: contract.APIGroup, Version: contract.APIVersion}
	api.APIPath = "/apis"
	api.UserAgent = UserAgent
	api.NegotiatedSerializer = serializer.NewCodecFactory(statusScheme()).WithoutConversion()
	api.QPS = -1 // a run makes a handful of requests, none of which may wait
	ours, err := rest.RESTClientFor(api)
	if err != nil {
		return nil, fmt.Errorf("client of the Kubernetes API: %w", err)
	}
	core := rest.CopyConfig(api)
	core.GroupVersion, core.APIPath = &schema.GroupVersion{Version: "v1"}, "/api"
	v1, err := rest.RESTClientFor(core)
	if err != nil {
		return nil, fmt.Errorf("client of the Kubernetes API: %w", err)
	}
	return &Client{cfg: cfg, rest: ours, core: v1}, nil
}

// statusScheme knows the API server's own errors and nothing else.
func statusScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	s.AddUnversionedTypes(schema.GroupVersion{Version: "v1"}, &metav1.Status{})
	return s
}

// agentRun is what the pod reads of its AgentRun.
type agentRun struct {
	Metadata struct {
		UID               string  `json:"uid"`
		ResourceVersion   string  `json:"resourceVersion"`
		DeletionTimestamp *string `json:"deletionTimestamp"`
	} `json:"metadata"`
	Spec   map[string]json.RawMessage `json:"spec"`
	Status struct {
		ExecutionGeneration int64               `json:"executionGeneration"`
		ExecutionDigest     string              `json:"executionDigest"`
		PodName             string              `json:"podName"`
		CompletionTime      *string             `json:"completionTime"`
		Execution           *contract.Execution `json:"execution"`
		Pinned              *struct {
			Digest string `json:"digest"`
		} `json:"pinned"`
	} `json:"status"`
}

func (a *agentRun) cancelled() bool { return string(a.Spec["cancel"]) == "true" }

// asked is the canonical JSON of the part of the spec whose change asks for
// another execution.
func (a *agentRun) asked() string {
	rest := map[string]json.RawMessage{}
	for k, v := range a.Spec {
		switch k {
		case "cancel", "ttlAfterFinished", "startDeadline", "resolutions":
		default:
			rest[k] = v
		}
	}
	b, err := contract.Canonical(rest)
	if err != nil {
		return ""
	}
	return string(b)
}

func (c *Client) get(ctx context.Context) (*agentRun, error) {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.Attempt)
	defer cancel()
	raw, err := c.rest.Get().Namespace(c.cfg.Run.Namespace).Resource(contract.AgentRunResource).Name(c.cfg.Run.Name).Do(ctx).Raw()
	if err != nil {
		return nil, err
	}
	var a agentRun
	if err := json.Unmarshal(raw, &a); err != nil {
		return nil, fmt.Errorf("the AgentRun cannot be read: %w", err)
	}
	return &a, nil
}

// patch is the one object that the pod ever writes.
type patch struct {
	APIVersion string        `json:"apiVersion"`
	Kind       string        `json:"kind"`
	Metadata   patchMetadata `json:"metadata"`
	Status     patchStatus   `json:"status"`
}

type patchMetadata struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// UID makes a write to another run of the same name fail.
	UID string `json:"uid"`
	// ResourceVersion, when set, makes a write fail if anything has changed.
	ResourceVersion string `json:"resourceVersion,omitempty"`
}

type patchStatus struct {
	Execution contract.Execution `json:"execution"`
}

// apply writes all of status.execution by server-side apply.
func (c *Client) apply(ctx context.Context, e contract.Execution, resourceVersion string) error {
	body, err := json.Marshal(patch{
		APIVersion: contract.APIGroup + "/" + contract.APIVersion, Kind: contract.AgentRunKind,
		Metadata: patchMetadata{Namespace: c.cfg.Run.Namespace, Name: c.cfg.Run.Name, UID: c.cfg.Run.UID, ResourceVersion: resourceVersion},
		Status:   patchStatus{Execution: e},
	})
	if err != nil {
		return fmt.Errorf("the report cannot be written as JSON: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, c.cfg.Attempt)
	defer cancel()
	return c.rest.Patch(types.ApplyPatchType).
		Namespace(c.cfg.Run.Namespace).Resource(contract.AgentRunResource).Name(c.cfg.Run.Name).SubResource("status").
		Param("fieldManager", contract.RuntimeFieldManager).Param("force", "true").
		Body(body).Do(ctx).Error()
}
