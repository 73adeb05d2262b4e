module github.com/codeact-dev/codeact-operator/test/bench/suite

go 1.26.0
