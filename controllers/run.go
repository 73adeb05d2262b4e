package controllers

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/codeact-dev/codeact-operator/controllers/settings"
)

// Options are the manager's own, beside what the administrator decides.
type Options struct {
	Operator settings.Operator
	// Concurrency bounds how many objects of one kind are looked at at once.
	Concurrency int
	// MetricsAddress and ProbeAddress are listened on; "0" switches one off.
	MetricsAddress, ProbeAddress string
	// LeaderElection lets one of several managers act, by a lease in
	// LeaderNamespace; empty is the manager's own namespace.
	LeaderElection  bool
	LeaderNamespace string
}

// Run runs the manager until ctx ends.
func Run(ctx context.Context, cfg *rest.Config, o Options) error {
	if o.Operator.Runtime.Image == "" {
		return errors.New("no image of the runtime is set: use --runtime-image")
	}
	if err := o.Operator.Validate(); err != nil {
		return err
	}
	scheme, err := Scheme()
	if err != nil {
		return err
	}
	cacheOptions, err := CacheOptions()
	if err != nil {
		return err
	}
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Scheme: scheme, Cache: cacheOptions,
		Metrics:                metricsserver.Options{BindAddress: o.MetricsAddress},
		HealthProbeBindAddress: o.ProbeAddress,
		LeaderElection:         o.LeaderElection, LeaderElectionNamespace: o.LeaderNamespace,
		LeaderElectionID: "codeact-operator", LeaderElectionReleaseOnCancel: true,
	})
	if err != nil {
		return fmt.Errorf("create the manager: %w", err)
	}
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return err
	}
	if err := mgr.AddReadyzCheck("ping", healthz.Ping); err != nil {
		return err
	}
	if err := Setup(ctx, mgr, o.Operator, o.Concurrency); err != nil {
		return err
	}
	return mgr.Start(ctx)
}
