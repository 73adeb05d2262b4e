# shellcheck shell=bash
# The components and their flags. start_NAME starts one on the current node.

start() { # NAME CMD..: CMD inside the node's namespaces, in the background
	local name=$1; shift
	pid_of "$name" >/dev/null && return 0
	# setsid: a Ctrl-C in the caller's terminal must not reach the cluster
	setsid nsenter --target "$(pid_of "init$S")" --mount --net --pid --uts --ipc -- "$@" >>"$LOG/$name.log" 2>&1 </dev/null 9>&- &
	pid_save "$name" $!
}

start_etcd() {
	local a=(--name codeact --data-dir "$STATE/etcd" --log-level warn)
	a+=(--unsafe-no-fsync) # the state does not outlive the run, so it need not outlive a power cut
	a+=(--listen-client-urls http://127.0.0.1:2379 --advertise-client-urls http://127.0.0.1:2379)
	a+=(--listen-peer-urls http://127.0.0.1:2380 --initial-advertise-peer-urls http://127.0.0.1:2380 --initial-cluster codeact=http://127.0.0.1:2380)
	start etcd "$BIN/etcd" "${a[@]}"
}
start_kube-apiserver() {
	local a=(--etcd-servers=http://127.0.0.1:2379 --bind-address=0.0.0.0 --secure-port=6443 --advertise-address=$CP_IP --service-cluster-ip-range=$SVC_CIDR)
	a+=(--client-ca-file="$PKI/ca.crt" --tls-cert-file="$PKI/apiserver.crt" --tls-private-key-file="$PKI/apiserver.key")
	a+=(--kubelet-client-certificate="$PKI/apiserver-kubelet.crt" --kubelet-client-key="$PKI/apiserver-kubelet.key")
	a+=(--kubelet-certificate-authority="$PKI/ca.crt" --kubelet-preferred-address-types=InternalIP)
	a+=(--service-account-issuer=https://kubernetes.default.svc.cluster.local --service-account-key-file="$PKI/sa.pub" --service-account-signing-key-file="$PKI/sa.key")
	a+=(--requestheader-client-ca-file="$PKI/ca.crt" --requestheader-allowed-names=front-proxy-client --requestheader-extra-headers-prefix=X-Remote-Extra-)
	a+=(--requestheader-group-headers=X-Remote-Group --requestheader-username-headers=X-Remote-User)
	a+=(--proxy-client-cert-file="$PKI/front-proxy.crt" --proxy-client-key-file="$PKI/front-proxy.key" --enable-aggregator-routing=true)
	a+=(--authorization-mode=Node,RBAC --enable-admission-plugins=NodeRestriction --allow-privileged=true --profiling=false)
	[ "${CODEACT_CLUSTER_AUDIT:-1}" = 0 ] || a+=(--audit-policy-file="$CONF/audit-policy.yaml" --audit-log-path="$LOG/audit.log" --audit-log-maxsize=200)
	# shellcheck disable=SC2206
	a+=(${CODEACT_CLUSTER_APISERVER_ARGS:-})
	start kube-apiserver "$BIN/kube-apiserver" "${a[@]}"
}
start_kube-controller-manager() {
	local k=$CONF/kube-controller-manager.kubeconfig
	local a=(--kubeconfig="$k" --authentication-kubeconfig="$k" --authorization-kubeconfig="$k")
	a+=(--root-ca-file="$PKI/ca.crt" --service-account-private-key-file="$PKI/sa.key" --cluster-signing-cert-file="$PKI/ca.crt" --cluster-signing-key-file="$PKI/ca.key")
	a+=(--use-service-account-credentials=true --allocate-node-cidrs=false --leader-elect=false --bind-address=127.0.0.1)
	a+=(--kube-api-qps=200 --kube-api-burst=400 --profiling=false)
	# shellcheck disable=SC2206
	a+=(${CODEACT_CLUSTER_KCM_ARGS:-})
	start kube-controller-manager "$BIN/kube-controller-manager" "${a[@]}"
}
start_kube-scheduler() {
	local k=$CONF/kube-scheduler.kubeconfig
	local a=(--kubeconfig="$k" --authentication-kubeconfig="$k" --authorization-kubeconfig="$k")
	a+=(--leader-elect=false --bind-address=127.0.0.1 --kube-api-qps=200 --kube-api-burst=400)
	start kube-scheduler "$BIN/kube-scheduler" "${a[@]}"
}
start_containerd() { start "containerd$S" env PATH="$SET:$PATH" "$SET/containerd" --config "$NODE_CONF/containerd.toml"; }
start_kubelet() {
	local a=(--config="$NODE_CONF/kubelet.yaml" --kubeconfig="$NODE_CONF/kubelet.kubeconfig" --root-dir="$STATE/kubelet$S")
	a+=(--hostname-override="$NODE" --node-ip="$IP" --v=2)
	# shellcheck disable=SC2206
	a+=(${CODEACT_CLUSTER_KUBELET_ARGS:-})
	start "kubelet$S" env PATH="$SET:$PATH" "$SET/kubelet" "${a[@]}"
}
start_kube-proxy() { start "kube-proxy$S" "$BIN/kube-proxy" --config="$NODE_CONF/kube-proxy.yaml"; }
start_coredns() { start coredns "$BIN/coredns" -conf "$CONF/Corefile"; }

# The one component outside the namespaces: it carries TCP between this
# machine's loopback and the cluster's.
start_forward() {
	pid_of forward >/dev/null && return 0
	local r a=(-L "127.0.0.1:${CODEACT_CLUSTER_PORT:-0}=127.0.0.1:6443" -addr-file "$RUN/forward.addr")
	for r in ${CODEACT_CLUSTER_REVERSE:-}; do a+=(-R "$CP_IP:${r%%=*}=127.0.0.1:${r#*=}"); done
	rm -f "$RUN/forward.addr"
	setsid "$BIN/nsfwd" "${a[@]}" -netns "/proc/$(pid_of init)/ns/net" >>"$LOG/forward.log" 2>&1 </dev/null 9>&- &
	pid_save forward $!
	poll 50 test -s "$RUN/forward.addr" || die "port ${CODEACT_CLUSTER_PORT:-0} cannot be forwarded: $(tail -1 "$LOG/forward.log")"
	kubeconfig admin "https://$(head -1 "$RUN/forward.addr")" "$STATE/kubeconfig"
}

# stop and start of one component; NAME may end in -N: a component of node N
start_component() {
	local c=$1
	case $c in *-[2-9]) node "${c##*-}"; c=${c%-*} ;; esac
	declare -F "start_$c" >/dev/null || die "there is no component $1"
	"start_$c"
	node 1
}
stop_component() { # the pid file names nsenter, and the component is its child
	local p c
	p=$(pid_of "$1") || return 0
	c=$p; [ "$1" = forward ] || c=$(child_of "$p") || c=$p
	kill -TERM "$c" 2>/dev/null || true
	# an apiserver with open watches would take over 30 s
	poll 50 gone "$1" || { kill -KILL "$c" 2>/dev/null || true; poll 20 gone "$1" || kill_pid "$1"; }
	rm -f "$RUN/$1.pid"
}
