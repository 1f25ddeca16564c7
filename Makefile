# Copyright The Quorate Authors
# SPDX-License-Identifier: Apache-2.0
#
# One Makefile for all modules of the workspace. `make` runs the gates,
# `make help` lists the targets. The only needs are Go, make, git, and a C
# compiler for the race detector; every other tool is pinned in
# internal/devtools/go.mod and built into .tmp/bin at first use.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.ONESHELL:
.DELETE_ON_ERROR:
.DEFAULT_GOAL := check
MAKEFLAGS += --no-builtin-rules --no-print-directory

GO        ?= go
SEED      ?= 1
FUZZTIME  ?= 20s
BENCHTIME ?= 0.5s
BENCH     ?=
RUNS      ?= 3
SEEDS     ?= 1000
FIRST_SEED ?= 1
MINUTES   ?= 30
MUTANTS   ?= 1/1
SOAK_SEED ?= 0
VERSION   ?=

TMP := $(CURDIR)/.tmp
BIN := $(TMP)/bin

# The module list is read from go.work, which is the single place to name one.
MODULES = $(shell sed -n 's|^[[:space:]]*\./|./|p' go.work)

# Modules of tests that need what no module of the workspace should have in its build
# list, which is one for all.
APART = internal/etcdtest internal/deploytest

# Tests that start operating-system processes carry the build tag `process`.
# They run without the race detector: their timings are real.
PROCESS_PACKAGES = $(shell grep -rlE --include='*_test.go' '^//go:build .*\bprocess\b' $(MODULES) 2>/dev/null | xargs -r -n1 dirname | sort -u)

step = @printf '== %s\n' '$(1)'

.PHONY: help
help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sort | awk -F ':.*## ' '{printf "  %-16s %s\n", $$1, $$2}'

.PHONY: needs
needs:
	@command -v $(GO) >/dev/null || { echo 'missing: Go 1.26 or newer, see https://go.dev/dl'; exit 1; }
	@command -v git >/dev/null || { echo 'missing: git'; exit 1; }

.PHONY: needs-cc
needs-cc: needs
	@cc="$$($(GO) env CC)"; command -v "$${cc%% *}" >/dev/null || { echo "missing: a C compiler ($$cc), which the race detector needs"; exit 1; }

# ---------------------------------------------------------------- the gates

.PHONY: check
check: needs fmt-check lint tree api-check figures-check deploy-check modules cross generate-check consumer ## every gate except the tests (the default)
	$(call step,check: ok)

.PHONY: fmt-check
fmt-check: $(BIN)/golangci-lint ## fail when a file is not formatted
	$(call step,fmt-check)
	@$(BIN)/golangci-lint fmt --diff $(MODULES)

.PHONY: lint
lint: $(BIN)/golangci-lint ## golangci-lint over all modules, and over the faults that it must find
	$(call step,lint)
	@$(BIN)/golangci-lint run $(addsuffix /...,$(MODULES))
	@for m in $(APART); do (cd $$m && GOWORK=off $(BIN)/golangci-lint run ./...); done
	QUORATE_LINTER=$(BIN)/golangci-lint $(GO) test -count=1 -tags lint -run Linters ./tools/tree

# `make check` runs the same analyzers: `lint` with all build tags, `modules` without.
.PHONY: vet
vet: needs ## go vet over the workspace, with and without the process tests
	$(call step,vet)
	@$(GO) vet work
	@$(GO) vet -tags process,python,typescript,postgres,chromium work

.PHONY: tree
tree: needs ## the checks on the tree: imports, docs, headers, lengths, replaces
	$(call step,tree)
	@$(GO) test -count=1 ./tools/tree/...

.PHONY: api-check
api-check: needs ## what the public packages declare, against docs/api
	$(call step,api-check)
	@$(GO) test -count=1 ./tools/internal/api

.PHONY: figures-check
figures-check: needs ## the figures of docs/downing.md, as far as they take seconds
	$(call step,figures-check)
	@$(GO) test -count=1 ./tools/internal/figures

.PHONY: deploy-check
deploy-check: needs ## manifests, images and alerts in deploy, by kustomize, the types of Kubernetes and Prometheus
	$(call step,deploy-check)
	@GOWORK=off $(GO) -C internal/deploytest test -count=1 ./...
	@if unshare --user --map-root-user --mount mount -t tmpfs none /mnt 2>/dev/null; then
	  GOWORK=off $(GO) -C internal/deploytest test -tags namespaces -count=1 -timeout 20m ./image
	else
	  echo '   left out: the image, since the kernel gives a user no namespaces of its own'
	fi

