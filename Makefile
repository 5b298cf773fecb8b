# .ci/run calls these targets; `make help` lists them.

PYTHON ?= python3
# pyenv's versions have no link on the PATH of a shell without its shims.
PYENV = $(lastword $(sort $(wildcard $(HOME)/.pyenv/versions/$(1).*/bin/python)))
# JAX from 0.11 on and MaxText need a newer Python than ours; three versions of JAX are tested on three of Python.
TPU_PYTHON ?= $(or $(call PYENV,3.13),$(shell command -v python3.13 || command -v python3.12),python3.13)
OLDER_TPU_PYTHON ?= $(or $(call PYENV,3.12),$(shell command -v python3.12 2>/dev/null),$(PYTHON))
VENV := .venv
BIN := $(VENV)/bin
# More than cores: the slow tests wait for what they start.
WORKERS ?= $(shell expr 2 \* $$(getconf _NPROCESSORS_ONLN))
PYTEST := $(BIN)/pytest -n $(WORKERS) --dist loadgroup
LOCK := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--no-header --no-annotate --no-emit-index-url

export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Without cached bytecode, each process compiles all tests and packages again, and starts in twice the time.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo setup quick goldens test fast-test test-all oldest-jax-test older-jax-test machine \
	lint format workflows engine cluster tensorflow tpu-compiler tpu-compiler-oldest tpu-compiler-older maxtext \
	bench published-runs bench-write fuzz fuzz-write build schemas schemas-check catalog-audit \
	pages docs docs-serve readme audit lock clean

help: ## list the targets
	@grep -E '^[a-z-]+:.* ## ' $(MAKEFILE_LIST) | sed -E 's/:.* ## /\t/' | expand -t 21

demo: $(VENV)/runtime ## print the v3-32 config of tpucfg.yaml; needs only Python 3.11
	@$(BIN)/tpucfg render --size v3-32

setup: $(VENV)/development ## install all packages for development, including Pulumi's

quick: setup ## run the tests of what has changed since main; takes less than a minute
	$(BIN)/python tools/changed_tests.py $(PYTEST)

goldens: setup ## write the golden and the generated files, and name those whose tools are missing
	$(PYTEST) --write-goldens
	$(MAKE) schemas pages readme
	@if [ -x $(VENV)/tpu-compiler/bin/python ]; then \
		$(BIN)/python tools/readme_blocks.py --write --tpu-python $(VENV)/tpu-compiler/bin/python; \
	else echo 'not written: blocks of documents that need `make tpu-compiler`' >&2; fi
	@echo 'not written: what other programs printed, tests/fit/recorded and tests/review/previews' >&2

test: setup ## run the tests of the gate: fast ones, telling ones of each real part, and all of the parts that changed
	$(PYTEST) -m "$$($(BIN)/python tools/gate.py select)"

whole-%: setup ## run all tests of one kind of tools/gate.py, and note that they passed: make whole-cluster
	TPUCFG_REQUIRE="$*" $(PYTEST) -m $*
	$(BIN)/python tools/gate.py record $*

fast-test: setup ## run the fast tests, and those of the wheel: on each version of Python
	$(PYTEST) -m "not slow"
	$(PYTEST) tests/e2e/test_wheel.py

test-all: setup older-jax-test oldest-jax-test ## run every test
	$(PYTEST)

oldest-jax-test: setup tpu-compiler-oldest ## compile for TPUs with the oldest JAX
	TPUCFG_TPU_PYTHON=$(CURDIR)/$(VENV)/tpu-compiler-oldest/bin/python $(PYTEST) -m tpu_compiler \
		tests/fit/test_worker_compiles.py -k 'transformer or flags_change' # older libtpu grants other amounts of memory

older-jax-test: setup tpu-compiler-older ## compile for TPUs with JAX 0.10.2, the last one for Python 3.11
	TPUCFG_TPU_PYTHON=$(CURDIR)/$(VENV)/tpu-compiler-older/bin/python $(PYTEST) -m tpu_compiler \
		tests/fit/test_worker_compiles.py tests/fit/test_real_compiler.py

machine: setup ## build the tree of the machines that tests/machine boots; as root, on Debian
	$(BIN)/python tools/machine_tree.py

