#!/usr/bin/env bash
# generate.sh: everything that is generated from the Go types and from config/, in
# the checkout that this script is part of. `make verify` runs it in a copy.
#
#   api/**/zz_generated.deepcopy.go        from the types
#   config/crd/bases/                      from the types and their markers
#   config/rbac/role.yaml                  from the reconcilers' +kubebuilder:rbac markers
#   charts/codeact-operator/generated/     copies of config's CRDs, RBAC and policy, for the chart's templates to read
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

gen() { go tool -modfile=hack/tools/go.mod controller-gen "$@"; }

gen object paths=./api/...
rm -rf config/crd/bases
gen crd paths=./api/... output:crd:dir=config/crd/bases
if [ -d controllers ]; then gen rbac:roleName=codeact-operator-manager paths=./controllers/... output:rbac:dir=config/rbac; fi

chart=charts/codeact-operator
if [ -f $chart/Chart.yaml ]; then
	rm -rf $chart/generated
	for part in crd/bases rbac policy; do
		[ -d config/$part ] || continue
		mkdir -p "$chart/generated/${part%/*}"
		find config/$part -maxdepth 1 -name '*.yaml' ! -name kustomization.yaml -exec cp -t "$chart/generated/${part%/*}" {} +
	done
fi
