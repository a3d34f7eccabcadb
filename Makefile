# Remit: every task of the repository. `make` alone lists them.
#
# Needed: Python 3.11 or newer with venv, a network on the first call. Apache Kafka (tests, BROKER=kafka) needs Java 17
# and Maven; without them the embedded broker takes its place and the tests say so.

SHELL := /bin/bash
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

PYTHON ?= $(shell for p in python3.11 python3.12 python3.13 python3 python; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { command -v $$p; break; }; done)
UV_VERSION ?= 0.13.9
UV := .tools/uv/bin/uv
export UV_PYTHON_DOWNLOADS := never
BIN := .venv/bin
# One more than cores: a worker waits for processes and servers much of the time.
WORKERS ?= $(shell echo $$(( $$(nproc 2>/dev/null || echo 2) + 1 )))
# A Docker engine with stand-in images, for machines that cannot pull any; used where it is there.
REMIT_LAB ?= ../shared/lab
PYTEST := $(BIN)/pytest -n $(WORKERS) --dist loadgroup
FAST := not long and not compose and not chaos
COMPOSE := docker compose --project-name remit --env-file deploy/.env --file deploy/compose.yaml

##@ Start here
.PHONY: help setup demo test check
help: ## List the targets
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n%s\n", substr($$0, 5)} /^[a-z-]+:.*## / {printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: .venv/.complete ## Fetch uv and install everything into .venv

$(UV):
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed; name it with PYTHON=…" >&2; exit 1; }
	@mkdir -p .tools
	@$(PYTHON) -m venv .tools/uv
	@.tools/uv/bin/python -m pip --quiet --disable-pip-version-check install "uv==$(UV_VERSION)"

.venv/.complete: uv.lock pyproject.toml $(wildcard */*/pyproject.toml) | $(UV)
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed; name it with PYTHON=…" >&2; exit 1; }
	$(UV) sync --locked --quiet --python "$(PYTHON)"
	@touch $@

demo: setup ## Play one conversation on this machine, then chat (ONCE=1: stop after it; BROKER=kafka; RESET=1)
	@$(BIN)/remit demo $(if $(ONCE),--once) $(if $(BROKER),--broker $(BROKER)) $(if $(RESET),--reset)

test: setup ## Run the tests; starts and stops PostgreSQL and the broker (ARGS="-k name")
	$(PYTEST) -m "$(FAST)" $(ARGS)

check: setup ## Style, types, imports between packages, generated schemas, requirement list
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python tools/typecheck.py
	$(BIN)/lint-imports
	$(BIN)/python -m remit_contracts.schemas --check
	$(BIN)/python tools/requirements.py --check

##@ More tests and figures
.PHONY: bench conformance fuzz chaos mutants test-long test-compose requirements schemas
bench: setup ## Measure against the limits, print the ratios, write build/bench.json
	$(BIN)/python tests/benchmarks

conformance: setup ## Play the DataHandler suite (SUITE=folder MODES=Modify; REMIT_CONFORMANCE=where it lies)
	$(BIN)/pytest -n $(WORKERS) services/content-store/tests/conformance $(ARGS)

fuzz: setup ## Random calls under random scopes (CALLS=10000 SEED=1; a random seed is printed)
	$(BIN)/python services/content-store/tests/scope/fuzz $(if $(CALLS),--calls $(CALLS)) $(if $(SEED),--seed $(SEED))

chaos: setup ## Kill processes, cut connections (LONG=1: all of it)
	$(BIN)/pytest -m "chaos$(if $(LONG),, and not long)" tests $(ARGS)

mutants: setup ## Which test kills which mutant of the scope's rules; writes docs/mutants.md
	$(BIN)/python services/content-store/tests/scope/mutants $(ARGS)

test-long: setup ## The tests that take long as well
	$(PYTEST) -m "not compose" $(ARGS)

test-compose: setup ## The demo's story against the containers (needs a Docker engine, else it is skipped aloud)
	@if [ -f "$(REMIT_LAB)/docker-lab" ]; then eval "$$(bash "$(REMIT_LAB)/docker-lab" up)"; fi; \
	$(BIN)/pytest -m compose tests/compose $(ARGS)

requirements: setup ## Which requirement has a test; writes the column in docs/requirements.md
	@$(BIN)/python tools/requirements.py

schemas: setup ## Generate the JSON Schemas of libs/contracts again
	$(BIN)/python -m remit_contracts.schemas

##@ Containers
.PHONY: up down logs
up: setup ## Start everything with docker compose (EXPOSE=1 also publishes Kafka and the other APIs on 127.0.0.1)
	@$(BIN)/python tools/compose.py up

down: setup ## Stop the containers (VOLUMES=1 also deletes their data)
	@$(BIN)/python tools/compose.py down

logs: ## Follow the containers' logs
	@$(COMPOSE) logs --follow --tail 100

##@ Housekeeping
.PHONY: format clean
format: setup ## Write the style ruff wants
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean: ## Delete the environment and caches; kept demo data stays (remit reset)
	rm -rf .venv .tools .mypy_cache .ruff_cache .pytest_cache .hypothesis build
