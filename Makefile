.DEFAULT_GOAL := help
PYTHON ?= python
THREADS := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1

.PHONY: help setup check test slow figures bench docs

help:            ## what each command does
	@grep -E '^[a-z]+: .*##' $(MAKEFILE_LIST) | sed 's/: *## */\t/' | expand -t 12

setup:           ## install stoic and what its tests need
	$(PYTHON) -m pip install -e '.[test]'

check:           ## lint, format, types
	ruff check .
	ruff format --check .
	mypy

test:            ## the tests that take minutes
	$(THREADS) $(PYTHON) -m pytest -n auto -m "not slow"

slow:            ## figure-level claims
	$(THREADS) $(PYTHON) -m pytest -n auto -m slow

figures:         ## regenerate the pictures of the docs; DATA=directory of the real tables
	$(THREADS) $(PYTHON) -m stoic.experiments --all --out docs/figures $(if $(DATA),--data $(DATA))

bench:           ## speed, as ratios in one run
	$(THREADS) $(PYTHON) -m benchmarks

docs:            ## the documentation site, into site/
	NO_MKDOCS_2_WARNING=1 DISABLE_MKDOCS_2_WARNING=true $(PYTHON) -m mkdocs build --strict --quiet
