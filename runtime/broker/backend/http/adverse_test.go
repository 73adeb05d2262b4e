package http

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/codeact-dev/codeact-operator/runtime/broker"
)

// TestSwitchedProtocol: the connection of a 101 outlives every context, so nobody
// reads from it.
func TestSwitchedProtocol(t *testing.T) {
	release := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		c, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			panic(err)
		}
		_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
		<-release
		_ = c.Close()
	}))
	defer s.Close()
	defer close(release)
	b := newBackend(t, local, tool(s.URL), nil)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	done := make(chan error, 1)
	go func() {
		_, err := b.Call(ctx, request())
		done <- err
	}()
	select {
	case err := <-done:
		if f, ok := errors.AsType[*broker.Failure](err); !ok || f.Proof != broker.Unproven {
			t.Errorf("error %v, want one that proves nothing", err)
		}
	case <-time.After(5 * time.Second):
		t.Fatal("it outlives its context")
	}
}
