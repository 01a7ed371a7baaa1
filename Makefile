# What a fresh Debian needs to try and to test gwmond: python3, git, make and apt are enough.
# Everything that is installed comes from PyPI (into .venv) and from Debian.

PYTHON ?= python3
VENV ?= .venv
# More arguments for pytest: make test PYTEST_ARGS="-k flow -x"
PYTEST_ARGS ?=
# Tests run side by side, a file to a worker: most of them wait for daemons. 0: one after the other.
WORKERS ?= 7
# More arguments for gwmond demo: make demo DEMO_ARGS="--speed 600"
DEMO_ARGS ?=
# The Python for which make rpm builds: that of Enterprise Linux 9 on which gwmond runs.
RPM_PYTHON ?= /usr/bin/python3.11
# One benchmark (tests/bench/__main__.py names them: poll, referee ...), and its options (--help):
# make bench BENCH_ARGS="poll --jobs 20000 --rounds 2"
BENCH_ARGS ?=
# Options of the chaos (--help): make chaos CHAOS_ARGS="--minutes 20 --seed 7"
CHAOS_ARGS ?=

BIN := $(VENV)/bin
BACKENDS := $(VENV)/phoenix/.done $(VENV)/mlflow/.done
LOWEST := $(VENV)/lowest
BUILD := $(VENV)/build
LOWEST_TESTS := tests/config/test_settings.py tests/traces/test_otlp.py tests/sites/test_flow.py tests/metrics/test_render.py \
    $(addprefix tests/web/,test_api.py test_app.py test_connections.py test_server.py) \
    $(addprefix tests/ledger/,test_schema.py test_store.py test_pilots_export.py)
PIP_OPTIONS := -m pip --disable-pip-version-check --no-input --quiet
PIP := $(BIN)/python $(PIP_OPTIONS)
# What takes pip a minute of CPU takes uv two seconds; the lock files' hashes are checked all the same.
UV := $(BIN)/uv --quiet pip install
SAY := @printf '== %s\n'

export PIP_ROOT_USER_ACTION := ignore
export DEBIAN_FRONTEND := noninteractive
# Else each of the many processes of the tests compiles gwmond anew.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
.PHONY: help demo test lint pytest lowest generated pictures demo-data setup setup-test system-packages lock dist deb rpm audit bench chaos clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: setup ## show an invented pool with a week behind it, in the foreground; prints the URL to open
	$(SAY) 'starting the demo; Ctrl-C ends it'
	@exec $(BIN)/gwmond demo $(DEMO_ARGS)

# mypy has a core for itself while the tests begin, and their code is compiled once, not by each worker.
test: setup-test ## set up, then run all checks and tests (as root: they start real daemons)
	@$(MAKE) --no-print-directory lint & lint=$$!; \
	    $(BIN)/python -m pytest --collect-only -qq >/dev/null; \
	    $(MAKE) --no-print-directory --keep-going pytest lowest; tests=$$?; wait $$lint && exit $$tests

lint: $(VENV)/.test ## ruff and mypy alone, which need no root
	$(SAY) 'ruff check'
	@$(BIN)/ruff check
	$(SAY) 'ruff format --check'
	@$(BIN)/ruff format --check
	$(SAY) 'mypy'
	@$(BIN)/mypy

# A test that waited in vain for real daemons is run once more, and the report counts it as a rerun: a busy
# machine, or HTCondor itself, can be the reason. So is a test of the daemon in a pool (tests/conftest.py).
# No other failure is.
pytest: $(VENV)/.test ## the tests alone, without looking at what they need
	$(SAY) 'pytest'
	@$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder --durations 20 \
	    --reruns 1 --only-rerun '^TimeoutError' $(PYTEST_ARGS)

lowest: $(LOWEST)/.test ## tests of HTTP, metrics and the ledger with the lowest versions that pyproject.toml allows
	$(SAY) 'pytest with the lowest versions'
	@$(LOWEST)/bin/python -m pytest -n 2 --dist loadfile -p no:cacheprovider $(LOWEST_TESTS)

lock: | $(BIN)/python ## renew the lock files, of the newest and of the lowest versions (needs PyPI)
	$(SAY) 'renewing requirements*.lock and tests/traces/backends/*.txt'
	@tests/packaging/lock.sh $(BIN)/python

dist: $(BUILD)/.done ## build the source distribution and the wheel into dist/
	$(SAY) 'building into dist'
	@rm -rf build *.egg-info
	@$(BUILD)/bin/python -m build --no-isolation --outdir dist
	@rm -rf build

deb: dist ## build the Debian package into dist/, for the Debian and the Python of this machine
	$(SAY) 'what Debian packages are built with'
	@tests/packaging/system-packages.sh debhelper python3-venv
	$(SAY) 'building the Debian package'
	@packaging/deb.sh dist dist

rpm: dist ## build the RPM into dist/, for the system and the Python of this machine (RPM_PYTHON)
	$(SAY) 'building the RPM'
	@packaging/rpm.sh dist dist $(RPM_PYTHON)

audit: | $(BIN)/python ## look up known vulnerabilities of what is locked (needs PyPI)
	$(SAY) 'pip-audit'
	@$(BIN)/python -m venv $(VENV)/audit
	@$(VENV)/audit/bin/python -m pip --quiet install pip-audit
	@$(VENV)/audit/bin/pip-audit --require-hashes --disable-pip --requirement requirements.lock

