#!/usr/bin/env bash
# generated.sh: generating again, in a copy of the checkout, changes nothing.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
mkdir "$tmp/before" "$tmp/after"
git ls-files -co --exclude-standard -z | while IFS= read -r -d '' f; do
	if [ -e "$f" ]; then printf '%s\0' "$f"; fi # else deleted, not yet committed
done >"$tmp/files"
for to in before after; do xargs -0 cp --parents -a -t "$tmp/$to" <"$tmp/files"; done
"$tmp/after/hack/generate.sh"
diff -ruN "$tmp/before" "$tmp/after" || { echo "generated files are not current: run make generate"; exit 1; }
