#!/usr/bin/env bash
# e2e.sh: the Ginkgo suite in test/e2e on the real cluster: start it, load the
# images, run the suite, stop it. A cluster that was up before stays up.
#
#   KEEP=1         leave the cluster up
#   FOCUS=TEXT     only specs whose description matches
#
# The suite gets KUBECONFIG, CODEACT_CLUSTER (the cluster's script),
# CODEACT_IMAGE, CODEACT_TOOLSERVER_IMAGE and CODEACT_MODELSERVER_IMAGE (all
# loaded), and HELM and KUSTOMIZE (paths of the pinned tools).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

cluster=$PWD/hack/cluster/cluster.sh
tool() { go tool -modfile=hack/tools/go.mod -n "$1"; }
export CODEACT_IMAGE=localhost/codeact/operator:dev CODEACT_TOOLSERVER_IMAGE=localhost/codeact/toolserver:dev
export CODEACT_MODELSERVER_IMAGE=localhost/codeact/modelserver:dev

"$cluster" doctor
stop=1
if "$cluster" status >/dev/null 2>&1 || [ "${KEEP:-0}" = 1 ]; then stop=0; fi
finish() {
	local rc=$?
	if [ $rc -ne 0 ]; then
		echo "== e2e failed: what the cluster says"
		"$cluster" status || true
		"$cluster" kubectl get events -A --sort-by=.lastTimestamp 2>/dev/null | tail -40 || true
		"$cluster" kubectl logs -n codeact-system -l control-plane=manager --tail=60 2>/dev/null || true
	fi
	[ $stop = 0 ] || "$cluster" down
	exit $rc
}
trap finish EXIT

"$cluster" up
hack/image/build.sh operator
hack/image/build.sh program toolserver ./test/toolserver
hack/image/build.sh program modelserver ./test/modelserver
"$cluster" load-image dist/operator.tar dist/toolserver.tar dist/modelserver.tar

KUBECONFIG=$("$cluster" kubeconfig) HELM=$(tool helm) KUSTOMIZE=$(tool kustomize)
export KUBECONFIG HELM KUSTOMIZE CODEACT_CLUSTER=$cluster
args=(-ginkgo.v)
[ -z "${FOCUS:-}" ] || args+=(-ginkgo.focus "$FOCUS")
go test -count=1 -timeout 40m -v ./test/e2e/... "${args[@]}"
