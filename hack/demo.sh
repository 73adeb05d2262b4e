#!/usr/bin/env bash
# demo.sh: one run, from nothing to its result. On a machine that can run the
# real cluster: cluster, operator from config/, a tool server as a pod, samples.
# Elsewhere: the same samples in one process, and why.
#
#   KEEP=1   leave the cluster up afterwards, to look around
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

export CGO_ENABLED=0 GOFLAGS=${GOFLAGS:--buildvcs=false -trimpath}
cluster=$PWD/hack/cluster/cluster.sh
ns=codeact-demo
heading() { printf '\n\033[1m== %s\033[0m (%s s)\n' "$*" $SECONDS; }
kubectl() { "$cluster" kubectl "$@"; }
kustomize() { go tool -modfile=hack/tools/go.mod kustomize build "$1"; }

local_run() { # REASON
	heading "the real cluster cannot run here"
	echo "$1"
	heading "running the samples in one process instead: codeact run --local"
	local f args=()
	for f in config/samples/*.yaml; do [ "${f##*/}" = kustomization.yaml ] || args+=(-f "$f"); done
	go run ./test/toolserver -addr 127.0.0.1:0 &
	go run ./cmd/codeact run --local "${args[@]}"
}

if ! reason=$("$cluster" doctor 2>&1); then local_run "$reason"; exit; fi

stop=1
if "$cluster" status >/dev/null 2>&1 || [ "${KEEP:-0}" = 1 ]; then stop=0; fi
finish() {
	local rc=$?
	[ $rc -eq 0 ] || kubectl get events -A --sort-by=.lastTimestamp 2>/dev/null | tail -20 || true
	if [ $stop = 1 ]; then "$cluster" down; else echo "the cluster is up: export KUBECONFIG=$("$cluster" path kubeconfig)"; fi
	exit $rc
}
trap finish EXIT

heading "starting a cluster"
"$cluster" up
heading "building and loading the images"
hack/image/build.sh operator
hack/image/build.sh program toolserver ./test/toolserver
"$cluster" load-image dist/operator.tar dist/toolserver.tar

heading "installing the operator from config/default"
kustomize config/default | kubectl apply --server-side -f -
kubectl -n codeact-system rollout status deployment --timeout=120s

heading "applying the samples"
kubectl create namespace $ns --dry-run=client -o yaml | kubectl apply -f -
kustomize config/samples | kubectl -n $ns apply --server-side -f -

heading "waiting for the run"
kubectl -n $ns wait agentrun --all --for=condition=Succeeded --timeout=120s
kubectl -n $ns get agentrun
kubectl -n $ns describe agentrun
