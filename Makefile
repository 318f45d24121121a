# Everything a person types. `make help` lists it.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: help run test check bench ui clean
.DEFAULT_GOAL := help

help: ## list these commands
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 10

run: $(VENV)/installed ## install, climb the quick ladder, print the leaderboard
	$(BIN)/rungs run quick

ui: $(VENV)/installed ## open the MLflow UI over the results, on this machine only
	$(BIN)/rungs ui

test: $(VENV)/installed-dev ## install what tests need and run them
	$(BIN)/python -m pytest

check: $(VENV)/installed-dev ## lint, types, import rules
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(VENV)/installed-dev ## measure side by side (ratios from one run)
	$(BIN)/python -m bench

clean: ## remove the virtual environment; results in .rungs/ stay
	rm -rf $(VENV)

$(VENV)/installed: requirements.lock pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Rungs needs Python 3.11 or newer: make run PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --disable-pip-version-check -q -r requirements.lock
	$(BIN)/python -m pip install --disable-pip-version-check -q --no-deps -e .
	touch $@

$(VENV)/installed-dev: $(VENV)/installed requirements-dev.lock
	$(BIN)/python -m pip install --disable-pip-version-check -q -r requirements-dev.lock
	touch $@
