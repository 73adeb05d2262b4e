// Package sandbox runs one JavaScript program in one fresh, bounded QuickJS
// and answers with JSON or a contract.Fault. It is the only importer of qjs and
// wazero. RATIONALE.md beside this file says why every piece is there.
//
// The pieces, in the order in which a program meets them: execute.go admits
// the program and orders the phases, check/ refuses forbidden syntax,
// instance.go gives a fresh copy of the snapshot, prelude/ is the only code
// that touches guest values, host.go is what a program can reach of the host,
// fault.go turns every way to end into one clean fault. module.go, rewrite.go
// and wasm.go prepare the WebAssembly module, cache.go keeps its compiled form.
package sandbox
