# Copyright The Quorate Authors
# SPDX-License-Identifier: Apache-2.0
#
# One Makefile for all modules of the workspace. `make` runs the gates,
# `make help` lists the targets. The only needs are Go, make, git, and, for the lane race,
# a C compiler; every other tool is pinned in internal/devtools/go.mod and built into .tmp/bin
# at first use.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.ONESHELL:
.DELETE_ON_ERROR:
.DEFAULT_GOAL := check
MAKEFLAGS += --no-builtin-rules --no-print-directory

GO        ?= go
SEED      ?= 1
BENCHTIME ?= 0.5s
BENCH     ?=
REF       ?=
RUNS      ?= 3
SEEDS     ?= 1000
FIRST_SEED ?= 1
MINUTES   ?= 30
SOAK_SEED ?= 0
DRY_RUN   ?=
DIR       ?=
ABOUT     ?=
MODULE    ?=
LOAD      ?=

TMP := $(CURDIR)/.tmp
BIN := $(TMP)/bin

# The module list is read from go.work, which is the single place to name one.
MODULES = $(shell sed -n 's|^[[:space:]]*\./|./|p' go.work)

ifneq ($(MODULE),)
ifeq ($(filter $(MODULE),$(MODULES:./%=%)),)
$(error there is no module "$(MODULE)"; the modules are: $(MODULES:./%=%))
endif
endif

# Modules of tests and of measurements that need what no module of the workspace should have in its build
# list, which is one for all.
APART = internal/etcdtest internal/deploytest bench/peers

COMMA := ,
step = @printf '== %s\n' '$(1)'

.PHONY: help
help: ## list the targets
	@grep -hE '^[a-z%-]+:.*## ' $(MAKEFILE_LIST) | sort | awk -F ':.*## ' '{printf "  %-16s %s\n", $$1, $$2}'

.PHONY: needs
needs:
	@command -v $(GO) >/dev/null || { echo 'missing: Go 1.26 or newer, see https://go.dev/dl'; exit 1; }
	@command -v git >/dev/null || { echo 'missing: git'; exit 1; }

# ---------------------------------------------------------------- the gates

# None of the gates fills two processors by itself, and the tools are built while others run.
GATES = fmt-check lint tree history-check api-check figures-check modules versions cross generate-check vuln

.PHONY: check
check: needs ## every gate except the tests (the default): MODULE=fd, those of one module, and its tests
ifeq ($(MODULE),)
	@$(MAKE) -j 2 --output-sync=target $(GATES)
	$(call step,check: ok)
else
	@$(MAKE) module-check
endif

.PHONY: module-check
module-check: needs $(BIN)/golangci-lint $(BIN)/lanes
	@$(BIN)/lanes -module $(MODULE) test
	$(call step,$(MODULE): format$(COMMA) lint$(COMMA) tree$(COMMA) tidy)
	$(BIN)/golangci-lint fmt --diff ./$(MODULE)
	$(BIN)/golangci-lint run ./$(MODULE)/...
	$(GO) test -count=1 ./tools/tree ./tools/internal/api
	GOWORK=off $(GO) -C $(MODULE) build ./...
	GOWORK=off $(GO) -C $(MODULE) mod tidy -diff
	$(GO) run ./tools/cmd/release -versions -module $(MODULE)
	echo '== check of $(MODULE): ok'

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

# `make check` runs the same analyzers, by `lint` with all build tags.
.PHONY: vet
vet: needs ## go vet over the workspace, with and without the process tests
	$(call step,vet)
	@$(GO) vet work
	@$(GO) vet -tags process,python,typescript,postgres,chromium work

.PHONY: tree
tree: needs ## the checks on the tree: imports, docs, headers, lengths, replaces
	$(call step,tree)
	@$(GO) test -count=1 ./tools/tree/...

.PHONY: history-check
history-check: needs ## the commits: their subjects, and how large they are
	$(call step,history-check)
	@$(GO) test -count=1 ./tools/internal/history

.PHONY: api-check
api-check: needs ## what the public packages declare, against docs/api
	$(call step,api-check)
	@$(GO) test -count=1 ./tools/internal/api

