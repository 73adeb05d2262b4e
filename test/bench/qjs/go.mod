module github.com/codeact-dev/codeact-operator/test/bench/qjs

go 1.26.0

require (
	github.com/codeact-dev/codeact-operator/test/bench/suite v0.0.0
	github.com/fastschema/qjs v0.0.6
)

require (
	github.com/tetratelabs/wazero v1.11.0 // indirect
	golang.org/x/sys v0.38.0 // indirect
)

replace github.com/codeact-dev/codeact-operator/test/bench/suite => ../suite
