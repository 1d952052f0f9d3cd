# Everything happens in .venv, made here; any Python >= 3.11 with venv will do (make PYTHON=python3.12 ...).
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt
export MPLBACKEND ?= Agg

.PHONY: run test test-all check bench accuracy docs lock clean help

help: ## this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## / — /'

run: $(VENV)/.installed ## reproduce the paper's tables: tables, figures and nnbm-reproduce/report.html
	$(BIN)/nnbm reproduce

test: $(VENV)/.developer ## the whole test suite but for the slow ones
	$(BIN)/python -m pytest -n auto

test-all: $(VENV)/.developer ## with the slow ones
	$(BIN)/python -m pytest -n auto -m ""

check: $(VENV)/.developer ## style, types, layering, dependencies, documentation
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/deptry .
	$(MAKE) --no-print-directory docs

bench: $(VENV)/.developer ## speed and accuracy beside the peers, one run: a table and benchmarks/results.json
	$(BIN)/python -m benchmarks

accuracy: $(VENV)/.developer ## every inference method against long runs and exact trees: a table and a figure (5 minutes)
	$(BIN)/python -m benchmarks.accuracy

docs: $(VENV)/.developer ## build the documentation into docs/_build/html, warnings are errors
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "nnbm needs Python 3.11 or newer, and $(PYTHON) is older: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: $(VENV)/bin/python pyproject.toml constraints.txt
	$(PIP) --editable .
	@touch $@

$(VENV)/.developer: $(VENV)/.installed
	$(PIP) $$($(BIN)/python scripts/dependency_groups.py test check docs)
	@touch $@

lock: $(VENV)/.developer ## write constraints.txt from what is installed
	$(BIN)/python -m pip freeze --exclude-editable | grep -E "^[A-Za-z0-9._-]+==[^ ]+$$" > constraints.txt

clean: ## remove the virtual environment and everything built
	rm -rf $(VENV) docs/_build docs/examples .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
