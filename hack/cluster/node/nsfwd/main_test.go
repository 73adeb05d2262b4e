package main

import (
	"bufio"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestPairs(t *testing.T) {
	tests := map[string]struct {
		give    string
		wantErr bool
	}{
		"ipv4":           {give: "127.0.0.1:0=127.0.0.1:6443"},
		"ipv6":           {give: "[::1]:80=10.89.0.1:8080"},
		"no dial":        {give: "127.0.0.1:80", wantErr: true},
		"no port":        {give: "127.0.0.1=127.0.0.1:80", wantErr: true},
		"name to listen": {give: "localhost:80=127.0.0.1:80", wantErr: true},
		"name to dial":   {give: "127.0.0.1:80=localhost:80", wantErr: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var p pairs
			if err := p.Set(tc.give); (err != nil) != tc.wantErr {
				t.Fatalf("Set(%q) = %v, want error %v", tc.give, err, tc.wantErr)
			}
			if got := p.String(); !tc.wantErr && got != tc.give {
				t.Errorf("String() = %q, want %q", got, tc.give)
			}
		})
	}
}

// TestRun carries a request and its answer through a namespace that happens to
// be the test's own, and sees the half-close pass.
func TestRun(t *testing.T) {
	if err := (namespace{mustOpen(t, "/proc/self/ns/net")}).do(func() error { return nil }); errors.Is(err, unix.EPERM) {
		t.Skip("entering a network namespace is not permitted here")
	}
	back, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer back.Close()
	go func() {
		c, err := back.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		b, _ := io.ReadAll(c) // ends only with the client's half-close
		_, _ = c.Write([]byte(strings.ToUpper(string(b))))
	}()

	file := filepath.Join(t.TempDir(), "addr")
	go func() { _ = run("/proc/self/ns/net", pairs{{"127.0.0.1:0", back.Addr().String()}}, nil, file) }()
	c, err := net.Dial("tcp", awaitAddr(t, file))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Write([]byte("hello\n")); err != nil {
		t.Fatal(err)
	}
	if err := c.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	got, err := bufio.NewReader(c).ReadString('\n')
	if err != nil || got != "HELLO\n" {
		t.Fatalf("got %q, %v; want HELLO", got, err)
	}
}

func mustOpen(t *testing.T, path string) *os.File {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func awaitAddr(t *testing.T, file string) string {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for range tick.C {
		if b, err := os.ReadFile(file); err == nil {
			return strings.TrimSpace(string(b))
		}
		if time.Now().After(deadline) {
			t.Fatal("the forwarder wrote no address within 10 s")
		}
	}
	return ""
}
