# Every target does its own set-up: Go, make and apt-level basics are enough.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

# One set of compiler flags for the product, its tests, the tools and the
# cluster's components: whatever they share is then compiled once.
export GOFLAGS := -buildvcs=false -trimpath
export CGO_ENABLED := 0

CLUSTER := hack/cluster/cluster.sh
TOOL := go tool -modfile=hack/tools/go.mod
# Packages of `make test`; suites that need the whole cluster have targets of their own.
PKG ?= $$(go list ./... | grep -Ev '/test/(e2e|chaos|bench)(/|$$)')
# An apiserver and an etcd for envtest: the caller's, or built from the cluster's modules.
ASSETS = "$${KUBEBUILDER_ASSETS:-$$($(CLUSTER) assets)}"
# MCP servers that nobody here wrote: the caller's folder, or one in the cache.
MCPSERVERS = "$${CODEACT_MCP_SERVERS:-$$(hack/mcpservers.sh)}"
# Test binaries that run side by side, each with an apiserver and an etcd perhaps.
P ?= 2
# In CI a remembered result is no result.
TESTFLAGS ?= $(if $(CI),-count=1)

##@ Everyday

.PHONY: demo
demo: ## Show a run from nothing: cluster, operator, samples, result
	hack/demo.sh

# With no PKG named, the sandbox is tried once more as on systems without mmap; CI
# fuzzes each target for two seconds beyond its seeds.
.PHONY: test
test: ## Unit, vector and envtest suites (PKG=./api/... TESTFLAGS='-run X')
	assets=$(ASSETS) && mcp=$(MCPSERVERS) && KUBEBUILDER_ASSETS="$$assets" CODEACT_MCP_SERVERS="$$mcp" go test -p $(P) -timeout 20m $(TESTFLAGS) $(PKG)
	for m in hack/image hack/cluster/node hack/tools; do go test -C $$m $(TESTFLAGS) ./... || exit 1; done
	$(if $(filter command,$(firstword $(origin PKG))),@true,go test -short -timeout 20m -tags sandbox_gomem $(TESTFLAGS) ./sandbox)
	$(if $(CI),FUZZTIME=2s hack/fuzz.sh)

.PHONY: race
race: ## Unit and vector suites under the race detector (PKG as for test)
	assets=$(ASSETS) && mcp=$(MCPSERVERS) && CGO_ENABLED=1 KUBEBUILDER_ASSETS="$$assets" CODEACT_MCP_SERVERS="$$mcp" go test -race -p $(P) -timeout 40m $(TESTFLAGS) $(PKG)

.PHONY: bench
bench: ## The sandbox beside other engines (COUNT, BENCHTIME, ONLY: see hack/bench.sh), and a call beside a plain POST
	hack/bench.sh
	go test -run '^$$' -bench '^BenchmarkCall$$' -benchmem ./runtime/broker

.PHONY: prompt-size
prompt-size: ## What a model is told of 10 and 100 tools in each protocol, in tokens, beside native definitions
	go test -C test/bench -count=1 -run '^TestSize$$' -v ./prompt

.PHONY: fuzz
fuzz: ## Every fuzz target for FUZZTIME=5m (FUZZ='Execute|Agreement' for some)
	hack/fuzz.sh

.PHONY: e2e
e2e: ## The Ginkgo suite on the real cluster (KEEP=1 leaves it up; FOCUS='text')
	hack/e2e.sh

.PHONY: verify
verify: ## Lint, vet, cross builds, and: is everything generated, tidy and in step?
	hack/verify/all.sh

.PHONY: lint
lint: ## golangci-lint over every module (ARGS=--fix mends what it can)
	hack/verify/lint.sh $(ARGS)

.PHONY: generate
generate: ## Deepcopy, CRDs, RBAC, and the chart's copies of them
	hack/generate.sh

.PHONY: fmt
fmt: ## Format the sources
	"$$(go tool -modfile=hack/tools/golangci-lint/go.mod -n golangci-lint)" fmt

##@ Building

.PHONY: build
build: ## Binaries of this machine's kind into bin/
	mkdir -p bin
	go build -ldflags "-s -w" -o bin/ ./cmd/...

.PHONY: image
image: ## The operator's image as dist/operator.tar, without a container engine
	hack/image/build.sh operator

##@ Cluster

.PHONY: cluster-up
cluster-up: ## Start the one-node cluster (hack/cluster/cluster.sh has more)
	$(CLUSTER) up

.PHONY: cluster-down
cluster-down: ## Stop it
	$(CLUSTER) down

.PHONY: clean
clean: ## Remove what was built here; the shared cache stays
	rm -rf bin dist

.PHONY: help
help: ## Show this
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n%s\n", substr($$0, 5)} /^[a-z0-9-]+:.*## / {printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
