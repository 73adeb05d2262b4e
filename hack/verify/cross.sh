#!/usr/bin/env bash
# cross.sh: everything builds and vets for the other server architecture, and the
# author's tool for the machines authors have.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

GOARCH=arm64 go build ./...
GOARCH=arm64 go vet ./...
GOOS=darwin GOARCH=arm64 go build -o /dev/null ./cmd/codeact
GOOS=windows GOARCH=amd64 go build -o /dev/null ./cmd/codeact
for m in hack/image hack/cluster/node; do (cd $m && GOARCH=arm64 go vet ./...); done
