# `make` lists what there is. Everything runs in .venv, which is made, and brought up to date, when it is needed.

BIN := .venv/bin
STAMP := .venv/.installed
DEMO := .venv/.demo
RELEASE := .venv-release/.installed
MUTMUT := .venv-mutants/.installed
PYTEST := $(BIN)/python -m pytest
# Three workers share the servers and the classes of a module; in order of path, so that a slice needs few servers.
SHARED := -n 3 --dist loadscope --no-loadscope-reorder
# Installing compiles these.
COMPILED := s3lake/source/kafka/columns.c s3lake/records/convert/read/json_check.c \
  s3lake/records/convert/read/json_columns.c s3lake/records/convert/read/json_tokens.h
# What a part of the tests skipped, for the last line of the next part.
NOT_RUN := .venv/.not-run
# Each part runs, whatever came of the one before; a failure of any of them is the exit code's, and is named last.
each_of = failed=; for part in $(1); do $(MAKE) --no-print-directory $$part || failed="$$failed $$part"; done; \
  if [ -n "$$failed" ]; then echo "failed:$$failed" >&2; exit 1; fi
SLICE ?= 1
BENCH ?= sink --records 1000000 --format json
TRIAL ?= soak --minutes 10

# Every process of the suite would compile and rewrite all its modules again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: sbom audit wheel help demo test test-fast test-real test-slow test-all slice durations lint types bench trial docs reference pictures java
.DELETE_ON_ERROR:
# Two targets may need the one environment.
.NOTPARALLEL:

help: ## List these commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(DEMO) java ## Land 200,000 events from an embedded Kafka in an embedded S3, and compare
	$(BIN)/s3lake demo

test: $(STAMP) ## Every change: the fast tests, then each real part once; the last line says what was not run
	+@$(call each_of,test-fast test-real)

test-fast: $(STAMP) ## Tests without a server, a JVM or a process of their own
	@rm -f $(NOT_RUN)
	$(PYTEST) -n auto --dist worksteal --durations=20 --not-run=$(NOT_RUN) -m "not (real or long or slow)"

test-real: $(STAMP) ## Each real part once: Kafka, S3, Spark, Dagster, a registry, PostgreSQL, a browser
	$(PYTEST) $(SHARED) --durations=25 --not-run=$(NOT_RUN) -m "(real or long) and not slow"

test-slow: $(STAMP) ## The slow tests
	$(PYTEST) $(SHARED) --durations=25 --not-run=$(NOT_RUN) -m slow

test-all: $(STAMP) ## And all slow ones
	+@$(call each_of,test-fast test-real test-slow)

slice: $(STAMP) ## One slice of ten of the slow tests: make slice SLICE=3
	$(PYTEST) $(SHARED) --durations=10 -m slow --splits 10 --group $(SLICE)

durations: $(STAMP) ## Measure all but the fast tests, and write .test_durations, by which slices are cut
	$(PYTEST) $(SHARED) --store-durations --clean-durations -m "real or long or slow"

lint: $(STAMP) ## ruff: rules and format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP) ## mypy --strict on s3lake/, benchmarks/, trials/ and docs/examples/
	$(BIN)/mypy

bench: $(STAMP) java ## What landing costs: make bench BENCH="sink --format parquet", or BENCH="limits --only hours"
	$(BIN)/python -W ignore -m benchmarks.$(BENCH)

trial: $(STAMP) java $(if $(filter mutants,$(TRIAL)),$(MUTMUT)) ## Harm, and what has landed compared: make trial TRIAL="soak --minutes 60 --seed 7"; TRIAL=--help lists all
	$(BIN)/python -W ignore -m trials $(TRIAL)

sbom: $(STAMP) $(RELEASE) ## Write dist/sbom.json: what s3lake depends on, as CycloneDX says it
	@mkdir -p dist
	.venv-release/bin/cyclonedx-py environment $(BIN)/python --pyproject pyproject.toml --output-reproducible -o dist/all.json
	$(BIN)/python release/sbom.py <dist/all.json >dist/sbom.json && rm dist/all.json

audit: $(RELEASE) ## Known vulnerabilities of the versions in constraints.txt, where an index tells them
	release/audit

wheel: $(RELEASE) ## Build dist/*.whl and dist/*.tar.gz, the same bytes from the same commit; S3LAKE_WHEEL: release/README.md
	SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) .venv-release/bin/python -m build --no-isolation

docs: $(STAMP) ## Build the site of docs/ in site/, without network; a broken link fails it
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict

pictures: $(STAMP) java ## Take the pictures of docs/ in Dagster's UI, with the tests that click in it
	$(PYTEST) s3lake_tests/ui --pictures docs

reference: $(STAMP) ## Write docs/reference/ again from the code, and draw the architecture
	$(BIN)/python docs/reference.py
	$(BIN)/python docs/architecture.py

$(RELEASE): release/requirements.txt
	python3 -m venv .venv-release
	.venv-release/bin/python -m pip install --quiet --disable-pip-version-check --no-input -r release/requirements.txt
	@touch $@

$(MUTMUT): release/mutants.txt constraints.txt $(STAMP)
	@rm -rf $(@D)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-input --target $(@D) -c constraints.txt -r $<
	@touch $@

# With a Python of your choice: make test PYTHON=python3.12
$(DEMO) $(STAMP): .ci/venv pyproject.toml constraints.txt hatch_build.py $(COMPILED)
	@PYTHON="$(PYTHON)" .ci/venv $(if $(filter $(DEMO),$@),demo,dev)
	@touch $(DEMO) $@

define FIND_JAVA
from s3lake import errors
from s3lake.land.spark import jars
try:
    jars.find_java()
except errors.ConfigurationError as error:
    raise SystemExit(str(error)) from None
endef
export FIND_JAVA

java: $(DEMO)
	@$(BIN)/python -c "$$FIND_JAVA"
