#!/usr/bin/env bash
# build.sh: container images without a container engine.
#
#   build.sh operator [OUT.tar]          /manager and /runtime (default dist/operator.tar)
#   build.sh root DIR                    the same files below DIR, for the Dockerfile
#   build.sh program NAME PKG [OUT.tar]  any main package as /NAME (default dist/NAME.tar)
#
# IMAGE names the image (default localhost/codeact/operator:dev or localhost/codeact/NAME:dev).
# Binaries are static and everything belongs to root, so that the user 65532,
# with a read-only root file system, can change nothing.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
root=$PWD

export CGO_ENABLED=0 GOFLAGS=${GOFLAGS:--buildvcs=false -trimpath}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

compile() { # BINARY PKG
	[ "$(go list -f '{{.Name}}' "$2")" = main ] || { echo "$2 is not a program" >&2; exit 1; }
	go build -trimpath -ldflags "-s -w" -o "$tmp/$1" "$2"
}
mkimage() { go run -C hack/image ./mkimage "$@"; }
absolute() { case $1 in /*) echo "$1" ;; *) echo "$root/$1" ;; esac; }
out_of() { # FILE: its absolute path, with a directory to be in
	local f; f=$(absolute "$1")
	mkdir -p "$(dirname "$f")"
	echo "$f"
}

# The compiled form of the sandbox's module is baked in: a runtime pod would
# otherwise spend seconds compiling it on every start, since nothing that a pod
# writes outlives it. The binary itself then proves that it would use this copy.
operator_files() {
	compile manager ./cmd/manager
	compile runtime ./cmd/runtime
	"$tmp/runtime" precompile "$tmp/cache" >&2
	"$tmp/runtime" verify-cache "$tmp/cache" >&2
	FILES=("$tmp/manager:/manager" "$tmp/runtime:/runtime" "$tmp/cache:/var/cache/codeact")
}

case ${1:-} in
operator)
	out=$(out_of "${2:-dist/operator.tar}")
	operator_files
	mkimage -o "$out" -name "${IMAGE:-localhost/codeact/operator:dev}" -entrypoint /manager "${FILES[@]}" ;;
root)
	dir=$(absolute "${2:?usage: build.sh root DIR}")
	operator_files
	mkimage -root "$dir" "${FILES[@]}" ;;
program)
	name=${2:?usage: build.sh program NAME PKG} pkg=${3:?usage: build.sh program NAME PKG}
	out=$(out_of "${4:-dist/$name.tar}")
	compile "$name" "$pkg"
	mkimage -o "$out" -name "${IMAGE:-localhost/codeact/$name:dev}" -entrypoint "/$name" "$tmp/$name:/$name" ;;
*) sed -n '2,/^set -/{/^set -/!s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}"; exit 2 ;;
esac
