// Package modernc measures modernc.org/quickjs, QuickJS translated from C to
// Go. A runtime can be given a limit of memory and of time.
package modernc

import (
	"errors"
	"fmt"
	"testing"

	"modernc.org/quickjs"

	"github.com/codeact-dev/codeact-operator/test/bench/suite"
)

type subject struct{}

func open(string) (suite.Subject, error) { return subject{}, nil }

func TestMain(m *testing.M)           { suite.Main(m, open) }
func TestPrograms(t *testing.T)       { suite.Test(t, subject{}) }
func BenchmarkExecution(b *testing.B) { suite.Bench(b, subject{}) }

func fresh() (*quickjs.VM, error) {
	vm, err := quickjs.NewVM()
	if err != nil {
		return nil, err
	}
	if err := vm.RegisterHostFunc("hostCall", hostCall); err != nil {
		return nil, errors.Join(err, vm.Close())
	}
	return vm, nil
}

func hostCall(args []any) (any, error) {
	if len(args) == 2 {
		name, ok := args[0].(string)
		text, ok2 := args[1].(string)
		if ok && ok2 {
			return suite.Host(name, text), nil
		}
	}
	return nil, errors.New("hostCall wants two strings")
}

func (subject) Fresh() error {
	vm, err := fresh()
	if err != nil {
		return err
	}
	return vm.Close()
}

func (subject) Run(source, input string) (out string, err error) {
	vm, err := fresh()
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, vm.Close()) }()
	if _, err := vm.Eval(suite.Wrap(source), quickjs.EvalGlobal); err != nil {
		return "", err
	}
	v, err := vm.Call("run", input)
	if err != nil {
		return "", err
	}
	out, ok := v.(string)
	if !ok {
		return "", fmt.Errorf("run returned a %T", v)
	}
	return out, nil
}
