// Nsfwd carries TCP between this network namespace and another:
//
//	nsfwd -netns /proc/PID/ns/net -L 127.0.0.1:0=127.0.0.1:6443 -addr-file FILE
//	nsfwd -netns /proc/PID/ns/net -R 10.89.0.1:9443=127.0.0.1:9443
//
// -L listens here and dials there, -R listens there and dials here; both may be
// repeated. With port 0 the kernel chooses; -addr-file then names the addresses
// of the -L listeners, one a line, and appears only when all of them listen.
package main

import (
	"flag"
	"fmt"
	"log"
	"net"
	"os"
	"strings"
)

// pair is one forwarding: connections accepted on listen go to dial.
type pair struct{ listen, dial string }

// pairs is a repeatable flag of LISTEN=DIAL values.
type pairs []pair

// String implements flag.Value.
func (p *pairs) String() string {
	words := make([]string, len(*p))
	for i, one := range *p {
		words[i] = one.listen + "=" + one.dial
	}
	return strings.Join(words, " ")
}

// Set implements flag.Value.
func (p *pairs) Set(s string) error {
	listen, dial, ok := strings.Cut(s, "=")
	if !ok {
		return fmt.Errorf("want LISTEN=DIAL, got %q", s)
	}
	for _, addr := range []string{listen, dial} {
		host, _, err := net.SplitHostPort(addr)
		if err != nil {
			return err
		}
		// A name would be resolved on another thread, in the wrong namespace.
		if net.ParseIP(host) == nil {
			return fmt.Errorf("want a literal IP address, got %q", host)
		}
	}
	*p = append(*p, pair{listen, dial})
	return nil
}

func main() {
	var here, there pairs
	flag.Var(&here, "L", "LISTEN=DIAL: listen here, dial in the other namespace")
	flag.Var(&there, "R", "LISTEN=DIAL: listen in the other namespace, dial here")
	path := flag.String("netns", "", "the other namespace's file, such as /proc/PID/ns/net")
	addrFile := flag.String("addr-file", "", "write the addresses of the -L listeners to this file")
	flag.Parse()
	if err := run(*path, here, there, *addrFile); err != nil {
		log.Fatal(err)
	}
}

// run forwards until a listener fails.
func run(path string, here, there pairs, addrFile string) error {
	own, err := openNamespace("/proc/self/ns/net")
	if err != nil {
		return err
	}
	other, err := openNamespace(path)
	if err != nil {
		return err
	}
	failed := make(chan error, len(here)+len(there))
	addrs, err := forward(here, own, other, failed)
	if err != nil {
		return err
	}
	if _, err := forward(there, other, own, failed); err != nil {
		return err
	}
	if addrFile != "" {
		if err := writeWhole(addrFile, strings.Join(addrs, "\n")+"\n"); err != nil {
			return err
		}
	}
	return <-failed
}

// forward starts to serve each pair and returns the addresses listened on. A
// listener that fails later reports to failed.
func forward(ps pairs, listenNS, dialNS namespace, failed chan<- error) ([]string, error) {
	addrs := make([]string, 0, len(ps))
	for _, p := range ps {
		l, err := listenNS.listen(p.listen)
		if err != nil {
			return nil, err
		}
		addrs = append(addrs, l.Addr().String())
		go func() { failed <- serve(l, dialNS, p.dial) }()
	}
	return addrs, nil
}

// writeWhole makes path appear with all of its content or not at all.
func writeWhole(path, content string) error {
	tmp := path + ".new"
	if err := os.WriteFile(tmp, []byte(content), 0o600); err != nil {
		return err
	}
	return os.Rename(tmp, path)
}