.PHONY: modules
modules: needs ## each module by itself: build, vet, tidy
	$(call step,modules)
	@for m in $(MODULES); do
	  echo "   $$m"
	  GOWORK=off $(GO) -C $$m build ./...
	  GOWORK=off $(GO) -C $$m vet ./...
	  GOWORK=off $(GO) -C $$m mod tidy -diff
	done
	for m in $(APART); do GOWORK=off $(GO) -C $$m vet ./...; done
	for m in $(APART) internal/devtools; do GOWORK=off $(GO) -C $$m mod tidy -diff; done

# A toolkit that only compiles where its authors sit is found out by its users.
.PHONY: cross
cross: needs ## the types of all packages as they are on other platforms
	$(call step,cross)
	@$(GO) test -count=1 ./tools/internal/platforms

.PHONY: consumer
consumer: needs ## release the tree in a clone, install from its tags, start a node, weigh it
	$(call step,consumer)
	@$(GO) test -count=1 ./tools/consumer/...

# ---------------------------------------------------------------- the tests

.PHONY: test
test: race ## all tests: with the race detector, without it where it finds nothing, mutants, real processes, other languages, databases, pages
	$(call step,test: what computes beside what waits)
	@nice -n 19 $(MAKE) --no-print-directory computing & computing=$$!
	nice -n 5 $(MAKE) --no-print-directory installing & installing=$$!
	failed=0
	$(MAKE) --no-print-directory process || failed=1
	wait $$installing || failed=1
	wait $$computing || failed=1
	if ((failed)); then exit 1; fi
	echo '== test: ok'

# Real processes leave the processors idle most of the time. What only computes, in virtual time, fills that
# with the lowest priority: nothing in it depends on how long it takes. What is installed waits for the network.
.PHONY: computing installing
computing: race-bubbles seeds mutants
installing: languages databases pages

# What runs in one goroutine, tests included: machines, the worlds that they are simulated in,
# wire formats, values. The race detector can find nothing there, and makes each run cost five to
# ten times as much: these packages are tested without it. `make tree` looks for goroutines in them.
SEQUENTIAL = \
  client/clientsim client/internal/broker cluster/locations/internal/part cluster/locations/internal/simulation \
  cluster/locations/locationssim ddata/crdt ddata/ddatasim ddata/internal/protocol \
  ddata/internal/simulation ddata/internal/wire downing gateway/gatewaysim gateway/internal/exchange \
  gateway/internal/simulation machine/wire membership/internal/protocol membership/internal/wire \
  membership/membershipsim membership/membershipsim/scenario sharding/epoch sharding/internal/cell \
  sharding/internal/control sharding/internal/courier sharding/internal/deliverysim \
  sharding/internal/hold sharding/internal/passivation sharding/internal/protocol \
  sharding/internal/pull sharding/internal/queuefile sharding/internal/recall \
  sharding/internal/remind sharding/internal/remindsim sharding/internal/simulation \
  sharding/internal/statesim sharding/internal/wire sharding/shardingsim simulation \
  tools/internal/picture

# The gates that are tests: `make check` runs them, and the race detector finds nothing in them.
GATES = tools/consumer tools/internal/api tools/internal/figures tools/internal/platforms tools/tree

# In virtual time (testing/synctest) the race detector of Go 1.26 keeps one
# context for the timers of a bubble, and two processors that fire two of them
# at the same moment corrupt it: a segmentation fault, once in thousands of
# runs. One processor for those packages avoids it and finds the same races,
# since the detector compares what happened before what, not what ran beside it.
BUBBLES = $(shell grep -rlF --include='*_test.go' '"testing/synctest"' $(MODULES) 2>/dev/null | xargs -r -n1 dirname | sort -u)

.PHONY: race
race: needs-cc ## the tests with the race detector, of all that could have a race and is in real time
	$(call step,race)
	@others="$$(comm -23 <($(GO) list work | sort) <($(GO) list $(BUBBLES) $(SEQUENTIAL:%=./%) $(GATES:%=./%) | sort))"
	CGO_ENABLED=1 $(GO) test -race -timeout 15m $$others
	for m in $(filter-out internal/deploytest,$(APART)); do GOWORK=off CGO_ENABLED=1 $(GO) -C $$m test -race -timeout 15m ./...; done

