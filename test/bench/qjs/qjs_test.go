// Package qjs measures the Go API of github.com/fastschema/qjs as it is
// shipped. It is a module of its own because that API does not work with the
// version of wazero that the sandbox uses.
package qjs

import (
	"context"
	"errors"
	"os"
	"testing"

	"github.com/fastschema/qjs"

	"github.com/codeact-dev/codeact-operator/test/bench/suite"
)

// interruptEnv, if set, measures what can be stopped by its context. It is a
// matter of the process: the first runtime decides for all.
const interruptEnv = "CODEACT_BENCH_QJS_INTERRUPTIBLE"

type subject struct{ option qjs.Option }

func open(dir string) (suite.Subject, error) {
	return subject{qjs.Option{CacheDir: dir, Context: context.Background(), CloseOnContextDone: os.Getenv(interruptEnv) != ""}}, nil
}

func opened(tb testing.TB) suite.Subject {
	s, err := open("")
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

func TestMain(m *testing.M)           { suite.Main(m, open) }
func TestPrograms(t *testing.T)       { suite.Test(t, opened(t)) }
func BenchmarkExecution(b *testing.B) { suite.Bench(b, opened(b)) }

// Prepare fills wazero's compilation cache. Only a process that has not
// compiled yet writes it: the module is kept once for all.
func (s subject) Prepare(dir string) error {
	o := s.option
	o.CacheDir, o.DisableBuildCache = dir, true
	rt, err := qjs.New(o)
	if err == nil {
		rt.Close()
	}
	return err
}

func (s subject) fresh() (*qjs.Runtime, error) {
	rt, err := qjs.New(s.option)
	if err == nil {
		rt.Context().SetFunc("hostCall", hostCall)
	}
	return rt, err
}

func hostCall(this *qjs.This) (*qjs.Value, error) {
	args := this.Args()
	if len(args) != 2 {
		return nil, errors.New("hostCall wants two strings")
	}
	return this.Context().NewString(suite.Host(args[0].String(), args[1].String())), nil
}

func (s subject) Fresh() error {
	rt, err := s.fresh()
	if err == nil {
		rt.Close()
	}
	return err
}

func (s subject) Run(source, input string) (string, error) {
	rt, err := s.fresh()
	if err != nil {
		return "", err
	}
	defer rt.Close()
	v, err := rt.Eval("main.js", qjs.Code(suite.Wrap(source)))
	if err != nil {
		return "", err
	}
	v.Free()
	arg := rt.Context().NewString(input)
	v, err = rt.Context().Global().InvokeJS("run", arg)
	if err != nil {
		return "", err
	}
	out := v.String()
	v.Free()
	arg.Free()
	return out, nil
}
