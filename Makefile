PYTHON ?= .venv/bin/python
# Where `lock` finds torch's CPU build; without PyTorch's own index, '--find-links FOLDER' with the wheel.
TORCH ?= --torch-backend cpu

help:  ## Show what can be made
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/ —/'

setup:  ## Make .venv and install everything developers need
	python3 -m venv .venv
	.venv/bin/pip install -q -e '.[dev]'

setup-locked:  ## The same with the versions and SHA-256s of requirements-dev.lock (Linux x86-64, Python 3.11)
	python3.11 -m venv .venv
	.venv/bin/pip install -q --require-hashes -r requirements-dev.lock
	.venv/bin/pip install -q --no-deps --no-build-isolation -e .

lock:  ## Make requirements-dev.lock anew, with the newest versions that pyproject.toml allows
	UV_CUSTOM_COMPILE_COMMAND="make lock  (for Linux x86-64, Python 3.11 and torch's CPU build: CONTRIBUTING.md)" \
		$(PYTHON) -m uv pip compile -q --upgrade --generate-hashes --python-version 3.11 \
		--python-platform x86_64-manylinux_2_28 $(TORCH) --extra dev pyproject.toml -o requirements-dev.lock

check:  ## Lint, types, quick tests: the one check before every commit
	$(PYTHON) -m ruff check .
	$(PYTHON) -m ruff format --check .
	$(PYTHON) -m mypy
	$(PYTHON) -m pytest

check-all: check  ## The same, the slow tests, properties on all their cases, faults on the other engine (over an hour)
	FEDPCS_FAULT_ENGINE=workers $(PYTHON) -m pytest tests/faults/test_round_faults.py \
		tests/faults/test_store_faults.py tests/faults/test_drop_outs.py
	FEDPCS_ALL_CASES=1 $(PYTHON) -m pytest tests/privacy
	$(PYTHON) -m pytest -m slow

format:  ## Put imports and white space in order
	$(PYTHON) -m ruff check --fix .
	$(PYTHON) -m ruff format .

bench:  ## Measure: the solver, accounting, clipping, noise, rounds
	$(PYTHON) benchmarks/solver_scale.py
	$(PYTHON) benchmarks/response_twin.py
	$(PYTHON) benchmarks/privacy_accounting.py
	$(PYTHON) benchmarks/per_sample_clipping.py
	$(PYTHON) benchmarks/noise_sources.py
	$(PYTHON) benchmarks/round_time.py
	$(PYTHON) benchmarks/run_overhead.py
	$(PYTHON) benchmarks/million_clients.py

.PHONY: help setup setup-locked lock check check-all format bench