.PHONY: race-bubbles
race-bubbles: needs-cc ## the same of what has tests in virtual time
	$(call step,race-bubbles)
	@CGO_ENABLED=1 $(GO) test -race -timeout 40m -cpu 1 $(BUBBLES)

# Tests that are left out with the race detector, since they are as sequential as the packages
# above, are in files that say so; tests that run more seeds than usual have the build tag `seeds`.
PLAIN_PACKAGES = $(shell grep -rlE --include='*_test.go' '^//go:build (!race|seeds)' $(MODULES) 2>/dev/null | xargs -r -n1 dirname | sort -u)

.PHONY: seeds
seeds: needs ## the tests without the race detector of what runs in one goroutine, with more seeds
	$(call step,seeds)
	@$(GO) test -tags seeds -timeout 40m $$($(GO) list $(SEQUENTIAL:%=./%) $(PLAIN_PACKAGES) | sort -u)

# A mutant is the production code with one defect, built anew, and searched for
# by the seeds of the simulation: the proof that they would find it.
MUTANT_PACKAGES = $(shell grep -rlE --include='*_test.go' '^//go:build .*\bmutants\b' $(MODULES) 2>/dev/null | xargs -r -n1 dirname | sort -u)

.PHONY: mutants
mutants: needs ## the defects that the seeds of the simulations must find: MUTANTS=1/1, a part of them
	$(call step,mutants $(MUTANTS))
	@QUORATE_MUTANTS=$(MUTANTS) $(GO) test -tags mutants -run Mutants -timeout 40m $(MUTANT_PACKAGES)

# The clusters of the examples wait for seconds most of the time, so that two packages, and in
# the bank two tests, run at once. What measures milliseconds runs alone.
WAITING = ./examples ./examples/%

.PHONY: process
process: needs ## the tests that start real processes
	$(call step,process)
	@$(GO) test -tags process -p 1 -count=1 -timeout 15m $(filter-out $(WAITING),$(PROCESS_PACKAGES))
	$(GO) test -tags process -p 2 -count=1 -timeout 15m $(filter $(WAITING),$(PROCESS_PACKAGES))

# Plugins in other languages are built and tested where the language is there. Their tests have
# its name as build tag and in their own names. The packages that they need are pinned by their
# checksums, those of Python are installed into .tmp once.
LANGUAGE_PACKAGES = $(shell grep -rlE --include='*_test.go' '^//go:build .*\b(python|typescript)\b' $(MODULES) 2>/dev/null | xargs -r -n1 dirname | sort -u)

