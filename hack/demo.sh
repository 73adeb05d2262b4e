#!/usr/bin/env bash
# demo.sh: one run, from nothing to its result. On a machine that can run the
# real cluster: cluster, operator from config/, a tool server as a pod, samples.
# Elsewhere: why not, and the same samples in one process. The cluster stays up,
# to look around; `make cluster-down` stops it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

export CGO_ENABLED=0 GOFLAGS=${GOFLAGS:--buildvcs=false -trimpath}
cluster=$PWD/hack/cluster/cluster.sh
ns=codeact-demo run=reorder-bolts
heading() { printf '\n== %s (after %s s)\n' "$*" $SECONDS; }
kubectl() { "$cluster" kubectl "$@"; }
kustomize() { go tool -modfile=hack/tools/go.mod kustomize build "$1"; }
quietly() { # CMD..: its output only if it fails
	local out
	out=$("$@" 2>&1) || { echo "$out"; return 1; }
}

# The samples call http://toolserver:8080, a name that only the cluster knows.
local_run() {
	local tmp addr pid
	tmp=$(mktemp -d)
	heading "building the command line tool and the tool server"
	go build -ldflags "-s -w" -o "$tmp/" ./cmd/codeact ./test/toolserver
	"$tmp/toolserver" -addr 127.0.0.1:0 >"$tmp/out" &
	pid=$!
	# shellcheck disable=SC2064
	trap "kill $pid 2>/dev/null || true; rm -rf '$tmp'" EXIT
	for _ in $(seq 100); do grep -q http "$tmp/out" && break; sleep 0.1; done
	addr=$(sed -n 's/^listening on //p' "$tmp/out")
	[ -n "$addr" ] || { echo "the tool server did not start"; exit 1; }
	sed "s#http://toolserver:8080#$addr#" config/samples/toolgrants.yaml >"$tmp/toolgrants.yaml"
	heading "codeact run --local -f config/samples/..."
	"$tmp/codeact" run --local -f config/samples/recipe.yaml -f "$tmp/toolgrants.yaml" -f config/samples/agentrun.yaml -o text
}

field() { kubectl -n $ns get agentrun $run -o jsonpath="$1"; }
show_run() {
	local succeeded='.status.conditions[?(@.type=="Succeeded")]' usage=.status.execution.usage v seq tool effect state bytes id
	local -a paths=('{.metadata.uid}' '{.status.executionGeneration}' '{.spec.recipe.name}' '{.status.pinned.configMap}'
		'{.status.pinned.digest}' '{.status.podName}' '{.spec.input}' "{$succeeded.status}, {$succeeded.reason}: {$succeeded.message}"
		'{.status.output}' "{$usage.wallMs} ms, {$usage.heapBytes} bytes of heap, {$usage.childCalls} calls")
	mapfile -t v < <(field "$(printf '%s{"\\n"}' "${paths[@]}")")
	echo "run        $ns/$run, execution ${v[1]}"
	echo "program    recipe ${v[2]}, pinned in ConfigMap ${v[3]}"
	echo "           as ${v[4]}"
	echo "pod        ${v[5]}"
	echo "input      ${v[6]}"
	echo "succeeded  ${v[7]}"
	echo "output     ${v[8]}"
	echo "usage      ${v[9]}"
	echo "calls"
	printf '  %-4s %-16s %-10s %-11s %-8s %s\n' seq tool effect state bytes id
	field '{range .status.execution.calls[*]}{.seq}|{.tool}|{.effect}|{.state}|{.resultBytes}|{.id}{"\n"}{end}' |
		while IFS='|' read -r seq tool effect state bytes id; do
			printf '  %-4s %-16s %-10s %-11s %-8s %s\n' "$seq" "$tool" "$effect" "$state" "$bytes" "$id"
		done
	echo "what the tool server received"
	kubectl get --raw "/api/v1/namespaces/$ns/services/http:toolserver:8080/proxy/log?prefix=${v[0]}:" |
		sed 's/^\[/  /; s/\]$//; s/},{/},\n  {/g'
}

if ! reason=$("$cluster" doctor 2>&1); then
	echo "$reason"
	echo "The same manifests run in one process instead."
	local_run
	exit
fi
on_exit() {
	local rc=$?
	[ $rc -ne 0 ] || exit 0
	echo "the demo failed; the cluster's last events, and where to look:"
	kubectl get events -A --sort-by=.lastTimestamp 2>/dev/null | tail -20 || true
	echo "export KUBECONFIG=$("$cluster" kubeconfig); logs in $("$cluster" path log)"
	exit $rc
}
trap on_exit EXIT

heading "starting a cluster"
"$cluster" up
heading "building and loading the images"
hack/image/build.sh operator
hack/image/build.sh program toolserver ./test/toolserver
quietly "$cluster" load-image dist/operator.tar dist/toolserver.tar

heading "installing the operator from config/default, and a tool server"
again=$(kubectl -n codeact-system get deployment -o name 2>/dev/null || true)
kustomize config/default | quietly kubectl apply --server-side --force-conflicts -f -
[ -z "$again" ] || quietly kubectl -n codeact-system rollout restart deployment # a new image has the old name
kubectl create namespace $ns --dry-run=client -o yaml | quietly kubectl apply --server-side --force-conflicts -f -
kustomize config/samples/toolserver | quietly kubectl -n $ns apply --server-side --force-conflicts -f -
kubectl -n codeact-system rollout status deployment --timeout=180s
kubectl -n $ns rollout status deployment --timeout=180s

heading "applying the samples: a Recipe, two ToolGrants, an AgentRun"
quietly kubectl -n $ns delete agentrun $run --ignore-not-found
kustomize config/samples | kubectl -n $ns apply --server-side --force-conflicts -f -
kubectl -n $ns wait agentrun/$run --for=condition=Succeeded --timeout=120s || {
	kubectl -n $ns describe agentrun $run
	exit 1
}

heading "the run"
show_run
heading "the cluster stays up; to look around:"
cat <<EOF
export KUBECONFIG=$("$cluster" kubeconfig) PATH=$("$cluster" path bin):\$PATH
kubectl -n $ns get codeact                # all three kinds
kubectl -n $ns describe ar $run
kubectl -n $ns edit ar $run      # another input is another execution
make demo                                 # all of this again
make cluster-down                         # the end of it
EOF
