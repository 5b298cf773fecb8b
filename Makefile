# Each recipe is a step of .ci/run too. `make help` lists them.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PYTEST := $(BIN)/pytest -n auto --dist loadgroup
LOCK := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--no-header --no-annotate --no-emit-index-url

export PIP_DISABLE_PIP_VERSION_CHECK := 1

.DEFAULT_GOAL := help
.PHONY: help demo setup test test-all lint format workflows engine tensorflow bench bench-write fuzz fuzz-write build schemas schemas-check \
	pages docs docs-serve readme audit lock clean

help: ## list the recipes
	@grep -E '^[a-z-]+:.* ## ' $(MAKEFILE_LIST) | sed -E 's/:.* ## /\t/' | expand -t 15

demo: $(VENV)/runtime ## print the v3-32 config of tpucfg.yaml; needs Python 3.11 and nothing else
	@$(BIN)/tpucfg render --size v3-32

setup: $(VENV)/development ## install everything for development, the infra's packages too

test: setup ## run every module's tests, and one of each slow kind; takes five minutes
	$(PYTEST) -m 'not slow or sample'

test-all: setup ## run all tests; takes a quarter of an hour
	$(PYTEST)

lint: setup lint-trainer-jax lint-trainer-tensorflow ## ruff and mypy
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy compiler stacks tests tools benchmarks
	$(BIN)/mypy tests/stacks/engine/conftest.py # by itself: it would be a second module of that name

lint-trainer-%: setup
	@rm -rf .cache/trainers/$*
	@$(BIN)/tpucfg init .cache/trainers/$* --trainer $* >/dev/null
	cd .cache/trainers/$* && $(CURDIR)/$(BIN)/mypy --config-file $(CURDIR)/pyproject.toml \
		--cache-dir $(CURDIR)/.mypy_cache/$* trainer

format: setup ## let ruff repair what it can
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

tensorflow: $(VENV)/tensorflow/installed ## install TensorFlow, for the tests of the trainer that runs on it

bench: setup ## measure, and print the figures
	$(BIN)/python -m benchmarks

bench-write: setup ## measure, and put the figures into benchmarks/RESULTS.md
	$(BIN)/python -m benchmarks --write

fuzz: setup ## give the command 100,000 inputs that nobody wrote; takes half an hour
	PYTHONPATH=tests $(BIN)/python -m fuzz $(FUZZ)

fuzz-write: ## the same, and put the figures into benchmarks/RESULTS.md
	$(MAKE) fuzz FUZZ=--write

build: setup ## make the sdist, and from it the wheel
	rm -rf dist
	$(BIN)/uv build --quiet --no-build-isolation --python $(BIN)/python
	$(BIN)/twine check --strict dist/*

workflows: $(VENV)/runtime ## actionlint over the workflows, those of a new project too; needs Go
	@rm -rf .cache/workflows
	@$(BIN)/tpucfg init .cache/workflows >/dev/null
	@cd tools/actionlint && go tool actionlint $(CURDIR)/.github/workflows/*.yml \
		$(CURDIR)/.cache/workflows/.github/workflows/*.yml

engine: setup ## build the Pulumi engine that the tests of the stack run on, where there is none; needs Go
	$(BIN)/python tools/pulumi_engine.py

schemas-check: setup ## compare schema/<target>.schema.json with the official packages
	$(BIN)/python tools/api_schemas.py --check

schemas: setup ## write schema/<target>.schema.json from the official packages
	$(BIN)/python tools/api_schemas.py

audit: setup ## look the locked versions up among the known holes; needs a network
	$(BIN)/python tools/audit.py $(AUDIT)

pages: setup ## fill in what is generated in docs/findings and docs/reference
	$(BIN)/python tools/finding_pages.py
	$(BIN)/python tools/reference.py

docs: setup ## build the site into site/, and look for what leads nowhere in it
	$(BIN)/python tools/finding_pages.py --check
	$(BIN)/python tools/reference.py --check
	$(BIN)/python tools/build_site.py

docs-serve: docs ## build the site, and show it at http://127.0.0.1:8000
	$(BIN)/python -m http.server --bind 127.0.0.1 --directory site

readme: setup ## run the commands in the documents, and put what they print, and the picture, there
	$(BIN)/tpucfg ladder --env prod --format svg > docs/images/ladder.svg
	$(BIN)/python tools/readme_blocks.py --write

lock: setup ## choose the versions of all packages anew
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

clean: ## remove what these recipes made
	rm -rf $(VENV) .cache dist site

# The environments' stamps: what is installed is what the locks say.

$(VENV)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo 'tpucfg needs Python 3.11 or newer; name one, for example: make $(MAKECMDGOALS) PYTHON=python3.12' >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/runtime: requirements.txt pyproject.toml | $(VENV)/python
	@echo 'installing into $(VENV)' >&2
	@$(BIN)/pip install --quiet --requirement requirements.txt
	@$(BIN)/pip install --quiet --no-build-isolation --no-deps --editable .
	@touch $@

$(VENV)/tensorflow/installed: tests/trainer/requirements.txt
	@echo 'installing into $(VENV)/tensorflow' >&2
	@$(PYTHON) -m venv --clear $(VENV)/tensorflow
	@$(VENV)/tensorflow/bin/pip install --quiet --requirement tests/trainer/requirements.txt
	@touch $@

$(VENV)/development: requirements-dev.txt requirements-infra.txt $(VENV)/runtime
	@$(BIN)/pip install --quiet --requirement requirements-dev.txt --requirement requirements-infra.txt
	@touch $@
