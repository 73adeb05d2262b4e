#!/usr/bin/env bash
# chart.sh: the chart with its default values installs the objects of
# config/default, no more and no fewer, field by field. Only the namespace is
# config's alone, since Helm makes it itself. And the switches become flags.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

chart=charts/codeact-operator
[ -f $chart/Chart.yaml ] || { echo "there is no chart yet"; exit 0; }
tool() { go tool -modfile=hack/tools/go.mod "$@"; }

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
tool helm lint --quiet $chart
tool helm template codeact-operator $chart --namespace codeact-system >"$tmp/chart.yaml"
tool kustomize build config/default >"$tmp/config.yaml"
go run -C hack/tools ./manifestdiff "$tmp/config.yaml" "$tmp/chart.yaml" || { echo "$chart and config/default differ"; exit 1; }

# switches WANT VALUES..: the flags of the switches under these values, or "refused".
switches() {
	local want=$1 got values=() v; shift
	for v in "$@"; do values+=(--set "$v"); done
	got=$(tool helm template codeact-operator $chart "${values[@]}" 2>"$tmp/refused" >"$tmp/out.yaml" &&
		grep -oE -- '--(codeact|recipes?)-(enabled|allow|test).*' "$tmp/out.yaml" | paste -sd ' ' || [ ! -s "$tmp/refused" ] || echo refused)
	[ "$got" = "$want" ] || { echo "$chart with $*: flags \"$got\", want \"$want\""; cat "$tmp/refused"; return 1; }
}
switches "" codeAct.enabled=true recipes.allowNamespaceOverride=false
switches "--codeact-enabled=false" codeAct.enabled=false
switches "--recipes-enabled=false" recipes.enabled=false
switches "--codeact-allow-namespace-override" codeAct.allowNamespaceOverride=true
switches "--codeact-enabled=false --codeact-allow-namespace-override --recipes-enabled=false --recipes-allow-namespace-override" \
	codeAct.enabled=false codeAct.allowNamespaceOverride=true recipes.enabled=false recipes.allowNamespaceOverride=true
switches "--recipe-tests=Skip --recipe-test-pods=9" recipes.tests=Skip recipes.testPods=9
switches refused recipes.tests=Never
switches refused recipes.testPods=0
switches refused codeAct.enabled=maybe
switches refused codeAct.enabled=null # a switch without a value is no "false"
switches refused recipes.namespaceOverride=true
switches refused enabled=false # the switch of before
