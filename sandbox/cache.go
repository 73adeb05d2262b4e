package sandbox

import (
	"context"

	"github.com/tetratelabs/wazero"
)

func (e *Engine) compile(ctx context.Context, wasm []byte, dir string) error {
	rc := wazero.NewRuntimeConfigCompiler()
	if dir != "" {
		if c, err := wazero.NewCompilationCacheWithDir(dir); err == nil {
			e.cache = c
			rc = rc.WithCompilationCache(c)
		}
	}
	e.runtime = wazero.NewRuntimeWithConfig(ctx, rc)
	if err := addHost(ctx, e.runtime); err != nil {
		return err
	}
	var err error
	e.module, err = e.runtime.CompileModule(ctx, wasm)
	return err
}
