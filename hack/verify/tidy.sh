#!/usr/bin/env bash
# tidy.sh: every go.mod and go.sum of the repository is what `go mod tidy` makes.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

# A tidy module prints nothing but what it downloads; an error is printed too.
bad=0
while IFS= read -r mod; do
	(cd "$(dirname "$mod")" && go mod tidy -diff 2>&1) | grep -v '^go: downloading' && { echo "$mod: run go mod tidy in $(dirname "$mod")"; bad=1; }
done < <(git ls-files -co --exclude-standard -- go.mod '*/go.mod')
exit $bad
