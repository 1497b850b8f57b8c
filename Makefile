# Everything lives in .venv; `make demo` and `make test` are all a newcomer needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

SUITES := test-coverage test-postgres test-serve test-docs test-browser test-benchmarks test-dowhy \
  test-r test-spark test-wheel test-oldest test-pythons
# Debian's packages need root; elsewhere install chromium, PostgreSQL, R and Java 17 by hand.
APT := $(if $(filter-out 0,$(shell id -u)),sudo) env DEBIAN_FRONTEND=noninteractive apt-get
# Packages that carry data are read as files, never imported, so their dependencies stay away.
DATA := skcausal==0.1.1 causaldata==0.1.5 causallib==0.10.0

# Processes that tests start would compile the whole package each time.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: venv demo test ci $(SUITES) times lint house audit audit-versions mutants bench bench-peers data docs
.PHONY: browser postgres java r-base reproduce clean

venv: $(STAMP)

$(STAMP): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/pip install --quiet --editable . --group dev
	touch $(STAMP)

demo: $(STAMP)
	$(BIN)/private-ate demo

# What it skips for want of a part, the suites below run. Each process begins with one half of the
# tests, so that what a module prepares is made once, and takes over what the other has left.
test: $(STAMP) data
	@$(MAKE) --no-print-directory --jobs 2 timed-lint kernels
	@PRIVATE_ATE_REQUIRE=accounting,data,plots,serve,sklearn .ci/timed test $(BIN)/pytest -n 2 \
	  --dist worksteal

# Everything that is checked, as .ci/run does it; the wall times come last.
ci:
	.ci/run

times:
	@.ci/timed --table

lint: $(STAMP)
	$(BIN)/ruff format --check src tests benchmarks .ci
	$(BIN)/ruff check src tests benchmarks .ci
	$(BIN)/mypy
	$(BIN)/lint-imports

.PHONY: timed-lint kernels
timed-lint:
	@.ci/timed lint $(MAKE) --no-print-directory lint

# Compiled once, before the processes of the tests would do so side by side.
kernels: $(STAMP)
	@.ci/timed kernels $(BIN)/python .ci/kernels.py

# Size and shape of the sources: lines, import cycles, modules that one estimate runs through.
house: $(STAMP)
	$(BIN)/python .ci/house.py

# The nightly runs: long statistical audits, and with other Pythons and the oldest dependencies all
# that may depend on them. What reads our own sources and pages does not, nor do distributions of
# noise, which `make test` holds to their pmf. `make mutants` is the third.
audit: $(STAMP) data
	@.ci/timed audit $(BIN)/pytest -m "audit or coverage_cell" -n 2

audit-versions:
	@.ci/oldest $(PYTHON) $(PORTABLE)
	@.ci/on_python 3.12 $(PORTABLE)
	@.ci/on_python 3.13 $(PORTABLE)

# One coverage cell of each interval that ε pays for.
test-coverage: $(STAMP)
	@.ci/timed coverage $(BIN)/pytest -q -m coverage_cell -n 2

# Ledger and service on a real server, which the tests start for themselves on a socket of their own.
test-postgres: $(STAMP) postgres
	@PRIVATE_ATE_REQUIRE=postgres .ci/timed PostgreSQL $(BIN)/pytest -q -n 2 -k postgres

# The environment with every extra at once; it serves the suites below.
ALL := .venv-all/bin
.venv-all/.installed: pyproject.toml
	@.ci/timed "install all extras" .ci/environment .venv-all $(PYTHON) --no-compile \
	  --editable ".[dowhy,formats,plots,postgres,serve,sklearn,spark]" \
	  --group test --group docs --group cases
	$(ALL)/pip install --quiet --no-deps $(DATA)

# Every code block of the documentation, those of the extras too.
test-docs: .venv-all/.installed java
	@PRIVATE_ATE_REQUIRE=data,dowhy,formats,sklearn,spark SPARK_LOCAL_IP=127.0.0.1 \
	  .ci/timed "code in documentation" $(ALL)/pytest -q -m documentation -n 2 tests/pages \
	  -W ignore::DeprecationWarning -W ignore::FutureWarning

