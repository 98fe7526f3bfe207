.DEFAULT_GOAL := help
PYTHON ?= python
EXTRAS ?= test
THREADS := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1

# What rounds: where processors, versions of libraries and Pythons may differ.
NUMERICAL := tests/confidence tests/defences tests/domains tests/policies tests/posteriors \
	tests/test_algorithms_of_rcgp.py tests/test_balanced_recipes.py \
	tests/test_defences_and_moves.py tests/test_kernels.py tests/test_learner.py \
	tests/test_linalg.py tests/test_linear_reduction.py tests/test_misspecification.py \
	tests/models/test_gaussian.py tests/test_recipes.py tests/test_satisficing.py \
	tests/test_student_t_recipes.py

.PHONY: help setup check test long test-all numerical figures pictures bench docs dist release-check

help:            ## what each command does
	@grep -E '^[a-z-]+: .*##' $(MAKEFILE_LIST) | sed 's/: *## */\t/' | expand -t 16

setup:           ## install stoic and what its tests need; EXTRAS=others, as in docs
	$(PYTHON) -m pip install -e '.[$(EXTRAS)]'

check:           ## lint, format, types
	ruff check .
	ruff format --check .
	mypy

test:            ## all tests but long ones
	$(THREADS) $(PYTHON) -m pytest -n auto --dist worksteal -m "not slow and not long"

long:            ## the long ones: whole campaigns and programs
	$(THREADS) $(PYTHON) -m pytest -n auto --dist worksteal -m "long and not slow"

test-all:        ## all tests: also figure-level claims, whole products, long campaigns
	$(THREADS) $(PYTHON) -m pytest -n auto --dist worksteal

numerical:       ## the part of the tests that depends on rounding; MORE=further files
	$(THREADS) $(PYTHON) -m pytest -n auto --dist worksteal -m "not slow and not long" $(NUMERICAL) $(MORE)

figures:         ## regenerate the pictures of the docs; DATA=directory of the real tables
	$(THREADS) $(PYTHON) -m stoic reproduce --all --out docs/figures $(if $(DATA),--data $(DATA))

pictures:        ## run the studies of the tutorial and of the page on the default, and draw them
	$(THREADS) $(PYTHON) docs/machinery/pictures.py

bench:           ## speed, as ratios in one run
	$(THREADS) $(PYTHON) -m benchmarks

docs:            ## the documentation site, into site/
	NO_MKDOCS_2_WARNING=1 DISABLE_MKDOCS_2_WARNING=true $(PYTHON) -m mkdocs build --strict --quiet

dist:            ## the source distribution and the wheel, into dist/
	$(PYTHON) -m pip install 'build>=1.2'
	$(PYTHON) -m build

release-check:   ## build, install the wheel elsewhere, run all that is shown with it
	$(PYTHON) tools/release_check.py