lint: setup lint-trainer-jax lint-trainer-tensorflow ## run ruff and mypy
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy compiler stacks tests tools benchmarks
	$(BIN)/mypy tests/stacks/engine/conftest.py # separately: there are two modules named conftest

lint-trainer-%: setup
	@rm -rf .cache/trainers/$*
	@$(BIN)/tpucfg init .cache/trainers/$* --trainer $* >/dev/null
	cd .cache/trainers/$* && $(CURDIR)/$(BIN)/mypy --config-file $(CURDIR)/pyproject.toml \
		--cache-dir $(CURDIR)/.mypy_cache/$* trainer

format: setup ## apply ruff's automatic fixes and its formatter
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

cluster: setup ## build Kubernetes, JobSet, Kueue and KWOK for the cluster tests; needs Go
	$(BIN)/python tools/control_plane.py

tensorflow: $(VENV)/tensorflow/installed ## install TensorFlow, for the tests of the TensorFlow trainer

tpu-compiler: $(VENV)/tpu-compiler/installed ## install the newest JAX with the TPU compiler, and MaxText; needs Python 3.12 or 3.13

tpu-compiler-oldest: $(VENV)/tpu-compiler-oldest/installed ## install the oldest JAX that fit supports

tpu-compiler-older: $(VENV)/tpu-compiler-older/installed ## install JAX 0.10.2, on Python 3.12 where there is one

bench: setup ## run the benchmarks and print the results
	$(BIN)/python -m benchmarks

published-runs: setup tpu-compiler ## compile the published runs of MaxText again, for the error of forecasts: hours, and it can be stopped
	$(BIN)/python tools/published_runs.py

bench-write: setup ## run the benchmarks and write the results to benchmarks/RESULTS.md
	$(BIN)/python -m benchmarks --write

fuzz: setup ## fuzz the commands with 100,000 generated inputs; takes half an hour
	PYTHONPATH=tests $(BIN)/python -m fuzz $(FUZZ)

fuzz-write: ## run the fuzzer and write the results to benchmarks/RESULTS.md
	$(MAKE) fuzz FUZZ=--write

