#!/usr/bin/env bash
# all.sh: everything that can be said about the sources without running the
# product. Steps after a failed one still run; the summary names each with its time.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

summary=() failed=0
step() { # NAME CMD..
	local name=$1 t0=$SECONDS; shift
	echo "== verify: $name"
	if "$@"; then summary+=("ok      $((SECONDS - t0)) s  $name")
	else summary+=("FAILED  $((SECONDS - t0)) s  $name"); failed=1; fi
}

step "file length" hack/verify/length.sh
step "go.mod files are tidy" hack/verify/tidy.sh
step "generated files are current" hack/verify/generated.sh
step "chart equals config" hack/verify/chart.sh
step "go vet" go vet ./...
step "benchmarks vet" hack/verify/bench.sh
step "arm64 builds" hack/verify/cross.sh
step "golangci-lint" hack/verify/lint.sh

echo "== verify: summary"
printf '%s\n' "${summary[@]}"
exit $failed
