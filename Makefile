# Commands for development. `make help` lists it.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DEMO_STAMP := $(VENV)/.installed-demo
STAMP := $(VENV)/.installed
PAGE := src/medgrape/server/page/index.html
NODE_MODULES := ui/node_modules/.package-lock.json
NPM := cd ui && PATH="$(abspath $(BIN)):$$PATH" npm

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-ui test-slow check format ui ui-dev ui-types bench docs docs-serve pictures report constraints lint-docker release-check clean

help: ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

setup: $(STAMP) ## create .venv and install the package with all dependencies of tests and documents

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

ui: $(PAGE) ## build the page if its sources changed

# Building the package builds the page, too (hatch_build.py); this target is for work on the page.
$(PAGE): $(shell find ui/src ui/public ui/index.html ui/vite.config.ts) $(NODE_MODULES) | $(STAMP)
	$(NPM) run --silent build

$(NODE_MODULES): ui/package-lock.json | $(STAMP)
	$(NPM) install --no-save --ignore-scripts --no-audit --no-fund

ui-dev: $(NODE_MODULES) ## serve the page with hot reload, for a server at MEDGRAPE_SERVER (http://127.0.0.1:8000)
	$(NPM) run dev

ui-types: $(STAMP) ## update ui/openapi.json, from which the types of the page are generated
	$(BIN)/python tools/openapi.py

# Installation builds the page (hatch_build.py), without Node.js in .venv; `make ui` builds it after a change.
demo: $(DEMO_STAMP) ## draw films, train on them, evaluate, open the reading room
	$(BIN)/medgrape demo

# One thread per process: two test processes that both use all cores slow each other down.
test: test-ui $(STAMP) $(PAGE) ## all tests except the slow ones: the package, then commands and servers, then the page in a browser
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -m 'not slow' -n 2 --dist loadgroup --durations=15

test-ui: $(STAMP) $(NODE_MODULES) ## unit tests of the page
	$(NPM) test

test-slow: $(STAMP) $(PAGE) ## the slow tests
	$(BIN)/python -m pytest -m slow

check: $(STAMP) $(NODE_MODULES) ## check style, types, import contracts and documents
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(NPM) run --silent check
	$(BIN)/python -m pytest -q tests/test_documents.py tests/documents/test_fences.py tests/documents/test_typed_commands.py

format: $(STAMP) $(NODE_MODULES) ## format the code
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
	$(NPM) run --silent format

# One suite, or options: make bench ARGS="head --compare speed.json". ARGS=--help lists all.
ARGS ?= all
bench: $(STAMP) ## run the benchmarks (docs/explanation/speed.md)
	$(BIN)/python -m benchmarks $(ARGS)

# NO_MKDOCS_2_WARNING hides an advertisement of the theme.
docs: $(STAMP) ## build the documents in site/, with notebooks run; warnings are errors
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

docs-serve: $(STAMP) ## serve the documents at http://127.0.0.1:8001 with hot reload; notebooks are not run
	MEDGRAPE_RUN_NOTEBOOKS=false NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs serve --dev-addr 127.0.0.1:8001

pictures: $(STAMP) $(PAGE) ## take the screenshots in docs/pictures again, from demo/ (make demo)
	$(BIN)/python -m tools.screenshots

report: $(STAMP) ## write docs/reproduced/report again, from the results beside it
	$(BIN)/medgrape reproduce report --out docs/reproduced

constraints: ## pin all dependencies again, with all extras
	$(PYTHON) tools/pin.py > constraints.new && mv constraints.new constraints.txt

lint-docker: $(STAMP) ## lint Dockerfile and compose.yaml
	$(BIN)/hadolint --failure-threshold style Dockerfile
	$(BIN)/check-jsonschema --builtin-schema vendor.compose-spec compose.yaml

# RELEASE=1: the present commit will be released. OFFLINE=1: pass even if no vulnerability service answers.
release-check: $(STAMP) ## build, install and try the committed sources; licences, SBOM, vulnerabilities -> dist/
	$(BIN)/python tools/release_check.py $(if $(RELEASE),--release) $(if $(OFFLINE),--allow-offline-audit)

clean: ## remove build results, but no films and runs
	rm -rf $(VENV) ui/node_modules $(dir $(PAGE)) dist dist-refused site .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis .coverage
