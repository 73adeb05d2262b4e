package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// dialTimeout bounds one dial; both ends are on this machine.
const dialTimeout = 5 * time.Second

// namespace is a network namespace. A socket keeps the namespace it was made
// in, so only listening and dialing have to happen inside.
type namespace struct{ file *os.File }

func openNamespace(path string) (namespace, error) {
	f, err := os.Open(path)
	if err != nil {
		return namespace{}, fmt.Errorf("open network namespace: %w", err)
	}
	return namespace{f}, nil
}

// do runs fn on a thread of its own inside the namespace. The thread is never
// unlocked, so it ends with its goroutine and serves nothing else afterwards.
func (n namespace) do(fn func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		if err := unix.Setns(int(n.file.Fd()), unix.CLONE_NEWNET); err != nil {
			done <- fmt.Errorf("enter network namespace: %w", err)
			return
		}
		done <- fn()
	}()
	return <-done
}

func (n namespace) listen(addr string) (l net.Listener, err error) {
	err = n.do(func() (e error) {
		l, e = net.Listen("tcp", addr)
		return e
	})
	return l, err
}

func (n namespace) dial(addr string) (c net.Conn, err error) {
	err = n.do(func() (e error) {
		ctx, cancel := context.WithTimeout(context.Background(), dialTimeout)
		defer cancel()
		// No fallback: a second attempt would be made on another thread.
		c, e = (&net.Dialer{FallbackDelay: -1}).DialContext(ctx, "tcp", addr)
		return e
	})
	return c, err
}

// serve accepts on l until that fails, and joins each connection with one to addr.
func serve(l net.Listener, ns namespace, addr string) error {
	for {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		go func() {
			if err := join(c, ns, addr); err != nil {
				log.Printf("to %s: %v", addr, err)
			}
		}()
	}
}

// join copies both ways until both directions have ended.
func join(c net.Conn, ns namespace, addr string) error {
	defer c.Close()
	d, err := ns.dial(addr)
	if err != nil {
		return err
	}
	defer d.Close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		pump(d, c)
	}()
	pump(c, d)
	<-done
	return nil
}

// pump copies from src to dst and passes the end of the stream on. How a copy
// ended does not matter: each side sees its own connection close.
func pump(dst, src net.Conn) {
	_, _ = io.Copy(dst, src)
	if t, ok := dst.(*net.TCPConn); ok {
		_ = t.CloseWrite()
	}
}
