# What can be done here: make help

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-builtin-rules

GO ?= go
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
BINARY := bin/stowage
MANAGER := bin/stowage-manager
PLUGIN := bin/kubectl-stowage
IMAGE ?= stowage:dev

KILLS ?= 10
CHAOSFLAGS ?=
POWERFLAGS ?=
STORMFLAGS ?=
ADVERSARYFLAGS ?=
MOTOFLAGS ?=
FUZZTIME ?= 10s
FLOOR ?= 85
SINCE ?= HEAD~1
PKG ?=
RUN ?= .
N ?= 30
SEED ?=
REPORT ?=
QUARANTINE ?=
TIMEOUT ?=
NODES ?= 1
TESTFLAGS ?=
BENCHFLAGS ?=
E2EFLAGS ?=
CONFORMANCEFLAGS ?=
FAILOVERFLAGS ?=
VMFLAGS ?=

# Tools are built once for each list of their versions, outside the tree.
CACHE := $(or $(XDG_CACHE_HOME),$(or $(HOME),/tmp)/.cache)/stowage
TOOLS = $(CACHE)/tools/$(shell { $(GO) env GOVERSION GOARCH; cat tools/go.sum; } | sha256sum | cut -c1-16)
LINTER = $(TOOLS)/golangci-lint
# Compilers and linters live for a while only. When they collect less garbage, the linter needs a third less time, and
# the compiler a tenth.
LAZY = GOGC=400 GOMEMLIMIT=8GiB
CONTROLLER_GEN = $(TOOLS)/controller-gen

# The tests and the linter compile as the product does, so that what they import is compiled once, Helm and kustomize
# for the tests of deploy/ too. The race detector needs cgo, and what builds other programs than ours has flags of its
# own.
OURS = build manager kubectl-plugin demo test deploy-test crash chaos adversary storms powerloss bench lint verify std
$(OURS): export CGO_ENABLED = 0
$(OURS): export GOFLAGS = -trimpath -tags=grpcnotrace
# The generated clients of EC2 and Kubernetes are a half of what the race detector's tests compile. No test waits for
# their code: not optimised, it compiles in half the time.
AS_IT_STANDS = github.com/aws/aws-sdk-go-v2/service/ec2 k8s.io/api/... k8s.io/client-go/...
race race-core flaky std-race: export GOFLAGS = -trimpath -tags=grpcnotrace '-toolexec=env $(LAZY)' \
  $(AS_IT_STANDS:%='-gcflags=%=-N -l')
BUILD = $(GO) build -buildvcs=false -ldflags '-s -w -X main.version=$(VERSION)'
# Every run of tests goes through testsum, which fails on a skip that hack/skips does not allow.
SUM = $(GO) run ./hack/testsum -skips hack/skips $(if $(REPORT),-report '$(REPORT)') $(if $(QUARANTINE),-quarantine '$(QUARANTINE)')
# The time limit of the tests of one package. go test prints the goroutines of tests that hang, and the end of a step of
# hack/ci does not: a package that begins late must have this time before the end of its step, and of the gate. Targets
# that take as long as they are told to have hours, and as steps of hack/ci a TIMEOUT below the limit of the step.
PATIENCE = 15m
race: PATIENCE = 50m
race-core: PATIENCE = 12m
# The linter vets, and in vetting go test would read all imports once more.
GOTEST = $(SUM) $(GO) test -json -vet=off -timeout $(PATIENCE) $(TESTFLAGS)
LONGTEST = $(SUM) -v $(GO) test -json -vet=off -count=1
SEEDED = $(if $(SEED),-seed $(SEED))
# For many packages, of which some have the flag.
EACHSEEDED = $(if $(SEED),-exec '$(CURDIR)/hack/seeded $(SEED)')
# One run of the tests tells both whether they pass and what they cover.
COVER := -covermode=atomic -coverpkg=./pkg/... -coverprofile=bin/cover.out
# What kills, faults, cuts the power, and brings up clusters, virtual machines and clouds has targets of its own, and takes as long as it is told to.
# The packages that take longest come first: most of their time they wait, for disks and for clocks.
PACKAGES = ./pkg/node ./pkg/backends/nfs ./pkg/backends/local ./tests/ebs ./tests/controllers ./pkg/node/filesystem $$($(GO) list ./... | grep -vE '/tests/(adversary|crash|chaos|powerloss|cloud/moto|e2e|e2e/cluster/smoke|e2e/failover|vm/smoke|vm/suites/.*)$$')

