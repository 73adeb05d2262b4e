# shellcheck shell=bash
# up, down, status, and further nodes.

kubectl_admin() {
	[ -s "$STATE/kubeconfig" ] || die "the cluster has never been up: run $HERE/cluster.sh up"
	"$BIN/kubectl" --kubeconfig "$STATE/kubeconfig" "$@"
}
node_ready() { [ "$(kubectl_admin get node "$NODE" -o 'jsonpath={.status.conditions[?(@.type=="Ready")].status}' 2>/dev/null)" = True ]; }
elapsed() { echo "$((($(date +%s%N) - T0) / 1000000)) ms"; }

options() {
	local v
	for v in PORT EVENTED_PLEG AUDIT REVERSE APISERVER_ARGS KCM_ARGS KUBELET_ARGS; do
		v=CODEACT_CLUSTER_$v
		printf '%s=%s ' "$v" "${!v:-}"
	done
}

up() {
	build # first: `already up` is told only of the binaries that are wanted now
	T0=$(date +%s%N)
	if is_up && node_ready; then
		[ "$(readlink "$BIN") $(options)" = "$SET $(cat "$RUN/options")" ] ||
			say "warning: the running cluster has other versions or options than this command; run down, then up"
		say "already up; export KUBECONFIG=$STATE/kubeconfig"
		return 0
	fi
	[ ! -d "$RUN" ] || down # also clears what a killed cluster left
	rm -rf "$LOG"
	mkdir -p "$STATE" "$LOG" "$RUN" "$CONF"
	chmod 700 "$STATE"
	ln -sfn "$SET" "$BIN"
	options >"$RUN/options"
	modprobe -qa overlay br_netfilter 2>/dev/null || true # built in, or loaded, or the doctor has said so
	pki
	cluster_conf
	namespaces_up
	start_etcd; start_containerd; start_kube-apiserver; start_forward
	import_pause # while the apiserver starts
	wait_for 180 "the apiserver" kubectl_admin get --raw /readyz
	say "apiserver ready at $(elapsed)"
	start_kube-controller-manager; start_kube-scheduler; start_kubelet; start_kube-proxy; start_coredns
	wait_for 180 "the node to be Ready" node_ready
	wait_for 60 "the default service account" kubectl_admin get serviceaccount default
	say "up at $(elapsed); export KUBECONFIG=$STATE/kubeconfig"
}
import_pause() {
	wait_for 60 containerd ctr_node version
	ctr_node images import --local "$BIN/pause.tar" >>"$LOG/import.log" 2>&1 || die "the pause image cannot be imported (see $LOG/import.log)"
}
kill_init() {
	local p
	p=$(pid_of "init$S") || return 0
	kill -KILL "$p" 2>/dev/null || true
	poll 100 gone "init$S" || true
}
down() {
	local n f
	[ -d "$STATE" ] || { say "nothing to stop"; return 0; }
	for n in 1 2 3 4 5 6 7 8 9; do node $n; kill_init; done
	node 1
	for f in "$RUN"/*.pid; do
		[ -e "$f" ] || continue
		f=${f##*/}
		kill_pid "${f%.pid}"
	done
	cgroups_down
	# every run starts from nothing but its keys; the logs stay until the next
	rm -rf "$STATE"/etcd "$STATE"/{containerd,kubelet,pods-log,varlog}{,-?} "$RUN" "$CONF"
	if [ "${1:-}" = --purge ]; then rm -rf "$STATE"; fi
	say "down"
}
status() {
	local f n p c rss
	is_up || { echo "not up: run $HERE/cluster.sh up (each checkout has a cluster of its own)"; return 1; }
	for f in "$RUN"/*.pid; do
		n=${f##*/}; n=${n%.pid}
		case $n in unshare*) continue ;; esac
		if p=$(pid_of "$n"); then
			c=$p
			case $n in init* | forward) ;; *) c=$(child_of "$p") || c=$p ;; esac
			rss=$(awk '/VmRSS/ {print int($2 / 1024)}' "/proc/$c/status" 2>/dev/null || true)
			printf '%-24s running  pid %-8s rss %s MiB\n' "$n" "$c" "$rss"
		else
			printf '%-24s dead\n' "$n"
		fi
	done
	kubectl_admin get nodes -o wide
	kubectl_admin get pods -A -o wide
}

node_up() { # N
	case $1 in [2-9]) ;; *) die "usage: node-up N (2..9)" ;; esac
	local h1 h m
	T0=$(date +%s%N)
	h1=$(pid_of init) || die "the cluster is not up"
	node "$1"
	pid_of "init$S" >/dev/null && { say "$NODE is up already"; return 0; }
	namespaces_up
	h=$(pid_of "init$S")
	nsenter --target "$h1" --net ip link add "node0-$N" type veth peer name node0 netns "$h"
	nsenter --target "$h1" --net ip link set "node0-$N" master node0 up
	nsenter --target "$h" --net "$HERE/cluster.sh" __net "$N"
	for m in 1 2 3 4 5 6 7 8 9; do # each node routes to the pods of each other
		[ "$m" != "$N" ] || continue
		nsenter --target "$h" --net ip route replace "10.244.$m.0/24" via "10.89.0.$m"
		if [ "$m" = 1 ]; then nsenter --target "$h1" --net ip route replace "$POD_CIDR" via "$IP"
		elif pid_of "init-$m" >/dev/null; then nsenter --target "$(pid_of "init-$m")" --net ip route replace "$POD_CIDR" via "$IP"; fi
	done
	start_containerd; import_pause; start_kubelet; start_kube-proxy
	wait_for 180 "$NODE to be Ready" node_ready
	say "$NODE is Ready at $(elapsed)"
}
node_down() { # N
	case $1 in [2-9]) ;; *) die "usage: node-down N (2..9)" ;; esac
	local n
	node "$1"
	kill_init
	for n in kubelet kube-proxy containerd unshare init; do kill_pid "$n$S"; done
	cgroups_down "$NODE_CGROUP"
	rm -rf "$STATE/containerd$S" "$STATE/kubelet$S" "$STATE/pods-log$S" "$STATE/varlog$S" "$RUN/init$S.host"
	say "$NODE is down"
}
