// Toolserver is a small real tool server: the demo and the end-to-end tests call
// it. It listens on -addr, prints its address, and serves until it is told to
// stop.
package main

import (
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/codeact-dev/codeact-operator/test/toolserver/tools"
)

func main() {
	log.SetFlags(0)
	addr := flag.String("addr", ":8080", "address to listen on; port 0 takes a free one")
	tokenFile := flag.String("token-file", "", "file with the bearer token that /auth expects")
	tlsAddr := flag.String("tls-addr", "", "address for TLS, with a certificate that is made at the start; none without it")
	hosts := flag.String("tls-hosts", "localhost", "comma-separated names in that certificate; GET /ca answers with its authority")
	flag.Parse()
	if err := serve(*addr, *tlsAddr, *hosts, *tokenFile); err != nil {
		log.Fatal("toolserver: ", err)
	}
}

func serve(addr, tlsAddr, hosts, tokenFile string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	cert, ca, err := authority(time.Now(), strings.Split(hosts, ","))
	if err != nil {
		return err
	}
	// No write timeout: some tools are slow on purpose.
	srv := &http.Server{
		Handler:           tools.New(tools.Config{TokenFile: tokenFile, Reviewer: tools.InCluster(), CA: ca}),
		ReadHeaderTimeout: 5 * time.Second,
	}
	done := make(chan error, 2)
	for scheme, at := range map[string]string{"http": addr, "https": tlsAddr} {
		if at == "" {
			continue
		}
		l, err := net.Listen("tcp", at)
		if err != nil {
			return err
		}
		fmt.Printf("listening on %s://%s\n", scheme, l.Addr())
		if scheme == "https" {
			l = tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12})
		}
		go func() { done <- srv.Serve(l) }()
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	// Whoever still waits for a slow tool is cut off: it is a test server.
	if err := srv.Close(); err != nil && !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