# The searches that can be shown to find planted defects.
PLANTS = ./pkg/controllers/volumeset ./tests/adversary

# What runs in parallel with itself, and neither mounts nor waits for disks: the gate's share of the race detector's work.
# Here too the packages that take longest come first, so that none is alone at the end.
RACED = ./pkg/backends/ebs ./pkg/controllers/failover ./tests/controllers ./pkg/background ./pkg/backends/memory \
  ./pkg/cloud/... ./pkg/controllers/... ./pkg/deadline ./pkg/driver/... ./pkg/keylock ./pkg/volume ./tests/cloud/ec2 \
  ./tests/cloud/faults

##@ Use

.PHONY: help
help: ## Show this help.
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n%s\n", substr($$0, 5)} \
	  /^[a-z0-9-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

.PHONY: build
build: ## Build bin/stowage, a static binary.
	$(BUILD) -o $(BINARY) ./cmd/driver

.PHONY: manager
manager: ## Build bin/stowage-manager, the Kubernetes controllers beside a driver.
	$(BUILD) -o $(MANAGER) ./cmd/manager

.PHONY: kubectl-plugin
kubectl-plugin: ## Build bin/kubectl-stowage, a plugin of kubectl that says why a pod is stuck.
	$(BUILD) -o $(PLUGIN) ./cmd/kubectl-stowage

.PHONY: demo
demo: deps build ## Serve local volumes end to end on this machine and prove that nothing is left (root).
	$(GO) run ./tests/demo -binary $(BINARY)

.PHONY: image
image: ## Build the container image with buildah; make image IMAGE=name:tag.
	@hack/deps image
	hack/image $(IMAGE) $(VERSION)

.PHONY: cluster-up
cluster-up: ## Bring up a real Kubernetes on this machine (root; the first time builds it); make cluster-up NODES=2.
	@hack/deps image cluster
	$(GO) run ./tests/e2e/cluster up -nodes $(NODES)

.PHONY: cluster-down
cluster-down: ## Take that Kubernetes down, also what is left of one that died.
	$(GO) run ./tests/e2e/cluster down

.PHONY: cluster-demo
cluster-demo: ## From nothing to a pod's data in a claim, on a Kubernetes of its own (root).
	@hack/deps image cluster
	$(GO) run ./tests/e2e/demo

##@ Test

.PHONY: test
test: deps ## Run the unit, conformance and sanity tests (root; installs the filesystem tools).
	@mkdir -p bin && rm -f bin/cover.out
	$(GOTEST) -p 6 $(COVER) $(PACKAGES)

.PHONY: sanity
sanity: deps ## Run csi-sanity over every backend with real mounts.
	$(LONGTEST) -timeout 20m ./tests/sanity/...

.PHONY: race
race: deps ## Run the tests under the race detector.
	@hack/deps race
	$(GOTEST) -race $(EACHSEEDED) $(PACKAGES)

.PHONY: race-core
race-core: deps ## Run the tests of what computes in parallel under the race detector, searches with fewer seeds.
	@hack/deps race
	$(GOTEST) -race -short $(RACED)

.PHONY: flaky
flaky: deps ## Run tests again and again beside a load: what changed since SINCE, or make flaky PKG=./pkg/node RUN=TestX N=30.
	@hack/deps race
	$(GO) run ./hack/flaky -since $(SINCE) $(if $(PKG),-pkg '$(PKG)' -run '$(RUN)') -n $(N)

