# SPDX-License-Identifier: Apache-2.0
# make demo | make test: each sets up what it needs.

VENV := .venv
BIN := $(VENV)/bin
export OMP_NUM_THREADS ?= 1
export OPENBLAS_NUM_THREADS ?= 1

.PHONY: bench clean demo docs-figures lint sbom setup test test-heavy

setup: $(VENV)/.ready

$(VENV)/.ready: requirements.lock scripts/setup.sh $(wildcard src/*/pyproject.toml src/*/setup.*)
	sh scripts/setup.sh $(VENV)
	@touch $@

demo: setup
	$(BIN)/python scripts/demo.py

$(VENV)/.ready-test: $(VENV)/.ready requirements-test.lock
	$(BIN)/python -m pip --disable-pip-version-check install -q --no-compile -r requirements-test.lock
	@touch $@

test: $(VENV)/.ready-test
	$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder $(ARGS)

test-heavy: $(VENV)/.ready-test
	$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder -m heavy $(ARGS)

lint: $(VENV)/.ready-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	for package in src/sysid_*/pyproject.toml; do $(BIN)/mypy $$(dirname $$package) || exit 1; done
	$(BIN)/mypy bench scripts

$(VENV)/.ready-bench: $(VENV)/.ready-test requirements-bench.lock
	$(BIN)/python -m pip --disable-pip-version-check install -q -r requirements-bench.lock
	@touch $@

bench: $(VENV)/.ready-bench
	$(BIN)/python -m bench $(ARGS)

docs-figures: setup
	$(BIN)/python -m bench.docs

sbom: setup
	$(BIN)/python scripts/sbom.py

clean:
	rm -rf $(VENV) build install log out
