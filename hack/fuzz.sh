#!/usr/bin/env bash
# fuzz.sh: every fuzz target of the module, one after the other, for FUZZTIME each.
# `make test` runs their seeds as ordinary tests.
#
#   FUZZTIME=5m    for each target; 3s tries a little beyond the seeds
#   FUZZ=REGEXP    only targets that match
#   PARALLEL=1     workers for each
#
# A case that fails is kept by Go under the package's testdata/fuzz. Put it into
# the package's tables, mend the cause, and delete the file.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# try fuzzes one target. Go before 1.27 may report the end of -fuzztime as a failure
# of the target, with nothing but "context deadline exceeded" (golang/go#75804): that
# says nothing of the target, so that it is tried again, at most twice.
try() {
	local out
	out=$(mktemp)
	for _ in 1 2 3; do
		if go test "./$1" -run '^$' -fuzz "^$2\$" -fuzztime "${FUZZTIME:-5m}" -fuzzminimizetime 5s -parallel "${PARALLEL:-1}" 2>&1 | tee "$out"; then
			rm "$out"
			return 0
		fi
		grep -q '^ *context deadline exceeded$' "$out" && ! grep -q 'Failing input written' "$out" || break
	done
	rm "$out"
	return 1
}

failed=() t0=$SECONDS
for dir in $(git grep -l '^func Fuzz' -- '*_test.go' | xargs -n1 dirname | sort -u); do
	for target in $(go test -list '^Fuzz' "./$dir" | grep -E '^Fuzz' | grep -E "${FUZZ:-.}"); do
		echo "== fuzz: $dir $target"
		try "$dir" "$target" || failed+=("$dir $target")
	done
done
echo "== fuzz: $((SECONDS - t0)) s, ${#failed[@]} targets failed"
[ ${#failed[@]} = 0 ] || { printf '%s\n' "${failed[@]}"; exit 1; }
