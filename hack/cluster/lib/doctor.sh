# shellcheck shell=bash
# Whether this machine can run the cluster, tried rather than guessed, and the
# Debian packages it needs.

# command:package pairs; runc is the one component that needs a C compiler
PACKAGES="nft:nftables ip:iproute2 openssl:openssl unshare:util-linux flock:util-linux gcc:gcc pkg-config:pkg-config"

missing_packages() { # prints the packages whose command is not there
	local p
	for p in $PACKAGES; do command -v "${p%%:*}" >/dev/null || echo "${p#*:}"; done
	[ -e /usr/include/stdlib.h ] || echo libc6-dev
	[ -e /usr/include/seccomp.h ] || echo libseccomp-dev
}
packages_up() {
	local want
	want=$(missing_packages | sort -u | tr '\n' ' ')
	[ -n "$want" ] || return 0
	say "installing $want"
	# shellcheck disable=SC2086
	{
		apt-get update -qq
		DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $want
	} >"$CACHE/apt.log" 2>&1 || die "apt-get could not install $want (see $CACHE/apt.log)"
}

cannot() { echo "this machine cannot run the cluster: $*" >&2; exit 1; }

# doctor exits 1 with one sentence, or returns having changed nothing.
doctor() {
	case $(uname -m) in x86_64 | aarch64) ;; *) cannot "the processor is $(uname -m), and only amd64 and arm64 are supported" ;; esac
	[ "$(id -u)" = 0 ] || cannot "it needs root (namespaces, mounts and cgroups), and you are $(id -un)"
	command -v go >/dev/null || cannot "there is no go command to build it with"
	command -v apt-get >/dev/null || [ -z "$(missing_packages)" ] ||
		cannot "it lacks $(missing_packages | sort -u | xargs), and there is no apt-get to install that"
	[ ${#STATE} -le 66 ] || cannot "unix sockets below $STATE would have too long a path; set CODEACT_CLUSTER_STATE to a shorter one"
	mkdir -p "$CACHE" "$(dirname "$STATE")" || cannot "$CACHE cannot be written"
	doctor_disk
	doctor_cgroups
	doctor_namespaces
}
doctor_disk() { # a cold build leaves 7 GiB in Go's caches and 1 GiB in ours
	local need=1 free
	[ -d "$CACHE/sets" ] || need=9
	free=$(($(df -Pk "$CACHE" | awk 'NR==2 {print $4}') / 1048576))
	[ "$free" -ge $need ] || cannot "$CACHE has $free GiB of free disk and the build needs about $need"
}
doctor_cgroups() {
	local d err
	[ -n "$(cgroup_dirs)" ] || cannot "no cgroup file system is mounted"
	for d in $(cgroup_dirs); do
		err=$(mkdir -p "$d/$CGROUP-doctor" 2>&1) || cannot "no cgroup can be made in $d (${err##*: })"
		rmdir "$d/$CGROUP-doctor"
		cgroup_delegate "$d" || cannot "the cgroup controllers cpu, memory and pids cannot be enabled in $d"
	done
}
# Everything a node does to the kernel, once, in namespaces that end with the probe.
doctor_namespaces() {
	local out dir=$STATE.doctor
	mkdir -p "$dir"
	out=$(unshare --mount --net --pid --uts --ipc --fork --kill-child=KILL --propagation private -- bash -c '
		set -u; d=$1
		try() { local what=$1 err; shift; err=$("$@" 2>&1) || { echo "$what (${err##*: })"; exit 1; }; }
		try "proc cannot be mounted" mount -t proc proc /proc
		try "tmpfs cannot be mounted" mount -t tmpfs tmpfs /mnt
		mkdir -p "$d/lower" "$d/upper" "$d/work" /mnt/x
		modprobe -qa overlay br_netfilter 2>/dev/null
		try "overlayfs does not work below $d" mount -t overlay overlay -o "lowerdir=$d/lower,upperdir=$d/upper,workdir=$d/work" /mnt/x
		umount /mnt/x
		if command -v ip >/dev/null; then
			try "the kernel makes no bridge" ip link add node0 type bridge
			try "the kernel makes no veth pair" ip link add v0 type veth peer name v1
		fi
		[ -w /proc/sys/net/ipv4/ip_forward ] || { echo "/proc/sys/net cannot be written"; exit 1; }
		if command -v nft >/dev/null; then
			try "the kernel has no nftables" nft "table ip t { chain c { type nat hook prerouting priority 0; ip daddr 10.0.0.1 dnat to 10.0.0.2; }; }"
		fi
	' _ "$dir" 2>&1) || { rm -rf "$dir"; cannot "${out/#unshare: unshare failed/it is not allowed to make namespaces}"; }
	rm -rf "$dir"
}
