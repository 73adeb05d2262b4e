#!/usr/bin/env bash
# chart.sh: the chart with its default values installs the objects of
# config/default, no more and no fewer, field by field. Only the namespace is
# config's alone, since Helm makes it itself.
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
