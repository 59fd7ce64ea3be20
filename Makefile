# Everything that is done with this project, by name. `make help` lists it.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DEMO_STAMP := $(VENV)/.installed-demo
STAMP := $(VENV)/.installed
PAGE := src/medgrape/server/page/index.html
NODE_MODULES := ui/node_modules/.package-lock.json
NPM := cd ui && PATH="$(abspath $(BIN)):$$PATH" npm

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-ui test-unit test-integration test-browser test-slow check format ui ui-dev ui-types bench docs docs-serve pictures report constraints lint-docker release-check clean

help: ## list what can be made
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

setup: $(STAMP) ## make .venv and install the package with all that its tests and documents need

# The demo installs what it needs and no more; the tests add the rest to the same .venv. Python compiles what is imported
# when it is first imported: compiling every module of every package takes longer and 260 MB.
$(DEMO_STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "medgrape needs Python 3.11 or newer: make PYTHON=python3.11 ..." >&2; exit 2; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt -e '.[demo]'
	@touch $(DEMO_STAMP)

$(STAMP): $(DEMO_STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt -e '.[dev]'
	@touch $(STAMP)

ui: $(PAGE) ## build the page again, where its sources changed

# The package's own build makes the page too (hatch_build.py); this is for whoever works on it.
$(PAGE): $(shell find ui/src ui/public ui/index.html ui/vite.config.ts) $(NODE_MODULES) | $(STAMP)
	$(NPM) run --silent build

$(NODE_MODULES): ui/package-lock.json | $(STAMP)
	$(NPM) install --no-save --ignore-scripts --no-audit --no-fund

ui-dev: $(NODE_MODULES) ## the page with hot reload, before a server at MEDGRAPE_SERVER (http://127.0.0.1:8000)
	$(NPM) run dev

ui-types: $(STAMP) ## describe the server anew for the page's types
	$(BIN)/python tools/openapi.py

# Installing has built the page (hatch_build.py), without Node.js in .venv; `make ui` builds it after a change.
demo: $(DEMO_STAMP) ## draw films, train on them, evaluate, open the reading room
	$(BIN)/medgrape demo

# One thread to a process: two test processes that each want all cores mostly wait for each other.
PYTEST = OMP_NUM_THREADS=1 $(BIN)/python -m pytest -m 'not slow' -n 2 --dist loadgroup --durations=15
INTEGRATION := $(addprefix tests/,bulk cli documents hospital/pacs paper server sklearn tools)
BROWSER := tests/page

test: test-ui test-unit test-integration test-browser ## all tests that end within minutes

test-ui: $(STAMP) $(NODE_MODULES) ## tests of the page's own code
	$(NPM) test

test-unit: $(STAMP) ## tests of the package, without servers and whole commands
	$(PYTEST) $(addprefix --ignore=,$(INTEGRATION) $(BROWSER))

test-integration: $(STAMP) $(PAGE) ## tests of commands, servers, documents and many processes
	$(PYTEST) $(INTEGRATION)

test-browser: $(STAMP) $(PAGE) ## tests of the page in a real browser
	$(PYTEST) $(BROWSER)

test-slow: $(STAMP) $(PAGE) ## the tests that take longer
	$(BIN)/python -m pytest -m slow

check: $(STAMP) $(NODE_MODULES) ## style, types, import contract, documents
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(NPM) run --silent check
	$(BIN)/python -m pytest -q tests/test_documents.py tests/documents/test_fences.py tests/documents/test_typed_commands.py

format: $(STAMP) $(NODE_MODULES) ## put the code into the one format
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
	$(NPM) run --silent format

# For one suite, or options: make bench ARGS="head --compare speed.json". ARGS=--help lists all.
ARGS ?= all
bench: $(STAMP) ## speed against named alternatives: benchmarks/ (docs/explanation/speed.md)
	$(BIN)/python -m benchmarks $(ARGS)

# Material announces another program in a box of its own while MkDocs builds; that is no news here.
docs: $(STAMP) ## these pages as a site in site/, notebooks run, warnings taken for errors
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

docs-serve: $(STAMP) ## the site at http://127.0.0.1:8001, built again whenever a page changes; notebooks as they are
	MEDGRAPE_RUN_NOTEBOOKS=false NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs serve --dev-addr 127.0.0.1:8001

pictures: $(STAMP) $(PAGE) ## the page's pictures in docs/pictures again, from demo/ (make demo)
	$(BIN)/python -m tools.screenshots

report: $(STAMP) ## docs/reproduced/report again, from the results beside it
	$(BIN)/medgrape reproduce report --out docs/reproduced

constraints: ## pin everything anew, all extras included
	$(PYTHON) tools/pin.py > constraints.new && mv constraints.new constraints.txt

lint-docker: $(STAMP) ## Dockerfile and compose.yaml, by their linters
	$(BIN)/hadolint --failure-threshold style Dockerfile
	$(BIN)/check-jsonschema --builtin-schema vendor.compose-spec compose.yaml

# RELEASE=1: this very commit is to be released. OFFLINE=1: end well although no service for known weaknesses answers.
release-check: $(STAMP) ## build, install and try what is committed; licences, bill of materials, known weaknesses -> dist/
	$(BIN)/python tools/release_check.py $(if $(RELEASE),--release) $(if $(OFFLINE),--allow-offline-audit)

clean: ## remove what was built, not what was drawn or trained
	rm -rf $(VENV) ui/node_modules $(dir $(PAGE)) dist dist-refused site .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis .coverage
