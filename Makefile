# Every target sets up what it needs: a fresh machine wants only python3 >= 3.11 and make.
MAKEFLAGS += --no-print-directory
.DEFAULT_GOAL := help
.PHONY: help demo test check lint types floors fast rules bench lock clean

BIN := .venv/bin
READY := .venv/.ready
PYTHON_FILES := engines results conversations jobs workers producer examples tests $(wildcard benchmarks scripts)
PYTEST_ARGS ?=

help:        ## this list
	@grep -hE '^[a-z]+: .*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "make %-8s %s\n", $$1, $$2}'

demo: $(READY) ## 50 conversations on this machine: no network, no key, no server needed
	@scripts/ensure_redis.sh
	@scripts/demo.sh

test: $(READY) ## every test
	@scripts/ensure_test_parts.sh
	@$(BIN)/pytest $(PYTEST_ARGS)

check: lint types floors fast ## what must pass before a commit: ruff, mypy, import-linter, fast tests

lint: $(READY) ## ruff, and its formatter
	@$(BIN)/ruff check --quiet $(PYTHON_FILES) && $(BIN)/ruff format --quiet --check $(PYTHON_FILES) && echo "ruff: clean"

types: $(READY) ## mypy, strict
	@$(BIN)/mypy

floors: $(READY) ## import-linter: who may import whom
	@$(BIN)/lint-imports --no-cache >.venv/floors.log 2>&1 && echo "import-linter: kept" || { cat .venv/floors.log; exit 1; }

fast: $(READY) ## unit and contract tests
	@scripts/ensure_redis.sh
	@$(BIN)/pytest -q $(wildcard tests/unit tests/contract) $(PYTEST_ARGS)

rules: $(READY) ## docs/rules.md again: every test, and which rules they show
	@scripts/ensure_test_parts.sh
	@$(BIN)/pytest -q --junitxml=.venv/junit.xml $(PYTEST_ARGS) || true
	@$(BIN)/python scripts/rules.py --junit .venv/junit.xml

bench: $(READY) ## the benchmarks (ARGS="…" are theirs)
	@scripts/ensure_redis.sh
	@$(BIN)/python -c 'import aiohttp, moto, openai' 2>/dev/null || $(BIN)/python -m pip install --quiet -e '.[bench]'
	@$(BIN)/python -m benchmarks $(ARGS)

lock: $(READY) ## requirements.lock again, from pyproject.toml
	@scripts/lock.sh

clean:       ## everything that make made, except runs/
	rm -rf .venv build dist .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis .coverage
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(READY): pyproject.toml scripts/make_venv.sh scripts/find_python.sh
	@scripts/make_venv.sh
	@touch $@
