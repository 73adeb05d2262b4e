#!/usr/bin/env bash
# mcpservers.sh: print the folder with the MCP servers of test/mcpservers, which
# the tests start as processes of their own (CODEACT_MCP_SERVERS). They come from
# the lock file into the cache: nothing of them is in the checkout. Needs npm once,
# node always.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

cache=${CODEACT_CACHE:-${XDG_CACHE_HOME:-${HOME:-/var}/.cache}/codeact-operator}
src=test/mcpservers
id=$(cat $src/package.json $src/package-lock.json | sha256sum | cut -c1-16)
dir=$cache/mcpservers/$id

command -v node >/dev/null || { echo "mcpservers: node is not installed, and the tests against real MCP servers need it" >&2; exit 1; }
if [ ! -d "$dir" ]; then
	command -v npm >/dev/null || { echo "mcpservers: npm is not installed, and the MCP servers are not in $cache" >&2; exit 1; }
	mkdir -p "$cache/mcpservers"
	new=$(mktemp -d "$cache/mcpservers/.tmp-XXXXXX")
	trap 'rm -rf "$new"' EXIT
	cp $src/package.json $src/package-lock.json "$new/"
	(cd "$new" && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error) >&2
	mv -T "$new" "$dir" 2>/dev/null || true # another command was first
fi
echo "$dir"
