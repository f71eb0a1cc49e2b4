# SPDX-License-Identifier: Apache-2.0

# `make` says what there is. `make check` is what CI runs.

SHELL       := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS   += --no-print-directory

GO         ?= go
FUZZ_TIME  ?= 30s
BENCH_TIME ?= 1s
RUN_FILE   ?= examples/quickstart/run.yaml
export HUMANEVAL ?= $(abspath $(or $(TIDEMILL_CASES),../shared/cases)/humaneval/HumanEval.jsonl.gz)

# The version comes from git where there is a checkout with git; else the binaries
# fall back to what the go command recorded in them.
VERSION := $(shell git describe --tags --always --dirty 2>/dev/null)
LDFLAGS := $(if $(VERSION),-X github.com/tidemill/tidemill/cmd/internal/version.version=$(VERSION))

# The race detector needs a C compiler. The go command sets CGO_ENABLED to 0 where it
# finds none, and the tests run without the detector.
RACE := $(if $(filter 1,$(shell $(GO) env CGO_ENABLED)),-race)

TEST_TIMEOUT ?= 45m

##@ Use it

.PHONY: help
help: ## Show this help
	@awk 'BEGIN { FS = ":.*## " } \
	  /^##@/ { printf "\n%s\n", substr($$0, 5) } \
	  /^[a-z][a-z\/-]*:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

.PHONY: run
run: ## Run the quickstart, or RUN_FILE=…, on this machine; results under results/
	$(GO) run ./cmd/tidemill run $(RUN_FILE)

.PHONY: build
build: ## Build the four binaries into bin/
	$(GO) build -trimpath -ldflags '$(LDFLAGS)' -o bin/ ./cmd/...

.PHONY: man
man: ## Write the man pages into man/
	$(GO) test ./cmd/tidemill -count=1 -run '^TestManPages$$' -args -man '$(abspath man)'

##@ Work on it

.PHONY: test
test: ## Run all tests, with the race detector where there is a C compiler
	@$(if $(RACE),:,echo "no C compiler: testing without the race detector")
	$(GO) test $(RACE) -timeout $(TEST_TIMEOUT) ./...

.PHONY: test/script
test/script: ## Run the command line scripts only (cmd/tidemill/testdata/script)
	$(GO) test -timeout $(TEST_TIMEOUT) -count=1 -run 'Script' ./cmd/tidemill

.PHONY: fuzz
fuzz: ## Run every fuzz target for FUZZ_TIME=30s each
	@{ grep -rHoE '^func Fuzz[A-Za-z0-9_]+' --include='*_test.go' . || true; } | sort | while IFS=: read -r file func; do \
	  name=$${func#func }; \
	  echo "== $$(dirname "$$file") $$name"; \
	  if ! out=$$($(GO) test "$$(dirname "$$file")" -run '^$$' -fuzz "^$$name\$$" -fuzztime $(FUZZ_TIME) </dev/null 2>&1); then \
	    echo "$$out"; \
	    case "$$out" in \
	      *"Failing input"*) exit 1 ;; \
	      *"context deadline exceeded"*) echo "(the engine was cut off at the end of its time; that is no finding)" ;; \
	      *) exit 1 ;; \
	    esac; \
	  else echo "$$out" | tail -n 1; fi; \
	done

.PHONY: bench
bench: ## Run every benchmark for BENCH_TIME=1s each
	$(GO) test -run '^$$' -bench . -benchmem -benchtime $(BENCH_TIME) -timeout 30m ./...

.PHONY: golden
golden: ## Rewrite the golden files from what the code says now; read the diff
	@{ grep -rlE 'flag\.Bool\("update"' --include='*_test.go' . || true; } | xargs -r -n1 dirname | sort -u | while read -r dir; do \
	  $(GO) test "$$dir" -count=1 -update </dev/null; \
	done

.PHONY: fmt
fmt: .bin/gofumpt ## Format all Go files
	.bin/gofumpt -w .

##@ Check it

.PHONY: lint
lint: lint/fmt lint/vet lint/staticcheck ## Formatting, go vet and staticcheck

.PHONY: lint/fmt
lint/fmt: .bin/gofumpt
	@bad=$$(.bin/gofumpt -l . | grep -v '^\.bin/' || true); if [ -n "$$bad" ]; then echo "run make fmt, these are not formatted:"; echo "$$bad"; exit 1; fi

