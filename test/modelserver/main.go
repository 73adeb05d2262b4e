// Modelserver is a model that answers by a script: the demo and the end-to-end
// tests ask it instead of a real one. It listens on -addr, prints its address, and
// serves until it is told to stop. README.md has the form of a script.
package main

import (
	"context"
	"encoding/json"
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

	"github.com/codeact-dev/codeact-operator/test/modelserver/script"
)

func main() {
	log.SetFlags(0)
	addr := flag.String("addr", ":8080", "address to listen on; port 0 takes a free one")
	file := flag.String("scripts", "", "JSON file with an object of scripts by name; more can be posted to /script")
	tokenFile := flag.String("token-file", "", "file with the bearer token that every request must carry; none without it")
	flag.Parse()
	if err := serve(*addr, *file, *tokenFile); err != nil {
		log.Fatal("modelserver: ", err)
	}
}

func serve(addr, file, tokenFile string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	server := script.New(script.Config{TokenFile: tokenFile})
	if file != "" {
		raw, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		var scripts map[string]script.Script
		if err := json.Unmarshal(raw, &scripts); err != nil {
			return err
		}
		for name, s := range scripts {
			server.Play(name, s)
		}
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	fmt.Printf("listening on http://%s\n", l.Addr())
	// No write timeout: some answers are slow on purpose.
	srv := &http.Server{Handler: server, ReadHeaderTimeout: 5 * time.Second}
	done := make(chan error, 1)
	go func() { done <- srv.Serve(l) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	// Whoever still waits for a slow answer is cut off: it is a test server.
	if err := srv.Close(); err != nil && !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
