package main

import (
	"flag"
	"io"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/controllers"
	"github.com/codeact-dev/codeact-operator/controllers/settings"
)

func TestFlags(t *testing.T) {
	tests := map[string]struct {
		args    []string
		want    func(*controllers.Options)
		wantErr bool
	}{
		"none": {},
		"all": {
			args: []string{
				"--runtime-image=x:1", "--runtime-image-pull-policy=Never", "--runtime-command=/bin/runtime --x", "--codeact-enabled=false",
				"--codeact-allow-namespace-override", "--recipes-enabled=false", "--recipes-allow-namespace-override",
				"--limit-default=heapBytes=1048576", "--limit-default", "childCalls=0", "--limit-ceiling=wallClockMs=60000",
				"--codeact-default=Deny", "--hard-deny=a,b", "--concurrency=9", "--metrics-bind-address=0",
				"--health-probe-bind-address=:1", "--leader-elect", "--leader-election-namespace=ns",
				"--allow-loopback-tools", "--allow-link-local-tools", "--tool-proxy-from-environment", "--warn-on-declaration-drift", "--trace-tool-content",
			},
			want: func(o *controllers.Options) {
				none := int64(0)
				o.Operator.Runtime = settings.Runtime{Image: "x:1", PullPolicy: corev1.PullNever, Command: []string{"/bin/runtime", "--x"}}
				o.Operator.CodeAct, o.Operator.Recipes = settings.Switch{AllowNamespaceOverride: true}, settings.Switch{AllowNamespaceOverride: true}
				o.Operator.CodeActDefault = contract.CodeActDeny
				o.Operator.HardDeny = []string{"a", "b"}
				o.Operator.Defaults.HeapBytes, o.Operator.Defaults.ChildCalls = 1<<20, &none
				o.Operator.Ceilings.WallClockMs = 60000
				o.Operator.Egress = contract.OperatorPolicy{
					AllowLoopback: true, AllowLinkLocal: true, ProxyFromEnvironment: true, WarnOnDrift: true, TraceContent: true,
				}
				o.Concurrency, o.MetricsAddress, o.ProbeAddress = 9, "0", ":1"
				o.LeaderElection, o.LeaderNamespace = true, "ns"
			},
		},
		"the image's own program":   {args: []string{"--runtime-command="}, want: func(o *controllers.Options) { o.Operator.Runtime.Command = nil }},
		"nothing denied":            {args: []string{"--hard-deny="}, want: func(o *controllers.Options) { o.Operator.HardDeny = nil }},
		"a limit without a value":   {args: []string{"--limit-default=heapBytes"}, wantErr: true},
		"a limit that is no number": {args: []string{"--limit-default=heapBytes=32Mi"}, wantErr: true},
		"an unknown limit":          {args: []string{"--limit-ceiling=heap=1"}, wantErr: true},
		"an unknown pull policy":    {args: []string{"--runtime-image-pull-policy=Sometimes"}, wantErr: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := controllers.Options{Operator: settings.Default()}
			qps, burst := 1.0, 1
			f := flag.NewFlagSet("manager", flag.ContinueOnError)
			f.SetOutput(io.Discard)
			bind(f, &got, &qps, &burst)
			err := f.Parse(tc.args)
			if (err != nil) != tc.wantErr {
				t.Fatalf("error %v", err)
			}
			if err != nil {
				return
			}
			want := controllers.Options{Operator: settings.Default(), Concurrency: 4, MetricsAddress: ":8080", ProbeAddress: ":8081"}
			if tc.want != nil {
				tc.want(&want)
			}
			if d := cmp.Diff(want, got, cmp.Comparer(func(a, b []string) bool {
				return len(a) == len(b) && cmp.Equal(append([]string{}, a...), append([]string{}, b...))
			})); d != "" {
				t.Error(d)
			}
		})
	}
}
