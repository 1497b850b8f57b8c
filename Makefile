# Everything lives in .venv; `make demo` and `make test` are all a newcomer needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: venv demo test test-spark lint audit mutants bench bench-peers data docs browser reproduce clean

venv: $(STAMP)

$(STAMP): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/pip install --quiet --editable . --group dev
	touch $(STAMP)

demo: $(STAMP)
	$(BIN)/private-ate demo

test: lint data
	$(BIN)/pytest -n 2

lint: $(STAMP)
	$(BIN)/ruff format --check src tests benchmarks
	$(BIN)/ruff check src tests benchmarks
	$(BIN)/mypy
	$(BIN)/lint-imports

audit: $(STAMP)
	$(BIN)/pytest -m audit -n 2

# Faults that the tests must notice, each written into a copy of the sources.
mutants: $(STAMP)
	$(BIN)/python tests/mutants.py

# The cluster engine against the local one; needs Java 17.
test-spark: .venv-spark/.installed
	SPARK_LOCAL_IP=127.0.0.1 .venv-spark/bin/pytest -m "audit or not audit" tests/engines

.venv-spark/.installed: pyproject.toml
	$(PYTHON) -m venv .venv-spark
	.venv-spark/bin/pip install --quiet --upgrade "pip>=25.1"
	.venv-spark/bin/pip install --quiet --editable ".[spark]" --group test
	touch $@

bench: $(STAMP) data bench-peers
	$(BIN)/python benchmarks/run.py
	$(BIN)/python benchmarks/accuracy_label.py
	$(BIN)/python benchmarks/accuracy_sample.py
	$(BIN)/python benchmarks/baselines.py
	$(BIN)/python benchmarks/ledger.py
	$(BIN)/python benchmarks/scale.py --peers .venv-bench/bin/python

# What others offer for matching, in an environment of its own. CausalML pulls a newer scipy than
# DoWhy asks for, and both work. R's come from Debian: apt install r-cran-matchit r-cran-matching
# (MatchIt 4.5 is slow); without them their rows stay empty.
bench-peers: .venv-bench/.installed

.venv-bench/.installed:
	$(PYTHON) -m venv .venv-bench
	.venv-bench/bin/pip install --quiet scikit-learn causallib==0.10.0 dowhy pyarrow polars
	.venv-bench/bin/pip install --quiet causalml
	touch $@

# The packages are read as files, never imported, so their dependencies stay away.
data: $(STAMP)
	$(BIN)/pip install --quiet --no-deps skcausal==0.1.1 causaldata==0.1.5 causallib==0.10.0

# The site lands in site/; `make browser test` also opens it.
docs: $(STAMP)
	$(BIN)/pip install --quiet --group docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict

# Tests open pages in a headless Chromium; without one they are skipped and say so.
browser:
	command -v chromium || (apt-get update && apt-get install --yes chromium)

# Every figure and table of the paper and our own comparisons; QUICK=1 takes minutes, not hours.
reproduce: data
	$(BIN)/private-ate experiment run all --out results --jobs $(or $(JOBS),1) $(if $(QUICK),--quick)

clean:
	rm -rf $(VENV) .venv-spark .venv-bench .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache demo
