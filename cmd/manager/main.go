// Manager runs the controllers of the CodeAct operator.
package main

import (
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/controllers"
	"github.com/codeact-dev/codeact-operator/controllers/settings"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "manager:", err)
		os.Exit(1)
	}
}

func run() error {
	o := controllers.Options{Operator: settings.Default()}
	qps, burst := 100.0, 200
	logging := zap.Options{}
	bind(flag.CommandLine, &o, &qps, &burst)
	logging.BindFlags(flag.CommandLine)
	flag.Parse()
	if flag.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q: there are only flags", flag.Arg(0))
	}
	o.Operator.Runtime.Proxy = settings.ProxyFrom(os.Getenv)
	ctrl.SetLogger(zap.New(zap.UseFlagOptions(&logging)))
	cfg, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("read the cluster's configuration: %w", err)
	}
	cfg.QPS, cfg.Burst = float32(qps), burst
	return controllers.Run(ctrl.SetupSignalHandler(), cfg, o)
}

// bind declares the manager's flags.
func bind(f *flag.FlagSet, o *controllers.Options, qps *float64, burst *int) {
	op := &o.Operator
	f.StringVar(&op.Runtime.Image, "runtime-image", "", "image of the runtime pods (required)")
	f.Func("runtime-image-pull-policy", "when the image is pulled: Always, IfNotPresent or Never", func(s string) error {
		switch p := corev1.PullPolicy(s); p {
		case corev1.PullAlways, corev1.PullIfNotPresent, corev1.PullNever, "":
			op.Runtime.PullPolicy = p
			return nil
		}
		return fmt.Errorf("want Always, IfNotPresent or Never")
	})
	f.Func("runtime-command", "program of the image and its arguments, split at blanks (default /runtime); empty is the image's entry point",
		func(s string) error { op.Runtime.Command = strings.Fields(s); return nil })
	bindSwitch(f, &op.CodeAct, "codeact", "programs, of whatever kind of run,")
	bindSwitch(f, &op.Recipes, "recipes", "recipes, of runs and of agents,")
	f.Func("limit-default", "name=value: the limit of programs that ask for none (repeatable)", limit(&op.Defaults))
	f.Func("limit-ceiling", "name=value: the highest limit that a recipe or run may ask for (repeatable)", limit(&op.Ceilings))
	f.Func("codeact-default", "Allow or Deny: what a tool's codeAct: Inherit means (default Allow)", func(s string) error {
		op.CodeActDefault = contract.CodeActPolicy(s)
		return nil
	})
	f.Func("hard-deny", "comma-separated names of tools that code may never call, in place of the built-in list", func(s string) error {
		op.HardDeny = strings.FieldsFunc(s, func(r rune) bool { return r == ',' })
		return nil
	})
	f.Func("recipe-tests", "Run or Skip: whether the tests of a Recipe run before it turns Ready (default Run)", func(s string) error {
		if s != "Run" && s != "Skip" {
			return fmt.Errorf("want Run or Skip")
		}
		op.RecipeTests.Run = s == "Run"
		return nil
	})
	f.IntVar(&op.RecipeTests.Pods, "recipe-test-pods", op.RecipeTests.Pods, "how many pods may run tests of Recipes at once, in all namespaces")
	f.StringVar(&op.Runtime.TraceEndpoint, "trace-endpoint", "", "URL of the OpenTelemetry collector that runtime pods send spans to, by OTLP over HTTP (such as http://collector.tracing:4318); without it nothing is traced")
	bindEgress(f, &op.Egress)
	f.IntVar(&o.Concurrency, "concurrency", 4, "how many objects of one kind are looked at at once")
	f.Float64Var(qps, "kube-api-qps", *qps, "requests a second to the API server")
	f.IntVar(burst, "kube-api-burst", *burst, "requests at once to the API server")
	f.StringVar(&o.MetricsAddress, "metrics-bind-address", ":8080", `address of the metrics; "0" switches them off`)
	f.StringVar(&o.ProbeAddress, "health-probe-bind-address", ":8081", `address of /healthz and /readyz; "0" switches them off`)
	f.BoolVar(&o.LeaderElection, "leader-elect", false, "let only one of several managers act")
	f.StringVar(&o.LeaderNamespace, "leader-election-namespace", "", "namespace of the lease; the manager's own by default")
}

// bindSwitch declares the two flags of one switch.
func bindSwitch(f *flag.FlagSet, s *settings.Switch, name, what string) {
	f.BoolVar(&s.Enabled, name+"-enabled", s.Enabled, "let "+what+" run; without it such new runs end as Disabled")
	f.BoolVar(&s.AllowNamespaceOverride, name+"-allow-namespace-override", s.AllowNamespaceOverride,
		"let the annotation codeact.dev/"+name+`-enabled of a namespace ("true" or "false") take the place of --`+name+"-enabled there")
}

// bindEgress declares the flags about how runs reach their tools.
func bindEgress(f *flag.FlagSet, p *contract.OperatorPolicy) {
	f.BoolVar(&p.AllowLoopback, "allow-loopback-tools", p.AllowLoopback, "let tools have loopback addresses (127.0.0.0/8, ::1): the runtime pod itself")
	f.BoolVar(&p.AllowLinkLocal, "allow-link-local-tools", p.AllowLinkLocal, "let tools have link-local addresses (169.254.0.0/16, fe80::/10): metadata services of clouds are there")
	f.BoolVar(&p.ProxyFromEnvironment, "tool-proxy-from-environment", p.ProxyFromEnvironment,
		"send calls of tools through the proxies of the manager's environment (HTTP_PROXY, HTTPS_PROXY, NO_PROXY), without user and password")
	f.BoolVar(&p.WarnOnDrift, "warn-on-declaration-drift", p.WarnOnDrift,
		"call an MCP tool although its server no longer declares what was pinned, and report it; without it the run ends as DeclarationDrift")
	f.BoolVar(&p.TraceContent, "trace-tool-content", p.TraceContent, "put arguments and results of calls into spans; they may hold what is secret")
}

// limit parses name=value into one limit.
func limit(into *contract.Limits) func(string) error {
	return func(s string) error {
		name, value, ok := strings.Cut(s, "=")
		if !ok {
			return fmt.Errorf("want name=value")
		}
		v, err := strconv.ParseInt(value, 10, 64)
		if err != nil {
			return fmt.Errorf("limit %s: %q is no whole number", name, value)
		}
		return into.Set(name, v)
	}
}