.PHONY: crash
crash: deps build ## Kill the driver under load and check that nothing is lost; make crash KILLS=100.
	$(LONGTEST) -timeout $(or $(TIMEOUT),120m) ./tests/crash -kills $(KILLS) -binary '$(CURDIR)/$(BINARY)' $(SEEDED)

.PHONY: fuzz
fuzz: ## Run every fuzz target for a while; make fuzz FUZZTIME=10m or FUZZTIME=20000x.
	GO=$(GO) hack/fuzz $(FUZZTIME)

.PHONY: cover
cover: test floor ## Run the tests, and print the coverage of each package; fail below FLOOR percent.

.PHONY: floor
floor: ## Print the coverage that the last make test had; fail below FLOOR percent.
	$(GO) run ./hack/coverfloor -floor $(FLOOR) -exclude pkg/backends/backendtest bin/cover.out \
	  pkg/driver pkg/volume pkg/params pkg/backends/...

.PHONY: chaos
chaos: deps ## Fail or kill the node pipeline at every system call; make chaos CHAOSFLAGS=-full.
	$(LONGTEST) -timeout $(or $(TIMEOUT),120m) -parallel 2 ./tests/chaos $(CHAOSFLAGS) $(SEEDED)

.PHONY: storms
storms: ## Use volumes of a cloud, and run the conformance suite, while requests meet faults; make storms STORMFLAGS='-schedules 313 -suites 4'.
	$(LONGTEST) -timeout $(or $(TIMEOUT),120m) ./tests/ebs -schedules 20 -suites 1 $(STORMFLAGS) $(SEEDED)

.PHONY: adversary
adversary: deps ## Attack every backend with schedules of calls and faults (root); make adversary ADVERSARYFLAGS='-schedules 2000'.
	$(LONGTEST) -timeout $(or $(TIMEOUT),300m) ./tests/adversary $(ADVERSARYFLAGS) $(SEEDED)

.PHONY: plants
plants: deps ## Plant defects into copies of the code, and see whether the searches find them (root); make plants PLANTS=./tests/adversary for one of them.
	$(LONGTEST) -timeout $(or $(TIMEOUT),120m) -run TestPlants $(PLANTS) -plants $(SEEDED)

.PHONY: moto
moto: build ## Ask moto, an EC2 of others, whether the ebs backend is right, and measure it there (root; the first time makes moto's root); make moto MOTOFLAGS='-volumes 1000'.
	@hack/deps image
	$(LONGTEST) -timeout $(or $(TIMEOUT),30m) ./tests/cloud/moto
	$(GO) run ./tests/cloud/moto/bench -binary $(BINARY) $(MOTOFLAGS)

.PHONY: powerloss
powerloss: deps ## Cut the power between the writes of the local backend; make powerloss POWERFLAGS=-full.
	$(LONGTEST) -timeout $(or $(TIMEOUT),120m) ./tests/powerloss $(POWERFLAGS) $(SEEDED)

.PHONY: vm-test
vm-test: ## Run what needs another kernel, or more rights, in a virtual machine (root); make vm-test VMFLAGS='-run TestBlock ./tests/vm/suites/nfs'.
	@hack/deps vm
	$(if $(VMFLAGS),,$(LONGTEST) -timeout 20m ./tests/vm/smoke)
	$(GO) run ./tests/vm/run $(SEEDED) $(VMFLAGS) | $(SUM) -v -again '$(GO) run ./tests/vm/run $(SEEDED)'

.PHONY: deploy-test
deploy-test: ## Render the manifests and the chart, and check them, their rights and the alert rules.
# What they read is outside their module, so that Go's cache does not see it change.
	$(SUM) -dir deploy/tests $(GO) test -json -count=1 -timeout $(or $(TIMEOUT),20m) $(TESTFLAGS) ./...

.PHONY: bench
bench: OWNERSHIPFLAGS ?= -files 30000
bench: deps build ## Measure volume lifecycles beside the floor of this machine, and ownership; OWNERSHIPFLAGS= for a million files.
	$(GO) run ./tests/bench -binary $(BINARY) $(BENCHFLAGS)
	$(GO) run ./tests/bench/ownership $(OWNERSHIPFLAGS)