.PHONY: figures-check
figures-check: needs ## the figures of docs/downing.md, as far as they take seconds
	$(call step,figures-check)
	@$(GO) test -count=1 ./tools/internal/figures

.PHONY: modules
modules: needs ## each module by itself: build, tidy; what its tests need is found by the second
	$(call step,modules)
	@for m in $(MODULES); do
	  GOWORK=off $(GO) -C $$m build ./...
	  GOWORK=off $(GO) -C $$m mod tidy -diff
	done
	for m in $(APART) internal/devtools; do GOWORK=off $(GO) -C $$m mod tidy -diff; done

.PHONY: versions
versions: needs ## the versions of siblings that each module requires: released or pending, and the lowest that work
	$(call step,versions)
	@$(GO) run ./tools/cmd/release -versions

# A toolkit that only compiles where its authors sit is found out by its users.
.PHONY: cross
cross: needs ## the types of all packages as they are on other platforms
	$(call step,cross)
	@$(GO) test -count=1 ./tools/internal/platforms

.PHONY: vuln
vuln: $(BIN)/govulncheck ## known vulnerabilities in what the code calls; without vuln.go.dev nothing is judged, and a line says so
	$(call step,vuln)
	@$(GO) run ./tools/internal/vuln $(BIN)/govulncheck

# ---------------------------------------------------------------- the tests

# What runs the tests is a program of the tree: it knows the packages and the lanes, shows how far it is, and repeats
# what could not be judged.
.PHONY: $(BIN)/lanes
$(BIN)/lanes: needs
	@mkdir -p $(BIN) && $(GO) build -o $@ ./tools/internal/lanes/run

LANES = $(BIN)/lanes $(if $(MODULE),-module $(MODULE)) $(if $(LOAD),-load $(LOAD))

.PHONY: test
test: $(BIN)/lanes ## the tests that need no other program: MODULE=fd, of one module; LOAD=8, beside busy loops
	@$(LANES) test

.PHONY: lanes
lanes: $(BIN)/lanes ## list what is more than that: lanes, each with its reason and what it needs
	@$(LANES) lanes

.PHONY: all
all: $(BIN)/lanes ## the tests, and all lanes
	@$(LANES) all

lane-%: $(BIN)/lanes ## one lane, PART=2 of it: MODULE=fd, LOAD=8, FUZZTIME=20s
	@$(LANES) lane $*$(if $(PART),/$(PART))

# The page of management is built from its sources and must be what is committed. Nothing is installed but
# the packages of the lock file, which stay within the tree.
PAGE = management/page
CHROMIUM ?= $(shell command -v chromium || command -v chromium-browser || command -v google-chrome)

.PHONY: page
page: needs ## build the page of management anew, and test it
	@npm ci --prefix $(PAGE) --ignore-scripts --no-audit --no-fund --loglevel error
	rm -rf $(TMP)/page-before && mkdir -p $(TMP) && cp -r $(PAGE)/dist $(TMP)/page-before
	npm run --silent --prefix $(PAGE) build >/dev/null
	npm run --silent --prefix $(PAGE) test
	diff -r $(TMP)/page-before $(PAGE)/dist >/dev/null || { rm -rf $(TMP)/page-before; echo '$(PAGE)/dist is not what its sources make: it has been built anew, commit it'; exit 1; }
	rm -rf $(TMP)/page-before

.PHONY: pictures
pictures: needs ## the pictures of docs/images: the page and a run in Chromium, quorate top in a terminal
	$(call step,pictures)
	[ -n "$(CHROMIUM)" ] || { echo 'no chromium: CHROMIUM names one'; exit 1; }
	npm ci --prefix $(PAGE) --ignore-scripts --no-audit --no-fund --loglevel error
	rm -rf $(TMP)/pictures && mkdir -p $(TMP)/pictures
	QUORATE_PICTURES="$(TMP)/pictures" CHROMIUM="$(CHROMIUM)" $(GO) test -tags process,chromium -run Chromium -p 1 -count=1 -timeout 10m ./internal/acceptance/processes ./tools/internal/picture
	QUORATE_PICTURES="$(TMP)/pictures" $(GO) test -run TopInPictures -count=1 ./tools/internal/command
	$(GO) run ./tools/internal/shrink $(TMP)/pictures docs/images
	rm -rf $(TMP)/pictures

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

