# Two commands for a fresh machine: make demo, make test. Nothing needs to be installed by hand
# but Python 3.11 or newer.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready-$(shell cat constraints.txt pyproject.toml | cksum | cut -d' ' -f1)

.PHONY: demo test test-all bench lint clean setup

setup: $(STAMP)

$(STAMP): constraints.txt pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q -U "pip>=25.1"
	$(BIN)/python -m pip install -q -c constraints.txt --group dev -e .
	rm -f $(VENV)/.ready-*
	touch $@

demo: setup  ## the main job on real data: handwritten digits
	$(BIN)/thrifty run --machine aws:g4dn.xlarge examples/digits.py --epochs 15
	@test -t 2 || $(BIN)/thrifty bill

lint: setup
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/basedpyright
	$(BIN)/lint-imports
	$(BIN)/towncrier build --draft --version 0 > /dev/null

test: lint  ## every gate and test, in at most half an hour
	$(BIN)/python -m pytest -q --doctest-modules src --ignore=src/thrifty/launch/bootstrap
	$(BIN)/python -m pytest tests -m "not slow"

test-all: lint  ## with the slow ones
	$(BIN)/python -m pytest -q --doctest-modules src --ignore=src/thrifty/launch/bootstrap
	$(BIN)/python -m pytest tests

bench: setup  ## the figures of bench/RESULTS.md
	$(BIN)/python bench/run_all.py

clean:
	rm -rf $(VENV) build dist src/*.egg-info
