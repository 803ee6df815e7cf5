# Every target makes .venv and installs what it needs by itself; nothing else on the machine matters but Python ≥ 3.11.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
OUT ?= demo-output

.PHONY: demo test lint bench bench-smoke format clean

$(VENV)/.installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade pip
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[all]"
	@touch $@

$(VENV)/.dev: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[dev]"
	@touch $@

demo: $(VENV)/.installed  ## what exists so far, from a first plan to regret curves
	$(BIN)/spanrl list
	$(BIN)/spanrl analyse "three-state[delta=0.005]"
	$(BIN)/spanrl plan two-state --span-bound 0.75
	$(BIN)/spanrl analyse knight-quest
	$(BIN)/spanrl learn "three-state[delta=0.005]" "scal[span_bound=5]" --horizon 2.5e7 --seed 0
	$(BIN)/python examples/gain_curve.py $(OUT)/gain_curve.png
	$(BIN)/python examples/regret.py $(OUT)/regret.png 2.5e6 5
	$(BIN)/spanrl run small --out $(OUT)/small
	$(BIN)/spanrl report $(OUT)/small
	$(BIN)/python -m spanrl.paper

test: $(VENV)/.dev  ## all tests, on two cores
	$(BIN)/python -m pytest -q -n 2 --dist worksteal

lint: $(VENV)/.dev  ## style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/.dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(VENV)/.installed  ## ratios measured in one run; writes benchmarks/results.json
	$(BIN)/python benchmarks/run.py

bench-smoke: $(VENV)/.installed
	$(BIN)/python benchmarks/run.py --smoke

clean:
	rm -rf $(VENV) $(OUT) .mypy_cache .ruff_cache .hypothesis
