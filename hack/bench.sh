#!/usr/bin/env bash
# bench.sh [SUBJECT..]: how fast is the sandbox, and beside what? All subjects run
# the programs of test/bench/suite, by turns, so that whatever else the machine
# does hits all of them. Results are in dist/bench/: SUBJECT.txt, benchstat.txt
# (medians and spread), table.md and table-cpu.md (the best round of each, with
# ratios, by the wall clock and in processor time).
#
# Environment:
#   COUNT      rounds (default 5)
#   KEEP       1: put both tables into sandbox/RATIONALE.md
#   BENCHTIME  how long each measure of a round takes at least (default 200ms)
#   ONLY       measures: a pattern of fresh, trivial, call, compute, goroutines, cold, growth
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
root=$PWD

export CGO_ENABLED=0 GOFLAGS=${GOFLAGS:--buildvcs=false -trimpath}
cache=${CODEACT_CACHE:-${XDG_CACHE_HOME:-${HOME:-/var}/.cache}/codeact-operator}
count=${COUNT:-5} benchtime=${BENCHTIME:-200ms} only=${ONLY:-.}
out=$root/dist/bench
subjects=("$@")
[ $# -gt 0 ] || subjects=(sandbox unbounded modernc goja qjs qjs-interruptible node)
measures=()
for m in fresh trivial call compute goroutines cold; do [[ $m =~ $only ]] && measures+=("$m"); done

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
fail() { echo "bench: $*" >&2; exit 1; }

# quickjs-emscripten, from the lock file into the cache: nothing of it is in the checkout.
node_modules() {
	local dir=test/bench/node id
	id=$(cat $dir/package.json $dir/package-lock.json | sha256sum | cut -c1-16)
	export CODEACT_BENCH_NODE=$cache/bench/node-$id
	[ ! -d "$CODEACT_BENCH_NODE" ] || return 0
	mkdir -p "$cache/bench"
	local new; new=$(mktemp -d "$cache/bench/.tmp-XXXXXX")
	cp $dir/package.json $dir/package-lock.json "$new/"
	(cd "$new" && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error) >&2 || { rm -rf "$new"; return 1; }
	mv -T "$new" "$CODEACT_BENCH_NODE" 2>/dev/null || rm -rf "$new" # another command was first
}

# build SUBJECT: its test binary, which answers like the others before it is measured.
build() {
	case $1 in
	sandbox) go test -C test/bench -c -o "$tmp/sandbox" ./sandbox; internal ;;
	goja | modernc) go test -C test/bench -c -o "$tmp/$1" "./$1" ;;
	qjs | qjs-interruptible) go test -C test/bench/qjs -c -o "$tmp/qjs" . ;;
	unbounded) internal; return ;;
	node) node_modules && node test/bench/node/bench.mjs --check; return ;;
	*) fail "no subject $1" ;;
	esac
	(cd "$tmp" && "./${1%-interruptible}" -test.failfast)
}
internal() { [ -x "$tmp/internal" ] || go test -c -o "$tmp/internal" ./sandbox; }

# bench SUBJECT BENCHTIME MEASURE..: in Go's format, without what differs by package.
bench() {
	local s=$1 t=$2 names; shift 2
	names=$(IFS='|'; echo "$*")
	local flags=(-test.run '^$' -test.timeout 20m -test.benchtime "$t" -test.bench)
	case $s in
	node) node test/bench/node/bench.mjs --benchtime "$t" --only "^($names)(/|\$)" ;;
	unbounded) (cd sandbox && "$tmp/internal" "${flags[@]}" "^BenchmarkUnbounded\$/^($names)\$") ;;
	qjs-interruptible) CODEACT_BENCH_QJS_INTERRUPTIBLE=1 "$tmp/qjs" "${flags[@]}" "^BenchmarkExecution\$/^($names)\$" ;;
	sandbox)
		(cd sandbox && "$tmp/internal" "${flags[@]}" "^BenchmarkBounded\$/^($names)\$")
		"$tmp/sandbox" "${flags[@]}" "^BenchmarkExecution\$/^($names)\$" ;;
	*) "$tmp/$s" "${flags[@]}" "^BenchmarkExecution\$/^($names)\$" ;;
	esac | sed -n 's/^Benchmark[A-Z][a-z]*\//BenchmarkExecution\//; /^BenchmarkExecution.*\/op/p; /^goos: /p; /^goarch: /p; /^cpu: /p; /^ *[a-z_]*_test.go/p; /FAIL/p'
}

