#!/usr/bin/env bash
# cluster.sh: a real Kubernetes cluster on this machine, for end-to-end tests and the demo.
# It is built from pinned Go modules (tools/*) and runs inside namespaces of its own.
#
#   cluster.sh doctor           can this machine run it? exits 1 with one sentence saying why not
#   cluster.sh build            compile every component into the cache
#   cluster.sh assets           compile etcd, kube-apiserver and kubectl only; print their directory (KUBEBUILDER_ASSETS)
#   cluster.sh up               build if needed, start, return when the node is Ready; nothing to do when it is up
#   cluster.sh down [--purge]   stop it and drop its state (--purge: keys, logs and kubeconfig too)
#   cluster.sh status           components with memory, nodes, pods; exits 1 when it is not up
#   cluster.sh load-image TAR.. import OCI or docker-save tars into every node
#   cluster.sh kubectl ARGS..   kubectl as admin
#   cluster.sh exec CMD..       run CMD inside the cluster's network
#   cluster.sh ctr ARGS..       containerd's client on node 1
#   cluster.sh kubeconfig       print the path of the admin's kubeconfig
#   cluster.sh path WHAT        print another path: state, log, audit, bin
#   cluster.sh stop|start|restart NAME   one component (kubelet, kube-apiserver, containerd, kubelet-2, ...)
#   cluster.sh node-up N        add worker node N (2..9) with its own kubelet, containerd and network
#   cluster.sh node-down N      end it as a power cut would; the Node object stays
#
# Environment:
#   CODEACT_CACHE                binaries and state, outside the checkout (default ~/.cache/codeact-operator)
#   CODEACT_CLUSTER_STATE        state of this cluster (default: below the cache, one for each checkout)
#   CODEACT_CLUSTER_PORT         the apiserver's port on 127.0.0.1 (default 0: a free one)
#   CODEACT_CLUSTER_EVENTED_PLEG 1: the kubelet learns from containerd's events that a container ended (alpha gate)
#   CODEACT_CLUSTER_AUDIT        0: no audit log of writes
#   CODEACT_CLUSTER_REVERSE      "NSPORT=HOSTPORT ...": pods reach 127.0.0.1:HOSTPORT of this machine at 10.89.0.1:NSPORT
#   CODEACT_CLUSTER_APISERVER_ARGS, _KCM_ARGS, _KUBELET_ARGS   further flags
set -euo pipefail

[ "$(uname -s)" = Linux ] || { echo "the cluster needs Linux, and this machine runs $(uname -s)" >&2; exit 1; }

HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
CACHE=${CODEACT_CACHE:-${XDG_CACHE_HOME:-${HOME:-/var}/.cache}/codeact-operator}
STATE=${CODEACT_CLUSTER_STATE:-$CACHE/clusters/$(printf %s "$HERE" | sha256sum | cut -c1-8)}
BIN=$STATE/bin                       # a link to SET, the binaries the cluster was started with
SET=$(readlink "$BIN" || true)
PKI=$STATE/pki LOG=$STATE/log RUN=$STATE/run CONF=$STATE/conf

# These addresses exist only inside the cluster's network namespaces:
# node N is 10.89.0.N and its pods are 10.244.N.0/24.
CP_IP=10.89.0.1
CLUSTER_CIDR=10.244.0.0/16
SVC_CIDR=10.96.0.0/16
SVC_IP=10.96.0.1
CGROUP=codeact-$(printf %s "$STATE" | sha256sum | cut -c1-8)
PAUSE_IMAGE=localhost/codeact/pause:1

for part in base doctor build pki conf node components lifecycle; do
	# shellcheck source=/dev/null
	. "$HERE/lib/$part.sh"
done
node 1

# One block: bash reads it whole, so editing this file cannot hurt a running copy.
{
cmd=${1:-help}; [ $# -gt 0 ] && shift
case $cmd in
doctor) doctor ;;
build) doctor; build ;;
assets) assets ;;
up) is_up || doctor; locked up ;;
down) locked down "$@" ;;
status) status ;;
node-up) locked node_up "${1:-}" ;;
node-down) locked node_down "${1:-}" ;;
load-image) load_image "$@" ;;
kubectl) kubectl_admin "$@" ;;
exec) require_up; exec nsenter --target "$(pid_of init)" --mount --net -- sh -c 'cd "$0" && exec "$@"' "$PWD" "$@" ;; # nsenter --mount starts in /
ctr) require_up; ctr_node "$@" ;;
kubeconfig) path_of kubeconfig ;;
path) path_of "${1:-}" ;;
stop) require_up; stop_component "${1:?component}" ;;
start) require_up; start_component "${1:?component}" ;;
restart) require_up; stop_component "${1:?component}"; start_component "$1" ;;
__init) init "$1" ;;
__net) node "$1"; net_node ;;
*) sed -n '2,/^set -/{/^set -/!s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}"; exit 2 ;;
esac
exit
}
