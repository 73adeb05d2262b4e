// Package sandbox measures the product's own sandbox by its public API, with
// every bound on and the static check included.
package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/sandbox"
	"github.com/codeact-dev/codeact-operator/test/bench/suite"
)

type subject struct{ engine *sandbox.Engine }

func open(dir string) (suite.Subject, error) {
	e, err := sandbox.New(context.Background(), sandbox.Options{CacheDir: dir})
	return subject{e}, err
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

// Prepare bakes the compiled module, as the build of an image does.
func (subject) Prepare(dir string) error { return sandbox.Precompile(context.Background(), dir) }

// Fresh is not part of the public API: BenchmarkExecution/fresh in sandbox/
// measures it.
func (subject) Fresh() error { return suite.ErrUnsupported }

// limits are the defaults, but for programs that run as often as a benchmark
// wants.
var limits = contract.Limits{InputBytes: 1 << 20, OutputBytes: 1 << 20, WallClockMs: 600_000}

func (s subject) Run(source, input string) (string, error) {
	r, err := s.engine.Execute(context.Background(), sandbox.Program{Source: source, Input: json.RawMessage(input), Limits: limits}, echo{})
	return string(r.Value), err
}

type echo struct{}

func (echo) Call(_ context.Context, name string, args json.RawMessage) (json.RawMessage, error) {
	if name != "echo" {
		return nil, errors.New("no tool of that name")
	}
	return args, nil
}