build_all() {
	local s
	for s in "${subjects[@]}"; do
		if [ "$s" = node ] && ! command -v npm >/dev/null; then
			echo "bench: node and npm are not installed: quickjs-emscripten is left out"
			continue
		fi
		echo "== bench: building and checking $s"
		build "$s" || fail "$s does not answer as it should"
		chosen+=("$s")
	done
}
measure_all() {
	local i s
	for ((i = 1; i <= count; i++)); do
		[ ${#measures[@]} -gt 0 ] || break
		loads="${loads:+$loads, }$(cut -d' ' -f1 /proc/loadavg)"
		echo "== bench: round $i of $count, load ${loads##* }, after $SECONDS s"
		for s in "${chosen[@]}"; do bench "$s" "$benchtime" "${measures[@]}" >>"$out/$s.txt"; done
	done
	if [[ growth =~ $only ]]; then
		echo "== bench: growth, after $SECONDS s"
		for s in "${chosen[@]}"; do
			[ "$s" = qjs-interruptible ] || bench "$s" 1x growth >>"$out/$s.txt" # it leaks as qjs does, slower
		done
	fi
	if grep -H FAIL -B3 "$out"/*.txt; then fail "a measure failed"; fi
}
show_all() {
	local s inputs=()
	for s in "${chosen[@]}"; do inputs+=("$s=$out/$s.txt"); done
	go tool -modfile=hack/tools/go.mod benchstat -ignore goos,goarch,cpu "${inputs[@]}" >"$out/benchstat.txt"
	go build -C hack/tools -o "$tmp/benchtable" ./benchtable
	"$tmp/benchtable" "${inputs[@]}" >"$out/table.md"
	"$tmp/benchtable" -cpu "${inputs[@]}" >"$out/table-cpu.md"
	echo "== bench: processor time, of all threads of the process, for what runs on one"
	cat "$out/table-cpu.md"
	echo "== bench: wall clock, best of $count rounds, in brackets the ratio to ${chosen[0]}; medians are in dist/bench/benchstat.txt"
	cat "$out/table.md"
}

# versions: of everything that was compared, in one line.
versions() {
	local m
	printf '%s, %s cores, %s, wazero %s' "$(sed -n 's/^model name.*: *//p' /proc/cpuinfo | head -1)" "$(nproc)" "$(go env GOVERSION)" \
		"$(go list -m -f '{{.Version}}' github.com/tetratelabs/wazero)"
	for m in modernc.org/quickjs github.com/dop251/goja; do printf ', %s %s' "$m" "$(go list -C test/bench -m -f '{{.Version}}' $m)"; done
	printf ', qjs %s with wazero %s' "$(go list -C test/bench/qjs -m -f '{{.Version}}' github.com/fastschema/qjs)" \
		"$(go list -C test/bench/qjs -m -f '{{.Version}}' github.com/tetratelabs/wazero)"
	printf ', quickjs-emscripten %s in node %s' "$(sed -n 's/.*"quickjs-emscripten": "\(.*\)"/\1/p' test/bench/node/package.json)" "$(node --version || echo none)"
}

# keep: both tables between the marks in RATIONALE.md.
keep() {
	local doc=sandbox/RATIONALE.md
	{
		sed '/^<!-- make bench KEEP=1/q' $doc
		printf '\n%s. Best of %s rounds; load %s.\n' "$(versions)" "$count" "$loads"
		printf '\nProcessor time of all threads:\n\n' && cat "$out/table-cpu.md"
		printf '\nWall clock, and memory:\n\n' && cat "$out/table.md"
		echo
		sed -n '/^<!-- end of make bench/,$p' $doc
	} >"$tmp/doc"
	cp "$tmp/doc" $doc
}

# One block: bash reads it whole, so editing this file cannot hurt a running copy.
{
rm -rf "$out" && mkdir -p "$out"
chosen=() loads=
build_all
measure_all
show_all
[ "${KEEP:-}" != 1 ] || keep
echo "== bench: done in $SECONDS s"
exit
}
