#!/usr/bin/env bash
# lint.sh [ARGS]: golangci-lint over every module with sources of ours.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

lint=$(go tool -modfile=hack/tools/golangci-lint/go.mod -n golangci-lint)
bad=0
for m in . hack/image hack/cluster/node hack/cluster/tools/coredns hack/tools test/bench test/bench/suite test/bench/qjs; do
	(cd $m && "$lint" run "$@" ./...) || { echo "golangci-lint found faults in module $m"; bad=1; }
done
exit $bad
