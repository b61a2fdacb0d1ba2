# Everything a person or CI does with the project. `make` alone lists it.

PYTHON ?= python3
PIP := .venv/bin/python -m pip --disable-pip-version-check -qq
CODE := $(wildcard proto libs services tests benchmarks)

.DEFAULT_GOAL := help
.PHONY: help .venv demo test test-containers fuzz crash lint types bench trace swarm model failover study study-spares schemas users constraints clean

help: ## list these targets
	@awk -F ':.*## ' '/^[-.a-z]+:.*## / { printf "make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.venv: .venv/.installed ## install the project and its pinned tools into .venv

.venv/bin/python:
	@echo ".venv: creating with $$($(PYTHON) --version)"
	@$(PYTHON) -m venv .venv || { echo ".venv: Debian splits venv off: apt-get install python3-venv" >&2; exit 1; }

.venv/.pinned: constraints.txt | .venv/bin/python
	@echo ".venv: installing $$(grep -c '==' constraints.txt) pinned packages (about a minute when new)"
	@$(PIP) install --require-hashes -r constraints.txt
	@touch $@

.venv/.installed: pyproject.toml .venv/.pinned
	@echo ".venv: installing rackwright, editable"
	@$(PIP) install --no-deps --no-build-isolation -e .
	@touch $@

demo: .venv ## run a small cell with real processes on this machine
	.venv/bin/rackwright demo

test: .venv ## run all tests in two processes, then those in containers if there is an engine; the report goes to build/junit.xml
	@mkdir -p build
	@apart=; if .venv/bin/python -m tests.support.engine; then apart=--ignore=tests/e2e; fi; set -ex; \
	.venv/bin/python -m pytest -n 2 --dist loadscope --no-loadscope-reorder --junitxml=build/junit.xml $$apart; \
	if [ -n "$$apart" ]; then .venv/bin/python -m tests.e2e; fi

test-containers: .venv ## run the tests that need a Docker engine, three cells side by side; builds the image
	@mkdir -p build
	RACKWRIGHT_REQUIRE_DOCKER=1 .venv/bin/python -m tests.e2e $(ARGS)

fuzz: .venv ## fuzz every reader of foreign bytes: make fuzz SECONDS=60
	@for target in $$(.venv/bin/python -m tests.fuzz --list); do \
		.venv/bin/python -m tests.fuzz $$target --seconds $(or $(SECONDS),60) || exit 1; done

lint: .venv ## check style, format and the direction of imports
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/lint-imports --no-logo

types: .venv ## check types strictly
	.venv/bin/mypy $(CODE)

bench: .venv ## measure, beside the disk's own fsync time
	.venv/bin/python -m benchmarks $(ARGS)

trace: .venv ## run recorded workloads through a live cell: make trace TRACE_DIR=directory
	TRACE_DIR="$(TRACE_DIR)" .venv/bin/python -m benchmarks.trace $(ARGS)

study: .venv ## compare policies in simulation; goes on where it was stopped: make study ARGS="--minutes 60"
	.venv/bin/python -m benchmarks.study $(ARGS)

study-spares: .venv ## compare where spares are kept and lent: make study-spares ARGS="--seeds 10"
	.venv/bin/python -m benchmarks.study.spares $(ARGS)

swarm: .venv ## play simulated cells with faults: make swarm SEEDS=10000 SEED_START=0
	.venv/bin/python -m tests.simulation.swarm --seeds $(or $(SEEDS),1000) --start $(or $(SEED_START),0) $(ARGS)

model: .venv ## explore the fencing protocol with the real machines: make model ARGS="--most 1000000"
	.venv/bin/python -m tests.simulation.fencing $(ARGS)

crash: .venv ## kill and pause every process of a live cell: make crash COUNT=200 SEED=1
	@.venv/bin/python -m tests.integration.crash --count $(or $(COUNT),200) --seed $(or $(SEED),1)

failover: .venv ## measure how long appends wait when three servers lose their leader; needs root
	.venv/bin/python -m tests.integration.cluster $(ARGS)

schemas: .venv ## write the JSON Schemas of the wire and the tables of the settings anew
	.venv/bin/python -m rackwright.wire.schema
	.venv/bin/python -m rackwright.wire.knobs

users: .venv ## write the users of the bus in deploy/nats anew
	.venv/bin/python -m rackwright.bus.serverconfig

# Universal: one file serves Python 3.11 to 3.13 on each platform. The extra nkeys stays out: it has
# no wheel, and building one would fetch tools that no hash here covers.
PINNED := -c constraints.txt --universal --python-version 3.11 --generate-hashes --no-annotate \
	--no-header --no-emit-index-url --quiet

constraints: ## pin every dependency anew, with hashes
	@echo "constraints: resolving"
	@$(PYTHON) -m venv build/resolver
	@build/resolver/bin/python -m pip install --disable-pip-version-check -qq uv
	@build/resolver/bin/uv pip compile pyproject.toml --extra dev --universal --python-version 3.11 \
		--upgrade --generate-hashes --no-annotate --no-header --no-emit-index-url --quiet \
		--output-file constraints.txt
	@build/resolver/bin/uv pip compile pyproject.toml --extra embedded --extra otlp --extra nvml $(PINNED) \
		--output-file deploy/requirements.txt
	@echo 'hatchling>=1.25' | build/resolver/bin/uv pip compile - $(PINNED) \
		--output-file deploy/requirements-build.txt
	@echo "constraints: $$(grep -c '==' constraints.txt) packages pinned"

clean: ## remove what the other targets made
	rm -rf .venv build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