build: setup ## build the sdist, and the wheel from it
	rm -rf dist
	$(BIN)/uv build --quiet --no-build-isolation --python $(BIN)/python
	$(BIN)/twine check --strict dist/*

workflows: $(VENV)/runtime ## run actionlint on the workflows, including those of a new project; needs Go
	@rm -rf .cache/workflows
	@$(BIN)/tpucfg init .cache/workflows --only-workflow \
		--install-from git+https://github.com/OWNER/tpucfg@$$(git rev-parse HEAD) >/dev/null
	@cd tools/actionlint && go tool actionlint $(CURDIR)/.github/workflows/*.yml \
		$(CURDIR)/.cache/workflows/.github/workflows/*.yml

engine: setup ## build the Pulumi engine for the stack tests, if none is installed; needs Go
	$(BIN)/python tools/pulumi_engine.py

schemas-check: setup ## check schema/<target>.schema.json against the official packages
	$(BIN)/python tools/api_schemas.py --check

schemas: setup ## generate schema/<target>.schema.json from the official packages
	$(BIN)/python tools/api_schemas.py

audit: setup ## audit the locked packages for known vulnerabilities; needs network access
	$(BIN)/python tools/audit.py $(AUDIT)

catalog-audit: setup $(VENV)/tpu-compiler/installed ## compare the catalog with the TPU compiler; takes a minute or two
	$(BIN)/python tools/catalog_audit.py

pages: setup ## generate the generated parts of docs/findings, docs/reference and docs/targets
	$(BIN)/python tools/finding_pages.py
	$(BIN)/python tools/reference.py
	$(BIN)/python tools/outcome_table.py
	$(BIN)/python tools/published_table.py

docs: setup ## build the documentation into site/ and check its links
	$(BIN)/python tools/finding_pages.py --check
	$(BIN)/python tools/reference.py --check
	$(BIN)/python tools/outcome_table.py --check
	$(BIN)/python tools/published_table.py --check
	$(BIN)/python tools/build_site.py

docs-serve: docs ## build the documentation and serve it at http://127.0.0.1:8000
	$(BIN)/python -m http.server --bind 127.0.0.1 --directory site

readme: setup ## update the command output and the chart in the documents
	$(BIN)/tpucfg ladder --env prod --format svg > docs/images/ladder.svg
	$(BIN)/tpucfg ladder --spec examples/chat/tpucfg.yaml --env prod --format svg > docs/images/fit.svg
	$(BIN)/python tools/readme_blocks.py --write

lock: setup ## upgrade the locked versions of all packages
	mkdir -p .cache
	$(LOCK) --upgrade pyproject.toml --extra infra --group test --group lint --group docs --group release \
		--output-file .cache/everything.txt
	$(LOCK) --constraint .cache/everything.txt pyproject.toml --group build --output-file requirements.txt
	$(LOCK) --constraint .cache/everything.txt pyproject.toml --extra infra --group build \
		--output-file requirements-infra.txt
	$(LOCK) --constraint .cache/everything.txt pyproject.toml --group test --group lint --group docs --group release \
		--output-file requirements-dev.txt
	$(LOCK) --upgrade --group pyproject.toml:bench --output-file benchmarks/requirements.txt
	$(LOCK) --upgrade --group pyproject.toml:tensorflow --output-file tests/trainer/requirements.txt
	$(subst 3.11,3.12,$(LOCK)) --upgrade --group pyproject.toml:tpu-compiler --output-file tests/fit/requirements.txt
	$(LOCK) --upgrade --group pyproject.toml:tpu-compiler-older --output-file tests/fit/requirements-older.txt
	$(LOCK) --upgrade --group pyproject.toml:tpu-compiler-oldest --output-file tests/fit/requirements-oldest.txt

clean: ## delete the files that these targets created
	rm -rf $(VENV) .cache dist site

# Stamp files of the virtual environments: an environment is updated when its lock file changes. The first is installed
# by the locked pip of requirements.txt: older ones take the extra of a locked package for an unlocked package. The others
# are installed by the locked uv, in a fraction of the time; they share the files of packages.

$(VENV)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo 'tpucfg needs Python 3.11 or newer; choose one, for example: make $(MAKECMDGOALS) PYTHON=python3.12' >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/runtime: requirements.txt pyproject.toml | $(VENV)/python
	@echo 'installing into $(VENV)' >&2
	@$(BIN)/pip install --quiet --requirement requirements.txt
	@$(BIN)/pip install --quiet --no-build-isolation --no-deps --editable .
	@touch $@

# What the tests import is imported once, which writes its bytecode: the worker of `tpucfg fit` writes none.
$(VENV)/%/installed: | $(VENV)/development
	@echo 'installing into $(VENV)/$*' >&2
	@$(BIN)/uv venv --quiet --clear --python $(INTERPRETER) $(VENV)/$*
	@$(BIN)/uv pip install --quiet --python $(VENV)/$*/bin/python --require-hashes --requirement $^
	@JAX_PLATFORMS=cpu KERAS_BACKEND=jax $(VENV)/$*/bin/python -c 'import $(IMPORTS)'
	@touch $@

$(VENV)/tensorflow/installed: INTERPRETER = $(PYTHON)
$(VENV)/tensorflow/installed: IMPORTS = tensorflow
$(VENV)/tensorflow/installed: tests/trainer/requirements.txt
$(VENV)/tpu-compiler/installed: INTERPRETER = $(TPU_PYTHON)
$(VENV)/tpu-compiler/installed: IMPORTS = keras, maxtext.trainers.pre_train.train_compile
$(VENV)/tpu-compiler/installed: tests/fit/requirements.txt
$(VENV)/tpu-compiler-older/installed: INTERPRETER = $(OLDER_TPU_PYTHON)
$(VENV)/tpu-compiler-older/installed: IMPORTS = jax
$(VENV)/tpu-compiler-older/installed: tests/fit/requirements-older.txt
$(VENV)/tpu-compiler-oldest/installed: INTERPRETER = $(PYTHON)
$(VENV)/tpu-compiler-oldest/installed: IMPORTS = jax
$(VENV)/tpu-compiler-oldest/installed: tests/fit/requirements-oldest.txt

$(VENV)/development: requirements-dev.txt requirements-infra.txt $(VENV)/runtime
	@$(BIN)/pip install --quiet --requirement requirements-dev.txt --requirement requirements-infra.txt
	@touch $@
