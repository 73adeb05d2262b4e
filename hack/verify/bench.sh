#!/usr/bin/env bash
# bench.sh: the benchmarks' modules vet and compile; nothing is measured.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

for m in test/bench test/bench/suite test/bench/qjs; do (cd $m && go vet ./...); done
