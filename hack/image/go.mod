module github.com/codeact-dev/codeact-operator/hack/image

go 1.26.0
