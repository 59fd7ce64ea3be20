# Everything that is done with this project, by name. `make help` lists it.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-slow check format report constraints clean

help: ## list what can be made
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

setup: $(STAMP) ## make .venv and install the package with what its tests need

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "medgrape needs Python 3.11 or newer: make PYTHON=python3.11 ..." >&2; exit 2; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $(STAMP)

demo: $(STAMP) ## draw films, train on them, evaluate, read one
	$(BIN)/medgrape demo

test: $(STAMP) ## all tests that end within minutes
	$(BIN)/python -m pytest -m 'not slow' -n 2 --dist loadgroup

test-slow: $(STAMP) ## the tests that take longer
	$(BIN)/python -m pytest -m slow

check: $(STAMP) ## style, types, import contract, documents
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m pytest -q tests/test_documents.py -k "not tour"

format: $(STAMP) ## put the code into the one format
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

report: $(STAMP) ## docs/reproduced/report again, from the results beside it
	$(BIN)/medgrape reproduce report --out docs/reproduced

constraints: ## pin everything anew, all extras included
	$(PYTHON) tools/pin.py > constraints.new && mv constraints.new constraints.txt

clean: ## remove what was built, not what was drawn or trained
	rm -rf $(VENV) dist .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis .coverage
