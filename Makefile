# Two commands are enough: `make demo` and `make test`. Each makes .venv first when it has to.

PYTHON      ?= python3
VENV        ?= .venv
CONSTRAINTS ?= constraints.txt# `make CONSTRAINTS= …` takes the newest versions that fit pyproject.toml
PIP_ARGS    ?=
RUN_DIR     ?= runs/demo
PYTEST_ARGS ?=
JOBS        ?= 2

BIN   := $(VENV)/bin
STAMP := $(VENV)/.installed

# One thread per process: several busy processes with several threads each slow one another down.
export OMP_NUM_THREADS ?= 1
export MKL_NUM_THREADS ?= 1
export TOKENIZERS_PARALLELISM ?= false
# glibc gives freed activations back to the kernel and faults them in again: a tenth of a CPU run.
export MALLOC_MMAP_THRESHOLD_ ?= 4000000000
export MALLOC_TRIM_THRESHOLD_ ?= 8000000000
# Nothing here may depend on a download of models or data.
export HF_HUB_OFFLINE ?= 1

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test check pytest test-alfworld docs clean

help: ## print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(STAMP): pyproject.toml $(CONSTRAINTS)
	@$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(0 if v >= (3, 11) else f"gtr-turbo needs Python 3.11 or newer, but $(PYTHON) is {v[0]}.{v[1]}.\n\nhint: make PYTHON=python3.11 …")'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install $(PIP_ARGS) $(if $(CONSTRAINTS),-c $(CONSTRAINTS)) -e ".[dev]"
	@touch $@

demo: $(STAMP) ## train the tiny agent with its merged teacher, on a CPU, in minutes
	@$(BIN)/gtr-turbo train --preset ezpoints-tiny --run-dir $(RUN_DIR) $(if $(wildcard $(RUN_DIR)/config.yaml),--resume)

check: $(STAMP) ## lint, format, types, layers, docs: everything but the tests
	@echo "== ruff check";          $(BIN)/ruff check .
	@echo "== ruff format --check"; $(BIN)/ruff format --check .
	@echo "== basedpyright";        $(BIN)/basedpyright
	@echo "== lint-imports";        $(BIN)/lint-imports
	@echo "== mkdocs build";        NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

pytest: $(STAMP) ## the tests alone
	@echo "== pytest"; $(BIN)/python -m pytest -n $(JOBS) --dist loadfile $(PYTEST_ARGS)

test: check ## check, then the tests
	@$(MAKE) --no-print-directory pytest

test-alfworld: ## the tests against ALFWorld's own engine, in an environment of their own (compiles, minutes)
	@test -x $(VENV)-alfworld/bin/python || $(PYTHON) -m venv $(VENV)-alfworld
	$(VENV)-alfworld/bin/python -m pip install $(PIP_ARGS) $(if $(CONSTRAINTS),-c $(CONSTRAINTS)) -e ".[dev,alfworld]"
	$(VENV)-alfworld/bin/python -m pytest -n $(JOBS) --dist loadfile tests/envs/alfworld

docs: $(STAMP) ## build the documentation into site/
	$(BIN)/mkdocs build --strict

clean: ## remove what was built; .venv and runs/ stay
	rm -rf build dist site .pytest_cache .ruff_cache .hypothesis .import_linter_cache .coverage htmlcov
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true
