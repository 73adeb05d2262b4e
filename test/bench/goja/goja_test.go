// Package goja measures goja, a JavaScript engine written in Go. It has no
// bound on memory; a running program is stopped by Interrupt.
package goja

import (
	"errors"
	"testing"

	"github.com/dop251/goja"

	"github.com/codeact-dev/codeact-operator/test/bench/suite"
)

type subject struct{}

func open(string) (suite.Subject, error) { return subject{}, nil }

func TestMain(m *testing.M)           { suite.Main(m, open) }
func TestPrograms(t *testing.T)       { suite.Test(t, subject{}) }
func BenchmarkExecution(b *testing.B) { suite.Bench(b, subject{}) }

func fresh() (*goja.Runtime, error) {
	rt := goja.New()
	return rt, rt.Set("hostCall", func(c goja.FunctionCall) goja.Value {
		return rt.ToValue(suite.Host(c.Argument(0).String(), c.Argument(1).String()))
	})
}

func (subject) Fresh() error {
	_, err := fresh()
	return err
}

func (subject) Run(source, input string) (string, error) {
	rt, err := fresh()
	if err != nil {
		return "", err
	}
	if _, err := rt.RunScript("main.js", suite.Wrap(source)); err != nil {
		return "", err
	}
	run, ok := goja.AssertFunction(rt.Get("run"))
	if !ok {
		return "", errors.New("no function run")
	}
	v, err := run(goja.Undefined(), rt.ToValue(input))
	if err != nil {
		return "", err
	}
	return v.String(), nil
}