.PHONY: bench
bench: needs ## the figures of docs/performance.md beside their floors: BENCH="local remote", RUNS=3
	@mkdir -p bin
	@$(GO) build -trimpath -o bin/ ./bench/cmd/bench
	@bin/bench -runs $(RUNS) $(BENCH)

# The other build is made from a work tree of its own, which goes away with it, and kept by its commit.
.PHONY: bench-against
bench-against: needs ## the same beside the build of REF=, in turns, with a verdict a figure: RUNS=5 tells more
	@test -n "$(REF)" || { echo 'say which build to compare with, such as REF=HEAD~1'; exit 2; }
	@mkdir -p bin $(TMP)
	@ref=$$(git rev-parse --short '$(REF)^{commit}')
	@tree=$(TMP)/against-$$ref
	@trap 'git worktree remove --force $$tree' EXIT
	@git worktree add --quiet --detach $$tree $$ref
	@$(GO) -C $$tree build -trimpath -o $(CURDIR)/bin/bench-$$ref ./bench/cmd/bench
	@$(GO) build -trimpath -o bin/ ./bench/cmd/bench
	@bin/bench -runs $(RUNS) -against bin/bench-$$ref $(BENCH)

# The page names one commit, so everything is committed before. The lines are kept beside it.
define bench-page
	@test -z "$$(git status --porcelain -uno -- . ':!docs/performance*')" || { echo 'commit first: the page names the commit that was measured'; exit 2; }
	@mkdir -p $(TMP)
	@$(1) -runs $(RUNS) $(or $(BENCH),all) >$(TMP)/lines.jsonl
	@mv $(TMP)/lines.jsonl $(2)
	@$(1) -page docs/performance.md -from "$$(date -u +%F), commit $$(git rev-parse --short HEAD), $(RUNS) runs, $$(go env GOVERSION) on $$(nproc) processors." <$(2)
endef

.PHONY: bench-page
bench-page: needs ## measure all groups, or BENCH=, and renew their table in docs/performance.md
	@mkdir -p bin
	@$(GO) build -trimpath -o bin/ ./bench/cmd/bench
	$(call bench-page,bin/bench,docs/performance.jsonl)

.PHONY: bench-peers
bench-peers: needs ## other libraries measured beside ours, with the same harness: BENCH="local ask", RUNS=3
	@mkdir -p bin
	@GOWORK=off $(GO) -C bench/peers build -trimpath -o $(CURDIR)/bin/ ./cmd/peers
	@bin/peers -runs $(RUNS) $(BENCH)

.PHONY: bench-peers-page
bench-peers-page: needs ## the same for the page, as bench-page
	@mkdir -p bin
	@GOWORK=off $(GO) -C bench/peers build -trimpath -o $(CURDIR)/bin/ ./cmd/peers
	$(call bench-page,bin/peers,docs/performance-peers.jsonl)

.PHONY: microbench
microbench: needs ## every Go benchmark for BENCHTIME (0.5s)
	@$(GO) test -run '^$$' -bench . -benchmem -benchtime $(BENCHTIME) work

# ------------------------------------------------------------- the programs

.PHONY: build
build: needs ## the command line tools into bin/
	$(call step,build)
	@mkdir -p bin
	@$(GO) build -trimpath -o bin/ ./tools/cmd/... ./bench/cmd/...

# Compiling what a program needs is told as it goes on: a line for each hundred packages. Without cgo an eighth of the
# compiling from an empty cache is saved, and nothing in C is needed.
define demo-build
@mkdir -p bin
echo "== building, at most $$($(GO) list -deps $(1) | wc -l) packages"
CGO_ENABLED=0 $(GO) build -v -trimpath -o bin/ $(1) 2>&1 | awk '/[ :]/ { print; next } ++n % 100 == 0 { print "   " n " packages"; fflush() }'
endef

