#!/usr/bin/env bash
# tidy.sh: every go.mod and go.sum of the repository is what `go mod tidy` makes.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

bad=0
while IFS= read -r mod; do
	if ! out=$(cd "$(dirname "$mod")" && go mod tidy -diff 2>&1); then
		grep -v '^go: downloading' <<<"$out" | head -30
		echo "$mod: run go mod tidy in $(dirname "$mod")"
		bad=1
	fi
done < <(git ls-files -co --exclude-standard -- go.mod '*/go.mod')
exit $bad
