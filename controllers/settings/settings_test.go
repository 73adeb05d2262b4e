package settings_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/controllers/settings"
)

func TestLimits(t *testing.T) {
	raised := func(o *settings.Operator) { o.Ceilings = contract.Ceilings() }
	low := func(o *settings.Operator) { o.Ceilings.HeapBytes = 8 << 20 }
	calls := func(n int64) *int64 { return &n }
	tests := map[string]struct {
		operator    func(*settings.Operator)
		recipe, run *contract.Limits
		want        func(*contract.Limits)
	}{
		"nothing asked: the defaults":          {},
		"nothing asked, higher ceilings":       {operator: raised, want: func(l *contract.Limits) { l.Fuel = contract.Ceilings().Fuel }},
		"a ceiling bounds what has no default": {operator: func(o *settings.Operator) { o.Ceilings.Fuel = 9 }, want: func(l *contract.Limits) { l.Fuel = 9 }},
		"the recipe lowers":                    {recipe: &contract.Limits{HeapBytes: 16 << 20}, want: func(l *contract.Limits) { l.HeapBytes = 16 << 20 }},
		"the run lowers":                       {run: &contract.Limits{WallClockMs: 5}, want: func(l *contract.Limits) { l.WallClockMs = 5 }},
		"the run lowers the recipe's":          {recipe: &contract.Limits{WallClockMs: 50}, run: &contract.Limits{WallClockMs: 5}, want: func(l *contract.Limits) { l.WallClockMs = 5 }},
		"the run does not raise it":            {recipe: &contract.Limits{WallClockMs: 5}, run: &contract.Limits{WallClockMs: 50}, want: func(l *contract.Limits) { l.WallClockMs = 5 }},
		"no calls":                             {run: &contract.Limits{ChildCalls: calls(0)}, want: func(l *contract.Limits) { l.ChildCalls = calls(0) }},
		"up to a ceiling that was raised":      {operator: raised, recipe: &contract.Limits{HeapBytes: 64 << 20}, want: func(l *contract.Limits) { l.HeapBytes, l.Fuel = 64<<20, contract.Ceilings().Fuel }},
		"never above a ceiling":                {operator: low, run: &contract.Limits{HeapBytes: 9 << 20}, want: func(l *contract.Limits) { l.HeapBytes = 8 << 20 }},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			op := settings.Default()
			if tc.operator != nil {
				tc.operator(&op)
			}
			want := contract.DefaultLimits()
			if tc.want != nil {
				tc.want(&want)
			}
			if d := cmp.Diff(want, op.Limits(tc.recipe, tc.run)); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestCheck(t *testing.T) {
	op := settings.Default()
	if err := op.Check(nil); err != nil {
		t.Errorf("nothing asked: %v", err)
	}
	l := contract.DefaultLimits()
	if err := op.Check(&l); err != nil {
		t.Errorf("exactly the ceilings: %v", err)
	}
	l.StackBytes++
	if f, ok := contract.AsFault(op.Check(&l)); !ok || f.Reason != contract.ReasonLimitsTooHigh {
		t.Errorf("above: %v", f)
	}
}

func proxied(p settings.Proxy) func(*settings.Operator) {
	return func(o *settings.Operator) { o.Egress.ProxyFromEnvironment, o.Runtime.Proxy = true, p }
}

func TestProxyFrom(t *testing.T) {
	env := map[string]string{"http_proxy": "a", "HTTPS_PROXY": "b", "https_proxy": "c"}
	want := settings.Proxy{HTTP: "a", HTTPS: "b"}
	if got := settings.ProxyFrom(func(k string) string { return env[k] }); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestValidate(t *testing.T) {
	tests := map[string]struct {
		edit func(*settings.Operator)
		want string
	}{
		"the defaults":                {edit: func(*settings.Operator) {}},
		"all that is allowed":         {edit: func(o *settings.Operator) { o.Defaults, o.Ceilings = contract.Ceilings(), contract.Ceilings() }},
		"a ceiling above the product": {edit: func(o *settings.Operator) { o.Ceilings.HeapBytes = 1 << 40 }, want: "ceilings"},
		"a default above a ceiling":   {edit: func(o *settings.Operator) { o.Ceilings.HeapBytes = 1 << 20 }, want: "default limits"},
		"an unknown policy":           {edit: func(o *settings.Operator) { o.CodeActDefault = "Perhaps" }, want: "Allow or Deny"},
		"a proxy":                     {edit: proxied(settings.Proxy{HTTP: "http://proxy.example:3128", HTTPS: "proxy.example:3128", No: "10.0.0.0/8"})},
		"no check pods at all":        {edit: func(o *settings.Operator) { o.RecipeTests.Pods = 0 }, want: "check pods"},
		"a collector of traces":       {edit: func(o *settings.Operator) { o.Runtime.TraceEndpoint = "http://collector.tracing:4318" }},
		"a collector with a password": {edit: func(o *settings.Operator) { o.Runtime.TraceEndpoint = "http://ann:hunter2@x:4318" }, want: "the endpoint for traces carries a user or password"},
		"no proxy at all":             {edit: proxied(settings.Proxy{No: "10.0.0.0/8"}), want: "neither HTTP_PROXY nor HTTPS_PROXY"},
		"a proxy with a password":     {edit: proxied(settings.Proxy{HTTPS: "http://ann:hunter2@proxy.example:3128"}), want: "HTTPS_PROXY carries a user or password"},
		"the same without a scheme":   {edit: proxied(settings.Proxy{HTTP: "ann:hunter2@proxy.example:3128"}), want: "HTTP_PROXY carries a user or password"},
		"a proxy that is no address":  {edit: proxied(settings.Proxy{HTTP: "http://hunter2 x/%zz"}), want: "HTTP_PROXY is no address"},
		"a proxy of another sort":     {edit: proxied(settings.Proxy{HTTP: "socks5://proxy.example"}), want: "http or https"},
		"a password that nobody uses": {edit: func(o *settings.Operator) { o.Runtime.Proxy.HTTP = "http://ann:hunter2@proxy.example" }},
		"a denied name that is none":  {edit: func(o *settings.Operator) { o.HardDeny = []string{"a b"} }, want: `"a b"`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			op := settings.Default()
			tc.edit(&op)
			err := op.Validate()
			if (err != nil) != (tc.want != "") {
				t.Fatalf("error %v", err)
			}
			if err != nil && strings.Contains(err.Error(), "hunter2") {
				t.Errorf("error %q tells the password", err)
			}
			if err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %q, want %q in it", err, tc.want)
			}
		})
	}
}