.PHONY: languages
languages: needs ## the plugins in Python and TypeScript, where the languages are there
	$(call step,languages)
	@tags=()
	if python3 -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then
	  tags+=(python)
	else
	  echo '   left out: plugins in Python, since there is no python3 of 3.10 or newer with venv and pip'
	fi
	if command -v npm >/dev/null && node -e 'process.exit(parseInt(process.versions.node) < 20 ? 1 : 0)' 2>/dev/null; then
	  tags+=(typescript)
	else
	  echo '   left out: plugins in TypeScript, since there is no node of 20 or newer with npm'
	fi
	if (($${#tags[@]} > 0)); then
	  $(GO) test -tags "$$(IFS=,; echo "$${tags[*]}")" -run 'Python|TypeScript' -p 1 -count=1 -timeout 15m $(LANGUAGE_PACKAGES)
	fi

# The page of management is built from its sources where npm is there, must be what is committed, and is
# looked at in Chromium where that is installed, as is the page of a simulated run. Nothing is installed but
# the packages of the lock file, which stay within the tree.
PAGE = management/page
CHROMIUM ?= $(shell command -v chromium || command -v chromium-browser || command -v google-chrome)

.PHONY: pages
pages: needs ## the pages: built anew, tested, and used in Chromium, where these are there
	$(call step,pages)
	@if ! command -v npm >/dev/null || ! node -e 'const [a, b] = process.versions.node.split("."); process.exit(a > 20 || a == 20 && b >= 19 ? 0 : 1)' 2>/dev/null; then
	  echo '   left out: the pages, since there is no node of 20.19 or newer with npm'
	  exit 0
	fi
	npm ci --prefix $(PAGE) --ignore-scripts --no-audit --no-fund --loglevel error
	rm -rf $(TMP)/page-before && mkdir -p $(TMP) && cp -r $(PAGE)/dist $(TMP)/page-before
	npm run --silent --prefix $(PAGE) build >/dev/null
	npm run --silent --prefix $(PAGE) test
	diff -r $(TMP)/page-before $(PAGE)/dist >/dev/null || { rm -rf $(TMP)/page-before; echo '$(PAGE)/dist is not what its sources make: it has been built anew, commit it'; exit 1; }
	rm -rf $(TMP)/page-before
	if [ -n "$(CHROMIUM)" ]; then
	  CHROMIUM="$(CHROMIUM)" $(GO) test -tags process,chromium -run Chromium -p 1 -count=1 -timeout 10m ./examples/bank ./tools/internal/picture
	else
	  echo '   left out: the pages in a browser, since there is no chromium'
	fi

.PHONY: pictures
pictures: needs ## the pictures of docs/images: the page and a run in Chromium, quorate top in a terminal
	$(call step,pictures)
	[ -n "$(CHROMIUM)" ] || { echo 'no chromium: CHROMIUM names one'; exit 1; }
	npm ci --prefix $(PAGE) --ignore-scripts --no-audit --no-fund --loglevel error
	rm -rf $(TMP)/pictures && mkdir -p $(TMP)/pictures
	QUORATE_PICTURES="$(TMP)/pictures" CHROMIUM="$(CHROMIUM)" $(GO) test -tags process,chromium -run Chromium -p 1 -count=1 -timeout 10m ./examples/bank ./tools/internal/picture
	QUORATE_PICTURES="$(TMP)/pictures" $(GO) test -run TopInPictures -count=1 ./tools/internal/command
	$(GO) run ./tools/internal/shrink $(TMP)/pictures docs/images
	rm -rf $(TMP)/pictures

# Stores over a database are tested with a server of the distribution's packages, which each test
# starts in a directory of its own. Their tests have its name as build tag; some start nodes as processes, too.
# Nothing is installed.
POSTGRES_PACKAGES = $(shell grep -rlE --include='*_test.go' '^//go:build .*\bpostgres\b' $(MODULES) 2>/dev/null | xargs -r -n1 dirname | sort -u)

.PHONY: databases
databases: needs ## the stores of states over a database, and a product that uses one, where its server is installed
	$(call step,databases)
	@if [ -n "$$(command -v postgres || ls /usr/lib/postgresql/*/bin/postgres 2>/dev/null)" ]; then
	  $(GO) test -tags postgres,process -run Postgres -p 1 -count=1 -timeout 10m $(POSTGRES_PACKAGES)
	else
	  echo '   left out: states in PostgreSQL, since there is no postgres (the package postgresql of Debian)'
	fi

.PHONY: sim
sim: needs ## more seeds than the tests run: SEEDS=1000, FIRST_SEED=1
	@QUORATE_SEEDS=$(SEEDS) QUORATE_FIRST_SEED=$(FIRST_SEED) $(GO) test -count=1 -timeout 60m -run 'Chaos|RandomFaults' ./membership/membershipsim ./sharding/internal/simulation ./ddata/internal/simulation

.PHONY: soak
soak: needs ## fresh seeds over all simulated worlds: MINUTES=30, SOAK_SEED=0 (the clock says)
	@mkdir -p bin
	@$(GO) build -trimpath -o bin/ ./tools/cmd/quorate
	@bin/quorate soak -minutes $(MINUTES) -seed $(SOAK_SEED)

.PHONY: cover
cover: needs ## statement coverage of each package, and .tmp/cover.html
	@mkdir -p $(TMP)
	$(GO) test -cover -coverprofile $(TMP)/cover.out work | grep -v 'no test files'
	$(GO) tool cover -html $(TMP)/cover.out -o $(TMP)/cover.html

.PHONY: fuzz
fuzz: needs ## run every fuzz target for FUZZTIME (20s)
	@grep -rnoE --include='*_test.go' '^func Fuzz[A-Za-z0-9_]*' $(MODULES) | sort | while IFS=: read -r file _ decl; do
	  target=$${decl#func }
	  echo "== $${file%/*} $$target"
	  $(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) "$${file%/*}"
	done

.PHONY: bench
bench: needs ## the figures of docs/performance.md beside their floors: BENCH="local remote", RUNS=3
	@mkdir -p bin
	@$(GO) build -trimpath -o bin/ ./bench/cmd/bench
	@bin/bench -runs $(RUNS) $(BENCH)

.PHONY: microbench
microbench: needs ## every Go benchmark for BENCHTIME (0.5s)
	@$(GO) test -run '^$$' -bench . -benchmem -benchtime $(BENCHTIME) work

# ------------------------------------------------------------- the programs

.PHONY: build
build: needs ## the command line tools into bin/
	$(call step,build)
	@mkdir -p bin
	@$(GO) build -trimpath -o bin/ ./tools/cmd/... ./bench/cmd/...

.PHONY: demo
demo: needs ## the bank on five processes: kills, freezes, restarts, drains, reshards, plugins (SEED=1)
	@mkdir -p bin
	@$(GO) build -trimpath -o bin/ ./examples/bank/... ./examples/plugins/...
	@bin/bank-demo -seed $(SEED)
	@bin/bank-demo -seed $(SEED) -plugins -phases plugins,kill

# ----------------------------------------------------------- the maintenance

.PHONY: fmt
fmt: $(BIN)/golangci-lint ## format all files
	@$(BIN)/golangci-lint fmt $(MODULES)

.PHONY: tidy
tidy: needs ## go mod tidy in every module, and go.work.sum
	@for m in $(MODULES) $(APART) internal/devtools; do GOWORK=off $(GO) -C $$m mod tidy; done
	@$(GO) build work

# A directory with protobuf sources has a buf.gen.yaml that names its plugins.
BUF_DIRS = $(shell git ls-files --cached --others --exclude-standard -- '*buf.gen.yaml' | xargs -r -n1 dirname)
GENERATED = git ls-files -z --cached --others --exclude-standard -- '*.pb.go' docs/configuration.md docs/cluster.schema.json tools/internal/reference/reference.json | xargs -0 -r cksum

# What a module promises to programs that are built by others is kept as an image
# of its last release, <module>/proto/released.binpb.
RELEASED_PROTOS = $(shell git ls-files --cached --others --exclude-standard -- '*/proto/released.binpb')

.PHONY: contract-release
contract-release: $(BIN)/buf ## make the present .proto files what later ones are compared with
	@for image in $(RELEASED_PROTOS); do
	  (cd $${image%%/*} && $(BIN)/buf build -o "$${image#*/}")
	done

.PHONY: api
api: needs ## accept what the public packages declare now, see docs/versioning.md
	@$(GO) run ./tools/internal/api/accept .

.PHONY: generate
generate: $(BIN)/buf $(BIN)/protoc-gen-go $(BIN)/protoc-gen-go-grpc reference ## regenerate the code from the .proto files, and the reference of the settings
	@for d in $(BUF_DIRS); do
	  echo "   $$d"
	  (cd $$d && PATH="$(BIN):$$PATH" buf generate)
	done

.PHONY: reference
reference: needs ## regenerate the reference of the settings from the Go sources
	@$(GO) run ./tools/internal/reference/generate .

.PHONY: figures
figures: needs ## renew all figures of docs/downing.md, in some five minutes
	@$(GO) run ./tools/internal/figures/write .

.PHONY: generate-check
generate-check: needs $(BIN)/buf ## fail when generated code differs from its source, or a .proto from its last release
	$(call step,generate-check)
	@before="$$($(GENERATED))"
	$(MAKE) generate
	after="$$($(GENERATED))"
	[ "$$before" = "$$after" ] || { echo 'generated code was stale; it is regenerated now, commit it'; diff <(echo "$$before") <(echo "$$after"); exit 1; }
	for d in $(BUF_DIRS); do (cd $$d && $(BIN)/buf lint); done
	for image in $(RELEASED_PROTOS); do
	  (cd $${image%%/*} && $(BIN)/buf breaking --against "$${image#*/}")
	done

# Nothing is published: the clone has the commits and the tags, and the last line
# is the command that pushes them.
.PHONY: release
release: needs ## make a release in a clone below .tmp/release: VERSION=v0.3.0
	@[ -n "$(VERSION)" ] || { echo 'say which: make release VERSION=v0.3.0'; exit 1; }
	@$(GO) run ./tools/cmd/release -version $(VERSION) -out $(TMP)/release/$(VERSION)

.PHONY: clean
clean: ## remove what make made
	@rm -rf bin .tmp

# Each tool is rebuilt when its pinned version changes, and not otherwise. The
# tools' module is kept out of the workspace, since that has one build list.
$(BIN)/%: internal/devtools/go.mod internal/devtools/go.sum | needs
	@mkdir -p $(BIN)
	@echo "== building $* from internal/devtools (once, may take minutes)"
	@pkg="$$(GOWORK=off $(GO) -C internal/devtools list -f '{{.ImportPath}}' tool | grep -E "/$*\$$")"
	GOWORK=off GOOS= GOARCH= $(GO) -C internal/devtools build -o $@ "$$pkg"
	@touch $@
