// Toolserver is a small real tool server: the demo and the end-to-end tests call
// it. It listens on -addr, prints its address, and serves until it is told to
// stop.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/codeact-dev/codeact-operator/test/toolserver/tools"
)

func main() {
	log.SetFlags(0)
	addr := flag.String("addr", ":8080", "address to listen on; port 0 takes a free one")
	tokenFile := flag.String("token-file", "", "file with the bearer token that /auth expects")
	flag.Parse()
	if err := serve(*addr, *tokenFile); err != nil {
		log.Fatal("toolserver: ", err)
	}
}

func serve(addr, tokenFile string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	fmt.Printf("listening on http://%s\n", l.Addr())
	// No write timeout: some tools are slow on purpose.
	srv := &http.Server{
		Handler:           tools.New(tools.Config{TokenFile: tokenFile, Reviewer: tools.InCluster()}),
		ReadHeaderTimeout: 5 * time.Second,
	}
	done := make(chan error, 1)
	go func() { done <- srv.Serve(l) }()
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
