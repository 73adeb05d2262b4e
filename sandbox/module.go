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

// rewritten returns the module that the engine compiles. It is made once in a
// process and always has the same bytes, so that a compilation cache finds it
// again, whatever the limits are.
var rewritten = sync.OnceValues(func() (*prepared, error) {
	sum := sha256.Sum256(qjsWasm)
	if got := hex.EncodeToString(sum[:]); got != qjsSHA256 {
		return nil, fmt.Errorf("embedded qjs.wasm has sha256 %s, want %s", got, qjsSHA256)
	}
	return rewrite(qjsWasm)
})
