package sandbox

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"sync"

	_ "unsafe" // for go:linkname

	_ "github.com/fastschema/qjs" // carries the embedded module
)

// qjsWasm is the QuickJS build that the qjs module embeds. Its Go API is not
// used: it is not made for untrusted code (see RATIONALE.md).
//
//go:linkname qjsWasm github.com/fastschema/qjs.wasmBytes
var qjsWasm []byte

// qjsSHA256 names the only build whose rewriting was examined: quickjs-ng
// 0.10.1 as in qjs v0.0.6. Another build is refused, never guessed at.
const qjsSHA256 = "88fcbeead33cca3ec8394feb0fb3eec8047ec9ac5062aba7a63799cee11989b7"

// rewrittenSHA256 names what the rewriting makes of it, so that a copy of that
// can be believed without making it again. A change here makes every baked
// compilation cache miss and asks for a new look at the measurements.
const rewrittenSHA256 = "d23c627ccc2d277b0a9d00fabce52045db6c7305066811265559cd1e7f0150db"

// rewritten returns the module that the engine compiles. It is made at most once
// in a process and always has the same bytes, so that a compilation cache finds
// it again, whatever the limits are.
var rewritten = sync.OnceValues(func() ([]byte, error) {
	if got := sha256Of(qjsWasm); got != qjsSHA256 {
		return nil, fmt.Errorf("embedded qjs.wasm has sha256 %s, want %s", got, qjsSHA256)
	}
	m, err := rewrite(qjsWasm)
	if err != nil {
		return nil, err
	}
	if got := sha256Of(m); got != rewrittenSHA256 {
		return nil, fmt.Errorf("the rewritten module has sha256 %s, want %s", got, rewrittenSHA256)
	}
	return m, nil
})

func sha256Of(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
