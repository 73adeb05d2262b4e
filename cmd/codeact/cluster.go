package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/codeact-dev/codeact-operator/api/v1alpha1"
)

// cluster is how a subcommand reaches an API server: as kubectl does, by the same
// files, variables and flags.
type cluster struct {
	rules     *clientcmd.ClientConfigLoadingRules
	overrides clientcmd.ConfigOverrides
}

// bind adds the flags that choose the cluster, the namespace and the user.
func (c *cluster) bind(cmd *cobra.Command) {
	flags := cmd.Flags()
	c.rules = clientcmd.NewDefaultClientConfigLoadingRules()
	flags.StringVar(&c.rules.ExplicitPath, clientcmd.RecommendedConfigPathFlag, "", "the kubeconfig file")
	of := clientcmd.RecommendedConfigOverrideFlags("")
	// Credentials belong into the file.
	of.AuthOverrideFlags = clientcmd.AuthOverrideFlags{
		Impersonate: of.AuthOverrideFlags.Impersonate, ImpersonateGroups: of.AuthOverrideFlags.ImpersonateGroups,
	}
	of.ClusterOverrideFlags = clientcmd.ClusterOverrideFlags{}
	of.Timeout = clientcmd.FlagInfo{}
	clientcmd.BindOverrideFlags(&c.overrides, flags, of)
}

// connect returns a client and the namespace that was chosen.
func (c *cluster) connect() (client.Client, string, error) {
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(c.rules, &c.overrides)
	ns, _, err := loader.Namespace()
	if err != nil {
		return nil, "", err
	}
	cfg, err := loader.ClientConfig()
	if err != nil {
		return nil, "", err
	}
	api, err := newClusterClient(cfg)
	return api, ns, err
}

func newClusterClient(cfg *rest.Config) (client.Client, error) {
	if err := v1alpha1.AddToScheme(scheme.Scheme); err != nil {
		return nil, err
	}
	return client.New(cfg, client.Options{Scheme: scheme.Scheme})
}

// whoami is the user that the API server takes the caller for.
func whoami(ctx context.Context, api client.Client) (string, error) {
	var r authenticationv1.SelfSubjectReview
	if err := api.Create(ctx, &r); err != nil {
		return "", fmt.Errorf("ask the cluster who you are: %w", err)
	}
	return r.Status.UserInfo.Username, nil
}
