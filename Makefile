# Everything starts here: `make help` lists what there is.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

# The interpreter the environment is made with: make PYTHON=python3.12 build
PYTHON ?= python3
# rustup's folder, for shells that have not read its profile yet.
export PATH := $(PATH):$(HOME)/.cargo/bin

VENV := .venv
BIN := $(VENV)/bin
CORE := python/loadstone/_core.abi3.so
# What the native module is made from. Python sources are used in place and need no build.
RUST := $(shell find crates -name '*.rs' -o -name Cargo.toml) Cargo.toml Cargo.lock pyproject.toml
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes
# The binding has no Rust tests, and leaving it out keeps the others free of libpython.
CARGO_TESTS := --release --locked --workspace --exclude loadstone-python
# Python tests that run at once.
TEST_JOBS ?= 2
# Seconds of `make fuzz` for each target.
FUZZ_SECONDS ?= 60

.PHONY: help build demo test test-fast test-rust test-python test-minimal lint format fuzz bench bench-page wheel golden lock clean FORCE

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | \
		while IFS=$$'\t' read -r target text; do printf '  make %-12s %s\n' "$$target" "$$text"; done

build: $(VENV)/.built ## make the environment and the command .venv/bin/loadstone

demo: build ## the main job on a real trace, in about a minute once it is built (first some minutes); prints the path of its report
	@LOADSTONE=$(BIN)/loadstone examples/demo.sh

test: build $(VENV)/.dev ## install what the tests need, then run all of them
	@scripts/test-tools.sh
	@$(MAKE) test-rust test-python

test-rust: ## only the Rust tests; says which could not run here, and those of real traces are ignored without any
	@log=$$(mktemp); trap 'rm -f "$$log"' EXIT; \
	cargo test $(CARGO_TESTS) -- $(if $(wildcard ../shared/traces),--include-ignored) 2>&1 | tee "$$log"; \
	printf '%d tests ignored, %d skipped\n' \
		"$$(grep -c ' \.\.\. ignored' "$$log" || true)" "$$(grep -c '^skipped: ' "$$log" || true)"; \
	grep '^skipped: ' "$$log" | sort -u || true

test-python: build $(VENV)/.dev ## only the Python tests
	$(BIN)/python -m pytest -n $(TEST_JOBS) --dist loadfile --no-loadscope-reorder

test-fast: build $(VENV)/.dev ## the Python tests that are neither slow nor ask a package registry
	$(BIN)/python -m pytest -n $(TEST_JOBS) --dist loadfile --no-loadscope-reorder -m "not slow and not network"

lint: $(VENV)/.dev ## formatters and linters, warnings denied
	cargo fmt --all --check
	cargo clippy --release --locked --workspace --all-targets -- -D warnings
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

format: $(VENV)/.dev ## rewrite the sources as the formatters want them
	cargo fmt --all
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

fuzz: build ## fuzzing of every parser by coverage, and of numbers in valid files, FUZZ_SECONDS (60) each
	scripts/fuzz.sh $(FUZZ_SECONDS)
	$(BIN)/python scripts/fuzz_numbers.py $(FUZZ_SECONDS)

bench: build $(VENV)/.dev ## the measurements, beside their peers, into benches/results; parts that cannot run say so
	@for file in $(filter-out benches/page.py,$(wildcard benches/[a-z]*.py)); do echo "== $$file"; $(BIN)/python $$file; done

bench-page: $(VENV)/.dev ## the table of benches/README.md, from the latest results
	$(BIN)/python benches/page.py

wheel: $(VENV)/.env ## an installable abi3 wheel in dist/
	rm -f dist/loadstone-*.whl
	$(BIN)/maturin build --release --out dist

test-minimal: wheel ## the wheel without extras, in an environment of its own
	scripts/test-minimal.sh

golden: build ## rewrite the expected texts of tests/golden and the generated pages of docs/reference after a wanted change
	LOADSTONE_WRITE_GOLDEN=1 $(BIN)/python -m pytest -q -n 0 -m golden

lock: ## resolve the Python dependencies anew into requirements/*.lock (needs uv)
	scripts/lock.sh

clean: ## remove everything that was built
	rm -rf $(VENV) dist demo-out $(CORE) .pytest_cache .mypy_cache .ruff_cache .hypothesis
	cargo clean

$(VENV)/.env: requirements/runtime.lock requirements/build.lock
	@PYTHON=$(PYTHON) scripts/check-tools.sh
	$(PYTHON) -m venv $(VENV)
	$(PIP) -r requirements/runtime.lock -r requirements/build.lock
	@touch $@

$(VENV)/.dev: requirements/dev.lock $(VENV)/.env
	$(PIP) -r requirements/dev.lock
	@touch $@

$(VENV)/.built: $(VENV)/.env $(RUST) $(if $(wildcard $(CORE)),,FORCE)
	@PYTHON=$(PYTHON) scripts/check-tools.sh
	VIRTUAL_ENV=$(CURDIR)/$(VENV) $(BIN)/maturin develop --release
	@touch $@