.PHONY: cluster-test
cluster-test: ## Bring clusters up, kill them, take them down and check that nothing is left (root).
	@hack/deps image cluster
	$(LONGTEST) -timeout 120m ./tests/e2e/cluster/smoke

.PHONY: failover-test
failover-test: ## Cut a node's power in a real Kubernetes of two nodes and time its pod's move (root); make failover-test FAILOVERFLAGS='-without 10m', -partition, '-partitions 100' or -drift.
	@hack/deps image cluster
	$(LONGTEST) -timeout $(or $(TIMEOUT),60m) ./tests/e2e/failover $(FAILOVERFLAGS)

.PHONY: e2e-conformance
e2e-conformance: ## Run Kubernetes' own suite for storage drivers in a cluster of its own (root); make e2e-conformance CONFORMANCEFLAGS='-suite full -runs 3'.
	@hack/deps image cluster
	$(GO) run ./tests/e2e/conformance $(CONFORMANCEFLAGS)

.PHONY: e2e
e2e: ## Use Stowage in a real Kubernetes, and break it (root); make e2e E2EFLAGS='-keep -pods 100 -timings'.
	@hack/deps image cluster
	nice -n 5 $(LONGTEST) -timeout $(or $(TIMEOUT),60m) -parallel 8 ./tests/e2e $(E2EFLAGS) $(SEEDED)

##@ Check

.PHONY: lint
lint: $(LINTER) ## Check the rules of the house.
	$(LAZY) $(LINTER) run ./...
	$(GO) run ./hack/houserules pkg cmd
	$(GO) run ./hack/houserules -tests pkg cmd tests hack deploy/tests

.PHONY: generate
generate: $(CONTROLLER_GEN) ## Write the files that are generated from the code.
	$(CONTROLLER_GEN) object crd paths=./pkg/apis/... output:crd:dir=deploy/kubernetes/crds
	cp deploy/kubernetes/crds/stowage.dev_*.yaml deploy/charts/stowage/crds/
	$(GO) run ./hack/paramdoc > docs/parameters.md.new
	mv docs/parameters.md.new docs/parameters.md
	$(GO) run ./hack/valuedoc deploy/charts/stowage > docs/values.md.new
	mv docs/values.md.new docs/values.md

.PHONY: verify
verify: lint $(CONTROLLER_GEN) ## Check all that needs no test: lint, formatting, generated files, go.mod.
	$(LINTER) config verify
	$(LINTER) fmt --diff ./...
	$(GO) run ./hack/paramdoc | diff -u docs/parameters.md -
	$(GO) run ./hack/valuedoc deploy/charts/stowage | diff -u docs/values.md -
	hack/generated $(CONTROLLER_GEN)
	$(GO) mod tidy -diff
	cd tools && $(GO) mod tidy -diff
	cd deploy/tests && $(GO) mod tidy -diff && $(LAZY) $(LINTER) run --config ../../.golangci.yml ./...
	$(GO) mod verify
	hack/slim

.PHONY: vulns
vulns: ## Check that nothing with a known vulnerability is called; needs Go's database of them (vuln.go.dev).
	hack/vulns

##@ Housekeeping

.PHONY: deps
deps: ## Install the Debian packages that the tests need, where they are missing.
	@hack/deps run

.PHONY: tools
tools: $(LINTER) ## Build the tools that tools/go.mod pins.

$(TOOLS)/%:
	@mkdir -p $(TOOLS)
	cd tools && $(LAZY) CGO_ENABLED=0 GOWORK=off $(GO) build -trimpath -o $@.new \
	  $$($(GO) list -f '{{.ImportPath}}' tool | grep '/$*$$')
	mv $@.new $@

# The standard library, compiled as for the tests. hack/fetch has it made while it waits for the network.
.PHONY: std std-race
std:
	$(LAZY) $(GO) build std
std-race:
	$(GO) build -race std

.PHONY: clean
clean: ## Remove what was built here (the caches outside the tree stay).
	rm -rf bin
