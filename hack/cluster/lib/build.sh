# shellcheck shell=bash
# Components, compiled from the modules in tools/ into the cache:
#
#   $CACHE/bin/UNIT-STAMP/   what one module builds; the stamp covers all it depends on
#   $CACHE/sets/ID/          links to the binaries of one cluster or of one envtest
#
# Nothing here depends on the checkout, so another checkout with the same pins
# builds nothing.

UNITS=(kube etcd containerd runc cni coredns node image)

# unit_of UNIT: sets DIR CGO TAGS LDFLAGS PKGS (PKG=BINARY pairs) and OUT, where
# the binaries belong. One set of compiler flags for all, and the project's own:
# other flags would compile every shared package again.
unit_of() {
	local v=k8s.io/component-base/version
	DIR=$HERE/tools/$1 CGO=0 TAGS='' LDFLAGS='' PKGS=()
	case $1 in
	kube)
		local k8s; k8s=$(module_version k8s.io/kubernetes)
		LDFLAGS="-X $v.gitVersion=$k8s -X $v.gitMajor=1 -X $v.gitMinor=$(cut -d. -f2 <<<"$k8s") -X $v.gitTreeState=clean -X $v.gitCommit=unknown -X $v.buildDate=2026-01-01T00:00:00Z"
		local b; for b in kube-apiserver kubectl kube-controller-manager kube-scheduler kubelet kube-proxy; do PKGS+=("k8s.io/kubernetes/cmd/$b=$b"); done ;;
	etcd) PKGS=(go.etcd.io/etcd/server/v3=etcd) ;;
	containerd)
		local c=github.com/containerd/containerd/v2 b
		TAGS="no_btrfs no_devmapper no_zfs" LDFLAGS="-X $c/version.Version=$(module_version $c)"
		for b in containerd containerd-shim-runc-v2 ctr; do PKGS+=("$c/cmd/$b=$b"); done ;;
	runc) CGO=1 TAGS=seccomp PKGS=(github.com/opencontainers/runc=runc) ;;
	cni)
		local c=github.com/containernetworking/plugins b
		LDFLAGS="-X $c/pkg/utils/buildversion.BuildVersion=$(module_version $c)"
		for b in ipam/host-local main/bridge main/loopback meta/portmap; do PKGS+=("$c/plugins/$b=${b#*/}"); done ;;
	coredns) PKGS=(.=coredns) ;;
	node) DIR=$HERE/node PKGS=(./pause=pause ./nsfwd=nsfwd) ;;
	image) DIR=${HERE%/*}/image PKGS=(./mkimage=mkimage) ;;
	esac
	OUT=$CACHE/bin/$1-$(stamp)
}
module_version() { awk -v m="$1" '$1 == m && $2 ~ /^v/ {print $2; exit} $1 == "require" && $2 == m {print $3; exit}' "$DIR/go.mod"; }

stamp() { # of the unit read last: a digest of all that its binaries depend on
	local f files=("$DIR/go.mod")
	while IFS= read -r f; do files+=("$f"); done < <(find "$DIR" -name go.sum -o -name '*.go' ! -name '*_test.go' | sort)
	{ cat "${files[@]}"; echo "$GOVERSION $CGO $TAGS $LDFLAGS"; } | sha256sum | cut -c1-16
}

# build_unit UNIT [BINARY..]: compiles what is not there yet (default: all of it).
build_unit() {
	local unit=$1 tmp p want=() t0=$SECONDS; shift
	unit_of "$unit"
	for p in "${PKGS[@]}"; do
		[ $# -eq 0 ] || [[ " $* " == *" ${p##*=} "* ]] || continue
		[ -x "$OUT/${p##*=}" ] || want+=("$p")
	done
	[ ${#want[@]} -gt 0 ] || return 0
	mkdir -p "$CACHE/lock" "$CACHE/log" "$OUT"
	(
		exec 8>"$CACHE/lock/$unit"
		flock -n 8 || { say "$STEP $unit: waiting for the build of another command"; flock 8; }
		tmp=$(mktemp -d "$CACHE/bin/.tmp-XXXXXX")
		trap 'rm -rf "$tmp"' EXIT
		compile "$unit" "$tmp" "${want[@]}" 8>&-
		for p in "${want[@]}"; do mv -f "$tmp/${p##*=}" "$OUT/${p##*=}"; done
	)
	say "$STEP $unit: built ${#want[@]} in $((SECONDS - t0)) s"
}
compile() { # UNIT OUTDIR PKG=BINARY..: in the background, so that progress can be told
	local unit=$1 out=$2 p pid last=$SECONDS t0=$SECONDS log n=0 before what; shift 2
	log=$CACHE/log/$unit.log
	say "$STEP $unit: compiling $# of its binaries"
	(
		cd "$DIR"
		export CGO_ENABLED=$CGO GOFLAGS=-buildvcs=false GOWORK=off
		# -v names each package as it is compiled. All of them first: they
		# compile side by side, and the single links after that are cached.
		go build -v -trimpath -tags "$TAGS" -ldflags "-s -w $LDFLAGS" -o "$out/" "${@%=*}"
		for p; do # a package's own name is not always the binary's
			[ -e "$out/${p##*=}" ] || go build -trimpath -tags "$TAGS" -ldflags "-s -w $LDFLAGS" -o "$out/${p##*=}" "${p%=*}"
		done
	) >"$log" 2>&1 &
	pid=$!
	while kill -0 $pid 2>/dev/null; do
		sleep 0.2
		[ $((SECONDS - last)) -lt 12 ] && continue
		last=$SECONDS before=$n n=$(grep -vc ^go: "$log" || true)
		[ "$n" = "$before" ] && what=linking || what="$n packages compiled"
		say "$STEP $unit: $((last - t0)) s, $what"
	done
	wait $pid || { tail -20 "$log" >&2; die "$unit does not build (all of it in $log)"; }
}

go_version() { GOVERSION=$(cd "$HERE/tools/kube" && go env GOVERSION GOARCH | tr '\n' ' '); }

# link_set FILE..: a directory of links to these binaries; prints its path
link_set() {
	local d t
	d=$CACHE/sets/$(printf '%s\n' "$@" | sha256sum | cut -c1-16)
	if [ ! -d "$d" ]; then
		mkdir -p "$CACHE/sets"; t=$(mktemp -d "$CACHE/sets/.tmp-XXXXXX")
		chmod 755 "$t"
		ln -s "$@" "$t/"
		mv -T "$t" "$d" 2>/dev/null || rm -rf "$t" # another command was first
	fi
	echo "$d"
}

# build compiles everything and leaves the path of the set in SET.
build() {
	local i u p all=()
	packages_up
	go_version
	for i in "${!UNITS[@]}"; do
		u=${UNITS[i]}; STEP="[$((i + 1))/${#UNITS[@]}]"
		build_unit "$u"
		for p in "${PKGS[@]}"; do all+=("$OUT/${p##*=}"); done
	done
	SET=$(link_set "${all[@]}")
	[ -s "$SET/pause.tar" ] || {
		"$SET/mkimage" -o "$SET/pause.tar.$$" -name "$PAUSE_IMAGE" -entrypoint /pause "$SET/pause:/pause" >/dev/null
		mv -f "$SET/pause.tar.$$" "$SET/pause.tar"
	}
}

# assets needs neither root nor Linux packages: only Go.
assets() {
	local etcd
	go_version
	STEP="[1/2]"; build_unit etcd; etcd=$OUT/etcd
	STEP="[2/2]"; build_unit kube kube-apiserver kubectl
	link_set "$etcd" "$OUT/kube-apiserver" "$OUT/kubectl"
}
