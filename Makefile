# planwave: `make help` lists what there is. Everything lives in .venv; nothing is installed outside.
GOAL ?= Compare three ways to store time series data and recommend one
# The first of these that runs and is new enough; a shim may be there without its Python.
PYTHON ?= $(shell for p in python3 python3.11 python3.12 python3.13; do \
  "$$p" -c 'import sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { command -v "$$p"; break; }; done)
VENV := .venv
BIN := $(VENV)/bin
# `make LOCKED=1 …` installs exactly the files of requirements.lock, by their hashes; CI does.
LOCKED ?=
# How many times each fault of `make test-scale` happens.
SCALE_FAULTS ?= 3
# Without the build hook: the targets below build the web UI where they need it, and show npm's output.
PIP := HATCH_BUILD_NO_HOOKS=true $(BIN)/python -m pip install --quiet --disable-pip-version-check $(if $(LOCKED),,-c constraints.txt)
PYTEST := $(BIN)/python -m pytest
# Browser tests share one Chromium: they are one group, and a group runs in one process, which mostly waits.
PARALLEL := -n 3 --dist loadgroup
# Container images often set it; each of the many processes of a test run would compile every module.
unexport PYTHONDONTWRITEBYTECODE
# Without Node it says in a sentence what it leaves out.
WEB := $(BIN)/python tools/web.py --optional

.DEFAULT_GOAL := help
.PHONY: help run serve web test test-slow test-scale screenshots check cover bench docs docs-serve generate lock dist clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# Whatever the goal holds ($, ", `) is for the model, neither for make nor for the shell.
run: export ASKED := $(value GOAL)
run: $(VENV)/.run ## Plan GOAL="…", show the plan, run it, print the result
	@$(BIN)/planwave run "$$ASKED" --no-questions $(ARGS)

serve: $(VENV)/.run ## Serve the web UI and the HTTP API on 127.0.0.1:8000; ARGS="--port 9000 --open"
	@$(WEB) build
	@exec $(BIN)/planwave serve $(ARGS)

web: $(VENV)/bin/python ## Build the web UI, which needs Node 20.19 or newer
	@$(BIN)/python tools/web.py build

test: $(VENV)/.dev ## Run the tests: parallel, random order, no key, no network but loopback (about twenty minutes on two cores)
	@$(WEB) build
	@$(WEB) test
	@$(PYTEST) $(PARALLEL) -m "not slow and not scale" $(ARGS)

test-slow: $(VENV)/.dev ## Run the slow tests: all examples of properties, the real embedded model, long loops
	@$(PYTEST) $(PARALLEL) -m "hypothesis and not slow and not scale" --hypothesis-profile thorough $(ARGS) || test $$? = 5
	@$(PYTEST) -m slow --timeout 900 $(ARGS)

test-scale: $(VENV)/.dev ## Run the fault matrix of several processes on one database; SCALE_FAULTS=20 faults of each kind, SCALE_PARKED=10000
	@SCALE_FAULTS=$(SCALE_FAULTS) $(PYTEST) -n 2 --dist worksteal -m scale --timeout 1800 $(ARGS)

screenshots: $(VENV)/.dev ## Write pictures of the web UI into ./screenshots
	@$(BIN)/python tools/web.py build
	@SCREENSHOTS=screenshots $(PYTEST) -q tests/e2e/web $(ARGS)

check: $(VENV)/.dev ## Lint, format, types, import layers, size limits, docstrings, of Python and of the web UI; the site
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/pyright
	@$(BIN)/lint-imports --no-logo
	@$(BIN)/python tools/check_size_limits.py
	@$(BIN)/python tools/check_docstrings.py
	@$(BIN)/python tools/count_modules.py
	@$(BIN)/python tools/check_typing.py
	@$(BIN)/python tools/docs_site.py --optional
	@$(WEB) check

cover: $(VENV)/.dev ## Fail unless every branch of graph and of the scheduling kernel is tested
	@$(PYTEST) $(PARALLEL) -q -m "not slow and not scale" tests/unit/graph tests/unit/executor tests/contract/engine \
	  --cov planwave --cov-branch --cov-report= --cov-config pyproject.toml
	@$(BIN)/coverage report --show-missing --fail-under 100 --include \
	  'planwave/graph/*,planwave/executor/scheduling/*'

bench: $(VENV)/.dev ## Measure beside raw asyncio and peers; ratios of one run, JSON under bench/results
	@$(BIN)/python bench/run.py $(ARGS)

docs: $(VENV)/.dev ## Build the site of the documentation into ./build/site; fails at any warning
	@$(BIN)/python tools/docs_site.py

docs-serve: docs ## Show the site on http://127.0.0.1:8001/
	@$(BIN)/python -m http.server --bind 127.0.0.1 --directory build/site 8001

generate: $(VENV)/.dev ## Write what is made from code: tables and pages of docs, types of the web UI, the blocking client
	@$(BIN)/python tools/gen_config_tables.py
	@$(BIN)/python tools/gen_node_docs.py
	@$(BIN)/python tools/gen_llms_txt.py
	@$(BIN)/python tools/gen_web_types.py
	@$(BIN)/python tools/unasync.py

lock: $(VENV)/bin/python ## Write the lock files with the hashes of all dependencies; needs uv
	@$(BIN)/python tools/lock.py

dist: $(VENV)/.dev ## Build wheel and source distribution into ./dist, check that they carry the web UI, and list their parts (SBOM)
	@rm -rf dist
	@$(BIN)/python -m hatchling build --target sdist --target wheel
	@$(BIN)/python tools/check_dist.py dist/*
	@$(BIN)/cyclonedx-py requirements requirements-image.lock --pyproject pyproject.toml \
	  --output-reproducible --output-file dist/planwave.cdx.json

clean: ## Remove the environment and everything made by tools; keeps ./storage
	@rm -rf $(VENV) build dist planwave/api/web web/node_modules screenshots .pytest_cache .ruff_cache .hypothesis .import_linter_cache .cache .coverage
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/bin/python:
	@test -n "$(PYTHON)" || { echo "planwave needs Python 3.11 or newer with venv (on Debian: python3 and python3-venv); or make PYTHON=/path/to/python3.11 $(MAKECMDGOALS)"; exit 2; }
	@echo "Creating $(VENV) with $(PYTHON) …"
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.run: pyproject.toml constraints.txt | $(VENV)/bin/python
	@echo "Installing planwave (once, a minute or so) …"
	@$(PIP) -e '.[local,mcp]'
	@touch $@

$(VENV)/.dev: pyproject.toml constraints.txt requirements.lock | $(VENV)/bin/python
	@echo "Installing planwave and its test tools (once) …"
	@$(if $(LOCKED),$(PIP) --require-hashes -r requirements.lock && $(PIP) --no-deps --no-build-isolation -e .,$(PIP) -e '.[local,dev,docs]')
	@touch $@ $(VENV)/.run
