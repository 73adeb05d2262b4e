package settings

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// Proxy names the proxies for calls of tools, each in the form of the environment
// variable that it comes from; empty is none.
type Proxy struct {
	// HTTP and HTTPS are the addresses of the proxies for such URLs.
	HTTP, HTTPS string
	// No lists the hosts that are reached without one.
	No string
}

// The environment variables of proxies, as programs know them.
const (
	EnvHTTPProxy  = "HTTP_PROXY"
	EnvHTTPSProxy = "HTTPS_PROXY"
	EnvNoProxy    = "NO_PROXY"
)

// ProxyFrom reads the proxies from an environment: the name in upper case, else
// the one in lower case.
func ProxyFrom(getenv func(string) string) Proxy {
	get := func(name string) string {
		if v := getenv(name); v != "" {
			return v
		}
		return getenv(strings.ToLower(name))
	}
	return Proxy{HTTP: get(EnvHTTPProxy), HTTPS: get(EnvHTTPSProxy), No: get(EnvNoProxy)}
}

// validate refuses proxies that are not there, since calls would pass by them, and
// what would put a credential into every pod. Its errors never hold a part of an
// address.
func (p Proxy) validate() error {
	if p.HTTP == "" && p.HTTPS == "" {
		return fmt.Errorf("calls of tools are to go through a proxy, and neither %s nor %s names one", EnvHTTPProxy, EnvHTTPSProxy)
	}
	var errs []error
	for _, x := range []struct{ name, value string }{{EnvHTTPProxy, p.HTTP}, {EnvHTTPSProxy, p.HTTPS}} {
		if why := refuseAddress(x.value); why != "" {
			errs = append(errs, fmt.Errorf("the proxy of the environment variable %s %s", x.name, why))
		}
	}
	return errors.Join(errs...)
}

// refuseAddress says what is wrong with an address that every pod is given.
func refuseAddress(s string) string {
	if s == "" {
		return ""
	}
	if strings.Contains(s, "@") {
		return "carries a user or password, which would be readable in every pod: use one that needs none"
	}
	if !strings.Contains(s, "://") {
		s = "http://" + s
	}
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Hostname() == "":
		return "is no address"
	case u.User != nil:
		return "carries a user or password, which would be readable in every pod: use one that needs none"
	case u.Scheme != "http" && u.Scheme != "https":
		return "must be an http or https address"
	}
	return ""
}
