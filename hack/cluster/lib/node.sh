# shellcheck shell=bash
# A node is one set of namespaces (mount, network, PID, UTS, IPC) whose PID 1 is
# this script's `__init`. Killing that one process ends every component and pod
# on the node; the kernel drops the mounts and the network with the last of them.

# ------------------------------------------------------------------ cgroups --
cgroup_dirs() { awk '$3 == "cgroup" || $3 == "cgroup2" {print $2}' /proc/mounts | sort -u; }

# cgroup_delegate DIR: lets children of DIR use the controllers. Only version 2
# has that switch; for version 1 there is nothing to do.
cgroup_delegate() {
	[ -f "$1/cgroup.controllers" ] || return 0
	local c
	for c in $(cat "$1/cgroup.controllers"); do echo "+$c" >"$1/cgroup.subtree_control" || true; done 2>/dev/null
	for c in cpu memory pids; do
		# a hybrid host mounts version 2 without controllers beside version 1
		[ ! -s "$1/cgroup.controllers" ] || grep -qw $c "$1/cgroup.subtree_control" || return 1
	done
}
cgroups_up() {
	local d g
	for d in $(cgroup_dirs); do
		mkdir -p "$d/$NODE_CGROUP"
		if [ -f "$d/cgroup.controllers" ]; then
			for g in "" "/$CGROUP" "/$NODE_CGROUP"; do cgroup_delegate "$d$g" || true; done
		elif [ -f "$d/$NODE_CGROUP/cpuset.cpus" ]; then # a version 1 cpuset starts empty, and then nothing may enter
			for g in "$CGROUP" "$NODE_CGROUP"; do
				cat "$d/cpuset.cpus" >"$d/$g/cpuset.cpus"
				cat "$d/cpuset.mems" >"$d/$g/cpuset.mems"
			done
		fi
	done
}
cgroups_down() { # [CGROUP]: only empty cgroups can be removed, so this harms no process
	local top=${1:-$CGROUP}
	poll 50 cgroups_removed "$top" || say "warning: some cgroups named $top are left"
}
cgroups_removed() {
	local d left=0
	for d in $(cgroup_dirs); do
		[ -d "$d/$1" ] || continue
		find "$d/$1" -depth -type d -exec rmdir {} + 2>/dev/null || left=1
	done
	[ $left = 0 ]
}

# --------------------------------------------------------------- namespaces --
namespaces_up() { # of the current node
	node_conf
	cgroups_up
	rm -f "$RUN/init$S.host"
	setsid unshare --mount --net --pid --uts --ipc --fork --kill-child=KILL --propagation private \
		"$HERE/cluster.sh" __init "$N" >"$LOG/init$S.log" 2>&1 </dev/null 9>&- &
	pid_save "unshare$S" $!
	wait_for 10 "the namespaces" test -s "$RUN/init$S.host"
	pid_save "init$S" "$(cat "$RUN/init$S.host")"
}

# init N: PID 1 of node N's namespaces.
init() {
	node "$1"
	local pid d
	read -r pid _ </proc/self/stat # still the host's /proc, so the host's pid
	mount --make-rshared /
	mount -t proc proc /proc
	mount -t tmpfs -o mode=755 tmpfs /run
	mkdir -p /run/lock /run/containerd
	mount --bind "$STATE/varlog$S" /var/log
	for d in /var/lib/cni /var/lib/kubelet; do # two paths that no option moves
		mkdir -p $d
		mount -t tmpfs tmpfs $d
	done
	# A /proc with nothing mounted over it, or the kernel refuses pods with
	# user namespaces of their own.
	mkdir -p /run/proc
	mount -t proc proc /run/proc
	shadow_sysctls
	hostname "$NODE"
	ip link set lo up
	# node 1's node0 is the switch between the nodes; that of another node is a
	# veth which node_up plugs into it
	[ "$N" != 1 ] || { ip link add node0 type bridge; net_node; }
	echo 1 >/proc/sys/net/ipv4/ip_forward
	if [ -e /proc/sys/net/bridge ]; then echo 1 >/proc/sys/net/bridge/bridge-nf-call-iptables; fi
	echo "$pid" >"$RUN/init$S.host"
	trap : CHLD TERM INT
	while :; do sleep 3600 & wait $! || true; done # bash reaps the orphans
}
# The kubelet insists on some sysctls and would write them for the whole machine;
# it sees files that already hold its values instead.
shadow_sysctls() {
	local kv k
	mkdir -p /run/sysctl
	for kv in vm/overcommit_memory=1 vm/panic_on_oom=0 kernel/panic=10 kernel/panic_on_oops=1 kernel/keys/root_maxkeys=1000000 kernel/keys/root_maxbytes=25000000; do
		k=${kv%=*}
		[ -f "/proc/sys/$k" ] || continue
		echo "${kv#*=}" >"/run/sysctl/${k//\//.}"
		mount --bind "/run/sysctl/${k//\//.}" "/proc/sys/$k"
	done
}
net_node() {
	ip addr add "$IP/24" dev node0
	ip link set node0 up
	ip route add $SVC_CIDR dev node0 # so that the node itself can dial ClusterIPs: their DNAT comes after routing
}

# inside CMD..: in the current node's namespaces
inside() { nsenter --target "$(pid_of "init$S")" --mount --net --pid --uts --ipc -- "$@"; }
ctr_node() { inside "$BIN/ctr" --address /run/containerd/containerd.sock -n k8s.io "$@"; }

load_image() { # TAR..: into every node
	local n t
	[ $# -gt 0 ] || die "usage: load-image TAR.."
	require_up
	for n in 1 2 3 4 5 6 7 8 9; do
		node $n
		pid_of "init$S" >/dev/null || continue
		for t; do ctr_node images import --local "$(realpath "$t")" >&2; done
	done
	node 1
}
