# Every target makes .venv and installs what it needs by itself; nothing else on the machine matters but Python ≥ 3.11.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
OUT ?= demo-output
SCALE ?= quick
PEERS := .venv-peers
LOWEST := .venv-lowest
COMPAT := .venv-compat
PEERS_PYTHON ?= $(PYTHON)

# Compiled modules are kept, whatever the surroundings say: tests and workers are hundreds of processes that import the same files.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: demo examples test lowest compat dist docs pages notebooks notebooks-check lint bench bench-smoke peers format clean

$(VENV)/.installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade pip
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[all]"
	@touch $@

$(VENV)/.dev: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[dev]"
	@touch $@

demo: $(VENV)/.installed  ## a first plan, a first run, then the whole paper: about five minutes the first time (SCALE=smoke|quick|paper)
	$(BIN)/spanrl list
	$(BIN)/spanrl analyse "three-state[delta=0.005]"
	$(BIN)/spanrl plan two-state --span-bound 0.75
	$(BIN)/spanrl learn "three-state[delta=0.005]" "scal[span_bound=5]" --horizon 2.5e7 --seed 0
	$(BIN)/spanrl reproduce --scale $(SCALE) --out $(OUT)/reproduction-$(SCALE)

examples: $(VENV)/.installed  ## figures of the README and the documentation, and an experiment with its report
	$(BIN)/python examples/gain_curve.py $(OUT)/gain_curve.png
	$(BIN)/python examples/regret.py $(OUT)/regret.png 2.5e6 5
	$(BIN)/python examples/widths.py $(OUT)/widths.png
	$(BIN)/spanrl run small --out $(OUT)/small
	$(BIN)/spanrl report $(OUT)/small

test: $(VENV)/.dev  ## all tests, on two cores
	$(BIN)/python -m pytest -q -n 2 --dist worksteal

lowest:  ## everything once with the lowest versions that pyproject.toml allows, in an environment of their own
	$(PYTHON) tests/lowest.py $(LOWEST)

compat:  ## lowest and newest versions on every Python that is here; writes docs/compat.md
	$(PYTHON) tools/compat.py $(COMPAT) docs/compat.md

dist: $(VENV)/.dev  ## a source archive, and a wheel made from it, in dist/
	$(BIN)/python -m build --outdir dist

docs: $(VENV)/.dev  ## the site, in build/site; a broken link, an unknown name and a request that leaves the page are errors
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	$(BIN)/python tools/site_check.py build/site

pages: $(VENV)/.dev  ## pages that are made from the code: environments, command line
	$(BIN)/python examples/environments.py docs
	$(BIN)/python tools/cli_page.py docs/cli.md

notebooks: $(VENV)/.dev  ## execute the notebooks and keep their outputs
	$(BIN)/python tools/notebooks.py examples/notebooks/*.ipynb

notebooks-check: $(VENV)/.dev  ## execute the notebooks; they must print what they printed before
	$(BIN)/python tools/notebooks.py --check examples/notebooks/*.ipynb

lint: $(VENV)/.dev  ## style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/.dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(VENV)/.installed peers  ## ratios measured in one run; writes benchmarks/results.json, docs/speed.md and the README's figures
	$(BIN)/python benchmarks/run.py
	$(BIN)/python benchmarks/results.py docs/speed.md README.md

bench-smoke: $(VENV)/.installed peers
	$(BIN)/python benchmarks/run.py --smoke

peers:  ## what the benchmarks compare with, in an environment of its own, as far as it can be had (PEERS_PYTHON=python3.11)
	-@$(PEERS_PYTHON) benchmarks/peers/install.py $(PEERS)

clean:
	rm -rf $(VENV) $(PEERS) $(LOWEST) $(COMPAT) $(OUT) build dist .mypy_cache .ruff_cache .hypothesis
