#!/usr/bin/env bash
# cross.sh: everything builds and vets for the other server architecture, and the
# author's tool for the machines authors have.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

GOARCH=arm64 go build ./...
GOARCH=arm64 go vet ./...
if [ -d cmd/codeact ]; then GOOS=darwin GOARCH=arm64 go build -o /dev/null ./cmd/codeact; fi
for m in hack/image hack/cluster/node; do (cd $m && GOARCH=arm64 go vet ./...); done