generated: $(VENV)/.test ## renew all files that are made from the code (tests fail where one is old)
	$(BIN)/python -m gwmond.metrics.catalog > docs/metrics.md.new && mv docs/metrics.md.new docs/metrics.md
	$(BIN)/python -m gwmond.service.host.problem_help > docs/problems.md.new && mv docs/problems.md.new docs/problems.md
	$(BIN)/python -m tools.manuals
	$(BIN)/python -m tools.dashboards
	$(BIN)/python -m tools.runbooks
	$(BIN)/python -m tests.metrics.golden
	$(BIN)/python -m tests.web.openapi

pictures: $(VENV)/.test ## renew docs/pictures: pages of the demo, of an empty pool and of 200 sites
	$(SAY) 'what pictures are made with'
	@tests/packaging/system-packages.sh chromium pngquant
	$(BIN)/python -m tools.pictures

demo-data: $(VENV)/.test ## make gwmond/data/demo.zip anew: half an hour; no pool is needed
	$(BIN)/python -m tests.simulator

bench: setup-test ## measure a poll, a backlog of records, the steady state, an import (an hour or two; as root)
	$(SAY) 'benchmark'
	@$(BIN)/python -m tests.bench $(BENCH_ARGS)

chaos: setup-test ## an hour of faults on a real pool, and whether the ledger is then true (as root)
	$(SAY) 'chaos'
	@$(BIN)/python -m tests.chaos $(CHAOS_ARGS)

setup: $(VENV)/.run ## make .venv, with gwmond in it

setup-test: system-packages $(VENV)/.test ## make .venv, and install what only the tests need
	$(SAY) 'HTCondor for the tests'
	@tests/pool/setup.sh
	$(SAY) 'a GlideinWMS for the tests'
	@tests/glideinwms/setup.sh
	$(SAY) 'a Debian to install packages in'
	@tests/packaging/setup.sh
	$(SAY) 'PostgreSQL for the tests'
	@tests/ledger/setup.sh
	$(SAY) 'Backends of traces for the tests'
	@$(MAKE) --no-print-directory $(BACKENDS)

system-packages:
	$(SAY) 'Debian packages for the tests'
	@tests/packaging/system-packages.sh prometheus prometheus-alertmanager victoria-metrics chromium debootstrap procps util-linux rsyslog systemd \
	    busybox-static curl iproute2 iptables jq shellcheck wget mandoc rpm zsh gcc libc6-dev

# Stamps: what they stand for is done again only when the dependencies have changed.
$(VENV)/.run: pyproject.toml | $(BIN)/python
	$(SAY) 'installing gwmond and its dependencies into $(VENV)'
	@$(PIP) install --editable .
	@touch $@

$(VENV)/.test: pyproject.toml requirements.lock | $(BIN)/uv
	$(SAY) 'installing gwmond with all that its tests need into $(VENV)'
	@$(UV) --python $(BIN)/python --require-hashes --requirement requirements.lock
	@$(PIP) install --no-deps --no-build-isolation --editable .
	@touch $@ $(VENV)/.run

# What packages are built with is little of what tests need.
$(BUILD)/.done: requirements.lock | $(BIN)/python
	$(SAY) 'installing build and setuptools into $(BUILD)'
	@rm -rf $(BUILD)
	@$(PYTHON) -m venv $(BUILD)
	@awk '/^[a-z]/ { wanted = /^(build|packaging|pyproject-hooks|setuptools)=/ } wanted' requirements.lock > $(BUILD)/lock
	@$(BUILD)/bin/python $(PIP_OPTIONS) install --require-hashes --requirement $(BUILD)/lock
	@touch $@

# Backends that tests send traces to: 650 MB each, in environments of their own, for they contradict.
$(BACKENDS): $(VENV)/%/.done: tests/traces/backends/%.txt | $(BIN)/uv
	$(SAY) 'installing $* into $(VENV)/$*'
	@rm -rf $(VENV)/$*
	@$(PYTHON) -m venv --without-pip $(VENV)/$*
	@$(UV) --no-deps --python $(VENV)/$*/bin/python --requirement $<
	@touch $@

$(LOWEST)/.test: pyproject.toml requirements-lowest.lock | $(BIN)/uv
	$(SAY) 'installing gwmond with the lowest versions of what it needs into $(LOWEST)'
	@rm -rf $(LOWEST)
	@$(PYTHON) -m venv $(LOWEST)
	@$(UV) --python $(LOWEST)/bin/python --require-hashes --requirement requirements-lowest.lock
	@$(LOWEST)/bin/python $(PIP_OPTIONS) install --no-deps --no-build-isolation --editable .
	@touch $@

$(BIN)/uv: | $(BIN)/python
	$(SAY) 'installing uv into $(VENV)'
	@$(PIP) install 'uv>=0.5'

$(BIN)/python:
	$(SAY) 'making $(VENV)'
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	    { echo 'Python 3.11 or later is needed: make PYTHON=/path/to/python3.11' >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
	    tests/packaging/system-packages.sh python3-venv
	@rm -rf $(VENV)
	@$(PYTHON) -m venv $(VENV)

clean: ## remove .venv, caches and builds (the tests' HTCondor stays in /var/cache/gwmond-pool)
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
