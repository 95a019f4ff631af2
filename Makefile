# Everything a developer does here. Each target makes the virtual environment it needs, when it is missing or stale.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/installed
# Test processes at once. Many tests train on several ranks: more than the cores only makes them slower.
WORKERS ?= 2
# Arguments for the tool behind a target: make test ARGS='tests/unit -k lease'
ARGS ?=
# Only a whole run is written into the page: with ARGS, which make it another one, its table is printed and no more.
TABLE = $(if $(ARGS),,--table docs/reliability.md)
DASHBOARD := $(BIN)/python -m api.web.build

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help install demo up dashboard test faults sequences chaos check audit format bench dist clean

# An environment whose interpreter is gone (the system's Python was upgraded) is as good as none.
ifneq ($(wildcard $(STAMP)),)
ifneq ($(shell $(BIN)/python -c 'print("runs")' 2>/dev/null),runs)
$(shell rm -f $(STAMP))
endif
endif

help: ## Say what there is
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-9s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

install: $(STAMP) ## Make the virtual environment (the other targets do it when needed)

demo: $(STAMP) ## Run the whole service here and train one real two-rank job through it
	@$(DASHBOARD) --node-optional
	$(BIN)/rankzero demo $(ARGS)

up: $(STAMP) ## Run the embedded service until Ctrl-C
	@$(DASHBOARD) --node-optional
	$(BIN)/rankzero up $(ARGS)

dashboard: $(STAMP) ## Build the dashboard, unless it is built already (the other targets do it when needed)
	@$(DASHBOARD)

test: $(STAMP) ## Run all tests; they start their own PostgreSQL and Valkey servers
	@$(DASHBOARD)
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile $(ARGS)

faults: $(STAMP) ## Strike with every fault, 20 times each, and write the table of docs/reliability.md
	$(BIN)/python -m pytest tests/faults/test_races.py tests/faults/test_matrix.py -v -n 5 --dist load \
	  --instants 20 --hold-scale 1 --races 1000 $(TABLE) $(ARGS)

sequences: $(STAMP) ## Play 5,000 sequences of calls on each database, for the same table
	$(BIN)/python -m pytest tests/faults/test_sequences.py -v -n 2 --sequences 5000 $(TABLE) $(ARGS)

chaos: $(STAMP) ## Run 1,000 jobs while all faults strike at random, for the same table
	$(BIN)/python -m pytest tests/faults/test_chaos.py -v --chaos 1000 --hold-scale 1 $(TABLE) $(ARGS)

check: $(STAMP) ## Lint, formatting, types, import directions; the dashboard's too, its tests and its size
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(DASHBOARD) --check

audit: $(STAMP) ## Look what is installed up among known vulnerabilities, where their database answers
	.ci/audit $(BIN)

format: $(STAMP) ## Put the code into the form that check asks for
	$(BIN)/ruff check --fix
	$(BIN)/ruff format
	$(DASHBOARD) --format

bench: $(STAMP) ## Measure latencies, step times, images per second and memory
	$(BIN)/python -m benchmarks $(ARGS)

dist: $(STAMP) ## Make the wheel, with the dashboard in it
	@$(DASHBOARD)
	rm -rf build dist # setuptools would put what it has left there into the wheel
	$(BIN)/python -m pip wheel --disable-pip-version-check --no-deps --wheel-dir dist .

clean: ## Remove the virtual environment and everything that was built
	rm -rf $(VENV) api/static api/.static-new api/.static-old api/web/node_modules
	rm -f api/web/openapi.json api/web/src/api/schema.d.ts
	rm -rf build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -not -path './.git/*' -prune -exec rm -rf {} +

$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "RankZero needs Python 3.11 or newer, but '$(PYTHON)' is: $$($(PYTHON) --version 2>/dev/null || echo missing)." >&2; \
	  echo "Name another one: make PYTHON=/path/to/python3.11" >&2; exit 1; }
	@echo "Installing into $(VENV): PyTorch is large, so the first time takes several minutes."
	@$(BIN)/python -c '' 2>/dev/null || $(PYTHON) -m venv --clear $(VENV)
	$(BIN)/python -m pip install --disable-pip-version-check --editable '.[all,dev]'
	@touch $@
