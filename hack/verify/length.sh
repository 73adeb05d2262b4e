#!/usr/bin/env bash
# length.sh: no source file is longer than 400 lines. Generated ones may be.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

limit=400 bad=0
while IFS= read -r f; do
	[ -f "$f" ] || continue # deleted, not yet committed
	case $f in */zz_generated.*) continue ;; esac
	n=$(wc -l <"$f")
	[ "$n" -le $limit ] || { echo "$f has $n lines, and $limit are allowed: split it by subject"; bad=1; }
done < <(git ls-files -co --exclude-standard -- '*.go' '*.sh' '*.js' Makefile .ci/run)
exit $bad