.PHONY: lint/vet
lint/vet:
	$(GO) vet ./...

.PHONY: lint/staticcheck
lint/staticcheck: .bin/staticcheck
	.bin/staticcheck ./...

.PHONY: docs
docs: ## Check that links lead somewhere and that the commands on the pages exist
	$(GO) test -count=1 -run '^TestDocs' .

.PHONY: verify
verify: ## Check that go.mod is tidy, modules are as published, and goldens are as the code writes them
	$(GO) mod tidy -diff
	cd tools && $(GO) mod tidy -diff
	cd tools/s3server && $(GO) mod tidy -diff
	$(GO) mod verify
	@before=$$(find . -path '*/testdata/*' -type f -print0 | sort -z | xargs -0 -r sha256sum); \
	$(MAKE) golden; \
	after=$$(find . -path '*/testdata/*' -type f -print0 | sort -z | xargs -0 -r sha256sum); \
	diff <(echo "$$before") <(echo "$$after") || { echo "golden files were stale; they are rewritten, read the diff"; exit 1; }

# How large make chaos is, and what it draws its plan from.
TRIALS ?= 200
SEED   ?= 0
FAULTS ?= all

.PHONY: chaos
chaos: ## Break a fleet on purpose: TRIALS=200 SEED=0 (0 draws one) FAULTS=all; OUT=dir keeps the report
	$(GO) test ./cmd/internal/chaos -count=1 -v -timeout 3h -run '^TestChaos$$' -args \
	  -chaos.trials $(TRIALS) -chaos.seed $(SEED) -chaos.faults $(FAULTS) $(if $(OUT),-chaos.out '$(abspath $(OUT))')

.PHONY: check
check: lint test test/script docs ## What CI runs, 200 trials of chaos among it; 30 minutes at most
	$(MAKE) chaos TRIALS=200 SEED=11 FAULTS=all

.PHONY: check-full
check-full: check verify ## check, and: verify, large floods, 2,000 trials of chaos, fuzzing for 10s a target, benchmarks, all of HumanEval where its data is
	TIDEMILL_TEST_FULL=1 $(GO) test -timeout 30m -count=1 -run '^TestFaultsFlood$$' ./cmd/tidemill
	$(MAKE) chaos TRIALS=2000
	$(MAKE) fuzz FUZZ_TIME=10s
	$(MAKE) bench
	@if [ -f "$(HUMANEVAL)" ]; then $(MAKE) humaneval humaneval/crash; else echo "skipped HumanEval: no data set at $(HUMANEVAL)"; fi

.PHONY: humaneval
humaneval: ## Run all of HumanEval with the oracle and with nop; needs HUMANEVAL=/path/to/HumanEval.jsonl.gz
	@if [ ! -f "$(HUMANEVAL)" ]; then \
	  echo "there is no data set at $(HUMANEVAL); set HUMANEVAL=/path/to/HumanEval.jsonl.gz" >&2; exit 1; \
	fi; \
	log=$$(mktemp); trap 'rm -f "$$log"' EXIT; \
	for want in 'oracle 100.0%' 'nop 0.0%'; do \
	  set -- $$want; \
	  $(GO) run ./cmd/tidemill run --data results/humaneval --max-tasks 5 examples/humaneval/run-$$1.yaml 2>"$$log" | tee /dev/stderr | \
	    grep "n 328  scored 328  success $$2 " >/dev/null || \
	    { tail -n 5 "$$log"; echo "HumanEval with $$1: want 328 trials, all scored, success $$2"; exit 1; }; \
	done

.PHONY: humaneval/crash
humaneval/crash: build ## Run HumanEval once undisturbed and once with three kill -9, and compare; needs HUMANEVAL=…
	@if [ ! -f "$(HUMANEVAL)" ]; then \
	  echo "there is no data set at $(HUMANEVAL); set HUMANEVAL=/path/to/HumanEval.jsonl.gz" >&2; exit 1; \
	fi
	python3 examples/humaneval/crash.py --tidemill bin/tidemill

.PHONY: clean
clean: ## Remove what was built; results/ stays
	rm -rf bin .bin man
	$(GO) clean -testcache

# The linters are pinned in tools/go.mod, a module of their own, so that the product's
# dependencies are the product's.
.bin/staticcheck: tools/go.mod tools/go.sum
	cd tools && $(GO) build -o ../.bin/ tool
	@touch $@
.bin/gofumpt: .bin/staticcheck ;
