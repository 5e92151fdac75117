# Two commands matter: `make demo` and `make test`. Each sets up everything it needs.
# The first that really runs (a version manager's stand-in may exist and not run) and can make an environment. The
# distribution's own comes first: it is built with profile-guided optimisation, which a version manager's seldom is.
PYTHON ?= $(shell for p in /usr/bin/python3.11 python3.11 python3.12 python3.13 python3; do \
  $$p -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && { echo $$p; break; }; done)
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
COMPILED := $(VENV)/.compiled
SOURCES := setup.py gateway/errors.py $(shell find gateway/wire gateway/core gateway/dataplane gateway/policy gateway/model -name '*.py')
PYTEST := $(BIN)/python -m pytest
# Three files at once on two cores: most tests wait for processes. In their order, so that the long ones begin first.
SIDE_BY_SIDE ?= -n 3 --dist loadfile --no-loadscope-reorder
FILE ?= tests/data/stat_vectors.json

.PHONY: help demo test test-all coverage compile interpreted lint vectors sim bench schema docs lock clean

help: ## Show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  %-10s %s\n", $$1, $$2}'

$(STAMP): pyproject.toml
	@test -n "$(PYTHON)" || { echo "Quantgate needs Python 3.11 or newer; set PYTHON=..."; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Installing into $(VENV) (a minute or two the first time)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev,demo]' 2>$(VENV)/install.log \
	  || { cat $(VENV)/install.log; exit 1; }
	@touch $@

# In place, with the machine's C compiler. Without one everything runs interpreted, at about twice the processor time.
$(COMPILED): $(STAMP) $(SOURCES)
	@if command -v $${CC:-cc} >/dev/null 2>&1 && $(BIN)/python -c "import sys, sysconfig; from pathlib import Path; sys.exit(not Path(sysconfig.get_path('include'), 'Python.h').exists())"; then \
	  echo "Compiling the request path (a minute)"; \
	  QUANTGATE_COMPILE=1 $(BIN)/python setup.py build_ext --inplace >$(VENV)/compile.log 2>&1 \
	    || { tail -n 40 $(VENV)/compile.log; exit 1; }; \
	else \
	  echo "No C compiler, or no Python headers (Debian: gcc python3-dev): the request path runs interpreted"; \
	  $(MAKE) --no-print-directory interpreted; \
	fi
	@touch $@

compile: $(COMPILED) ## The request path as machine code, in place

interpreted: ## Take the compiled modules away: what runs is the source as it stands
	@find gateway -name '*.so' -delete
	@rm -f $(COMPILED)

demo: $(COMPILED) ## Three real llama.cpp pools, the gateway, a mixed workload, a report, a rollout live
	$(BIN)/quantgate demo $(DEMO_ARGS)

test: $(COMPILED) ## Lint, types, layers and every test that fits into 15 minutes
	@deploy/test-packages.sh
	$(MAKE) --no-print-directory lint
	$(PYTEST) -m "not slow" $(SIDE_BY_SIDE) -o faulthandler_timeout=180 --durations=10

test-all: $(STAMP) interpreted ## Everything, interpreted, with the long ones (simulation, soak, older clients, vLLM)
	@deploy/test-packages.sh
	$(MAKE) --no-print-directory lint
	$(PYTEST) $(SIDE_BY_SIDE) --cov --cov-report=term:skip-covered --durations=25

coverage: $(STAMP) interpreted ## Which lines the fast tests reach
	$(PYTEST) -m "not slow" tests/unit --cov --cov-report=term-missing:skip-covered --cov-report=html

lint: $(STAMP) ## ruff, mypy --strict, import-linter
	$(BIN)/ruff check gateway tests benchmarks
	$(BIN)/ruff format --check gateway tests benchmarks
	$(BIN)/mypy --strict gateway benchmarks
	$(BIN)/lint-imports

vectors: $(STAMP) ## The judge against a file of vectors: make vectors FILE=...
	$(BIN)/quantgate vectors $(FILE)

sim: $(STAMP) ## The judge's promises by simulation, through the engine itself (about 20 minutes)
	$(BIN)/python -m benchmarks.judge_sim

bench: $(COMPILED) ## Speed beside nginx and, where installed, the Rust routers
	$(BIN)/python -m benchmarks.compare $(BENCH_ARGS)

schema: $(STAMP) ## Write the policy's JSON schema for editors
	$(BIN)/python -c "from pathlib import Path; from gateway.policy.findings import schema_text; Path('gateway/policy/schema.json').write_text(schema_text())"

docs: $(STAMP) ## Write the page that is made from a running gateway
	$(BIN)/python -m tests.deploy.metrics_page

lock: ## Lock the image's dependencies from a fresh environment
	deploy/lock.sh

clean: ## Remove what the commands above made
	@find gateway -name '*.so' -delete
	rm -rf $(VENV) gateway/compiled.json .cache .coverage .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache build *.egg-info