# The service's processes on both stores, and cases that its OpenAPI description makes.
test-serve: .venv-all/.installed postgres
	@PRIVATE_ATE_REQUIRE=cases,postgres,serve .ci/timed service \
	  $(ALL)/pytest -q -m "service and not audit" -n 2 tests/service

# Reports, the service and every page of the built site in a headless Chromium.
test-browser: .venv-all/.installed browser
	@PRIVATE_ATE_REQUIRE=browser,serve,site NO_MKDOCS_2_WARNING=1 PATH="$(CURDIR)/$(ALL):$$PATH" \
	  .ci/timed browser $(ALL)/pytest -q tests/pages -k "browser or site"

# Every benchmark and every experiment at its smallest size; minutes of processor time.
test-benchmarks: .venv-all/.installed
	@PRIVATE_ATE_REQUIRE=data,plots,serve,sklearn .ci/timed benchmarks \
	  $(ALL)/pytest -q -m benchmark -n 2 tests/benchmarks tests/unit/experiments

test-dowhy: .venv-all/.installed
	@PRIVATE_ATE_REQUIRE=dowhy,formats,sklearn .ci/timed DoWhy $(ALL)/pytest -q tests/integrations

# The R package against the program, files that R wrote, and the R code of the documentation.
test-r: .venv-all/.installed r-base
	@.ci/timed "R package" .ci/r $(ALL)/private-ate
	@PRIVATE_ATE_REQUIRE=formats,r .ci/timed "R files" $(ALL)/pytest -q \
	  -m "r_session or not r_session" -n 2 tests/r

# Faults that the tests must notice, each written into a copy of the sources.
mutants: $(STAMP)
	@.ci/timed mutants $(BIN)/python tests/mutants.py

# The cluster engine against the local one; needs Java 17.
test-spark: .venv-all/.installed java
	@PRIVATE_ATE_REQUIRE=spark SPARK_LOCAL_IP=127.0.0.1 \
	  .ci/timed Spark $(ALL)/pytest -q -m "audit or not audit" tests/engines

# The wheel in a clean environment, without and with each extra.
test-wheel: java
	@.ci/timed wheel .ci/wheel $(PYTHON)

# What differs between versions is seen in seeded releases, in odd records and arguments, and in what
# cannot be imported; the nightly run tests the rest, and the Python in between.
EVERYWHERE := tests/golden tests/attacks tests/meta/test_imports.py
PORTABLE := $(EVERYWHERE) tests/unit tests/integrations tests/service

# The oldest dependencies that pyproject.toml allows.
test-oldest:
	@.ci/oldest $(PYTHON) $(EVERYWHERE)

# The newest Python, where the machine has it.
test-pythons:
	@.ci/on_python 3.13 $(EVERYWHERE)

bench: $(STAMP) data bench-peers
	$(BIN)/python benchmarks/run.py
	$(BIN)/python benchmarks/accuracy_label.py
	$(BIN)/python benchmarks/accuracy.py
	$(BIN)/python benchmarks/planning.py
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

data: $(STAMP)
	$(BIN)/pip install --quiet --no-deps $(DATA)

# The site lands in site/; `make browser test` also opens it.
docs: $(STAMP)
	$(BIN)/pip install --quiet --group docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict

# Tests open pages in a headless Chromium; without one they are skipped and say so.
browser:
	@command -v chromium || ($(APT) update && $(APT) install --yes --no-install-recommends chromium)

# PostgreSQL's server, without a cluster that runs by itself.
postgres:
	@ls -d /usr/lib/postgresql/*/bin || command -v pg_ctl || \
	  ($(APT) update && $(APT) install --yes --no-install-recommends postgresql)

r-base:
	@Rscript -e 'for (name in c("jsonlite", "testthat", "bit64")) loadNamespace(name)' || \
	  ($(APT) update && $(APT) install --yes --no-install-recommends r-base-core \
	  r-cran-jsonlite r-cran-testthat r-cran-bit64)

java:
	@command -v java || \
	  ($(APT) update && $(APT) install --yes --no-install-recommends openjdk-17-jre-headless)

# Every figure and table of the paper and our own comparisons; QUICK=1 takes minutes, not hours.
reproduce: data
	$(BIN)/private-ate experiment run all --out results --jobs $(or $(JOBS),1) $(if $(QUICK),--quick)

clean:
	rm -rf $(VENV) .venv-* build .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache demo