.PHONY: demo
demo: needs ## the bank on five processes: kills, freezes, restarts, drains, reshards (SEED=1)
	$(call demo-build,./examples/bank/cmd/bank ./internal/acceptance/cmd/bank-demo)
	bin/bank-demo -seed $(SEED)

.PHONY: demo-plugin
demo-plugin: needs ## the bank whose nodes ask plugins, while one plugin is killed and one stands still (SEED=1)
	$(call demo-build,./examples/bank/cmd/bank ./internal/acceptance/cmd/bank-demo ./examples/plugins/zoneaware ./examples/plugins/witness ./examples/plugins/witnessd)
	bin/bank-demo -seed $(SEED) -plugins -phases plugins,kill

# ----------------------------------------------------------- the maintenance

.PHONY: fmt
fmt: $(BIN)/golangci-lint ## format all files
	@$(BIN)/golangci-lint fmt $(MODULES)

.PHONY: tidy
tidy: needs ## requirements of siblings and their replaces as the imports say, go mod tidy in every module, and go.work.sum
	@$(GO) run ./tools/cmd/module
	for m in $(MODULES) $(APART) internal/devtools; do GOWORK=off $(GO) -C $$m mod tidy; done
	@$(GO) build work

# A directory with protobuf sources has a buf.yaml, and a buf.gen.yaml that names its plugins if code is generated from
# them. Where they are but the document of a codec, the tests read them as <module>/internal/proto/descriptor.binpb.
BUF_DIRS = $(shell git ls-files --cached --others --exclude-standard -- '*buf.yaml' | xargs -r -n1 dirname)
BUF_GEN_DIRS = $(shell git ls-files --cached --others --exclude-standard -- '*buf.gen.yaml' | xargs -r -n1 dirname)
DESCRIPTORS = $(shell git ls-files --cached --others --exclude-standard -- '*/internal/proto/descriptor.binpb')
GENERATED = git ls-files -z --cached --others --exclude-standard -- '*.pb.go' '*/descriptor.binpb' docs/configuration.md docs/cluster.schema.json docs/plugin-fields.md docs/licences.md tools/internal/reference/reference.json | xargs -0 -r cksum

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
generate: $(BIN)/buf $(BIN)/protoc-gen-go $(BIN)/protoc-gen-go-grpc reference licences ## regenerate the code and the descriptors from the .proto files, the reference of the settings, and the licences
	@for d in $(BUF_GEN_DIRS); do
	  echo "   $$d"
	  (cd $$d && PATH="$(BIN):$$PATH" buf generate)
	done
	for image in $(DESCRIPTORS); do
	  echo "   $$image"
	  (cd $${image%%/*} && $(BIN)/buf build --exclude-source-info --as-file-descriptor-set -o "$${image#*/}")
	done

.PHONY: reference
reference: needs ## regenerate the reference of the settings from the Go sources
	@$(GO) run ./tools/internal/reference/generate .

.PHONY: licences
licences: needs ## regenerate the list of what programs with ours link, and fail where a licence is not allowed
	@$(GO) run ./tools/internal/licences/generate .

.PHONY: figures
figures: needs ## renew all figures of docs/downing.md, in some five minutes
	@$(GO) run ./tools/internal/figures/write .

.PHONY: outdated
outdated: needs ## which modules of others are behind their newest version, and why they stay; asks the module proxy
	@$(GO) run ./tools/internal/outdated/list

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

.PHONY: module
module: needs ## make a module: DIR=discovery/zookeeper ABOUT="finds them in ZooKeeper"
	@$(GO) run ./tools/cmd/module -dir "$(DIR)" -about "$(ABOUT)"

# Nothing is published: the clone has the commits and the tags, and the last line
# is the command that pushes them.
.PHONY: release
release: needs ## make a release of what has changed, in a clone below .tmp/release; DRY_RUN=1 only says what and why
	@if [ -n "$(DRY_RUN)" ]; then exec $(GO) run ./tools/cmd/release -dry-run; fi
	$(GO) run ./tools/cmd/release -out $(TMP)/release/$$(date +%Y%m%dT%H%M%S)

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
