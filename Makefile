# Everything is done in .venv, which the first target that needs it makes; PYTHON says with which Python.
PYTHON ?= python3
JOBS ?= 2
VENV := .venv
BIN := $(VENV)/bin
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check
PACKAGE_SOURCES := pyproject.toml CMakeLists.txt $(wildcard native/*/*.[ch])

.DEFAULT_GOAL := help
.PHONY: help run test lit py types lint fmt bench performance docs test-torch clean

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /make \1@/p' $(MAKEFILE_LIST) | awk -F@ '{ printf "%-16s %s\n", $$1, $$2 }'

run: $(VENV)/.installed ## install, then compile and run the transformer block of examples/
	$(BIN)/python examples/run_transformer.py

test: py lit ## every test but PyTorch's, on JOBS=2 cores

py: $(VENV)/.installed-test ## the tests in Python: values, errors, tools
	$(BIN)/python -m pytest -n $(JOBS) test/py

lit: $(VENV)/.installed-test ## the tests on IR text
	$(BIN)/lit -j $(JOBS) test/lit

test-torch: $(VENV)/.installed-torch ## add PyTorch (gigabytes on most machines) and run its tests
	$(BIN)/python -m pytest test/py/interop/test_torch.py

types: $(VENV)/.installed-test ## check types
	$(BIN)/pyright

lint: $(VENV)/.installed-test ## check style, format and the import contract
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

fmt: $(VENV)/.installed-test ## format, and repair what can be
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/.installed-test ## measure compile and run time beside XLA's
	$(BIN)/python benchmarks/cpu.py

performance: $(VENV)/.installed-test ## measure again for docs/performance.md; the machine should be idle
	$(BIN)/python benchmarks/cpu.py --page docs/performance.md

docs: $(VENV)/.installed ## write the generated pages: ops.md, passes.md, dialects/
	$(BIN)/python -m stablehlo_py.cli.tables docs
	$(BIN)/python -m stablehlo_py.dialects.mxu_export dialects/mxu.irdl.mlir

clean: ## remove .venv and everything built
	rm -rf $(VENV) build dist python/stablehlo_py/_native
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The stamps stand for what is installed; a change of pyproject.toml or of native/ installs again.
$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10) and "Python 3.10 or newer is needed (make PYTHON=...)")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: $(PACKAGE_SOURCES) | $(VENV)/bin/python
	$(INSTALL) --editable .
	@# pip does this to what it copies; without it, the first program of a process takes twice as long under PYTHONDONTWRITEBYTECODE
	@$(BIN)/python -m compileall -q python/stablehlo_py
	@touch $@

$(VENV)/.installed-test: $(VENV)/.installed
	$(INSTALL) --editable '.[dev,jax]'
	@touch $@

$(VENV)/.installed-torch: $(VENV)/.installed-test
	$(INSTALL) --editable '.[dev,jax,torch]'
	@touch $@
