# `.ci/just` makes .venv and runs these; where there is a just already, that does as well.

set positional-arguments

python := ".venv/bin/python"

# Includes the scripts of docs/examples and their output
cog := python + " -m cogapp -I .ci -p 'from pages import example'"
documents := "README.md docs/index.md docs/operator.md docs/spark.md"

# Spark starts its workers with this, and else with any `python3`
export PYSPARK_PYTHON := justfile_directory() / python

# A Spark of the machine's own would be taken in place of the one in .venv
unexport SPARK_HOME

# Without bytecode, each of Spark's workers compiles PySpark anew: seconds per task
unexport PYTHONDONTWRITEBYTECODE

# List the recipes
default:
    @{{ quote(just_executable()) }} --list --unsorted

# Install the project and its tools into .venv, unless that is done
[no-exit-message]
setup:
    @.ci/setup

# Run the main job: a month of flights, enriched over HTTP (--full: the year; --help: all options)
[no-exit-message]
demo *ARGS: _java setup
    @exec {{ python }} -m udfs.demo "$@" # exec: the SIGTERM that just passes on must not end at a shell

# Run the tests, two files at a time; or, with pytest's arguments, those tests in one process
[no-exit-message]
test *ARGS: _java setup
    {{ python }} -m pytest {{ if ARGS == "" { "-n 2 --dist loadfile" } else { "" } }} "$@"

# Run the tests for the edit loop, in about a minute: without Java, servers and soak tests; takes pytest's arguments
[no-exit-message]
quick *ARGS: setup
    {{ python }} -m pytest -n 2 -m "not (spark or processes or soak)" "$@"

# Check style, formatting and the import contracts
lint: setup
    {{ python }} -m ruff check
    {{ python }} -m ruff format --check
    {{ cog }} --check {{ documents }}
    {{ python }} .venv/bin/lint-imports --no-logo --no-cache

# Check the types of both packages with mypy and pyright
types: setup
    {{ python }} -m mypy
    PYRIGHT_PYTHON_IGNORE_WARNINGS=1 {{ python }} -m pyright

# Measure the operator and the UDFs, beside the peers that are installed (--quick: in about five minutes; --help: all options)
[no-exit-message]
bench *ARGS: setup _plots
    @exec {{ python }} -m benchmarks "$@"

# Install the peers of the benchmark: the light ones into .venv, the heavy ones below .bench, or those named (`daft`)
[no-exit-message]
bench-setup *PEERS: setup _plots
    @.ci/bench_peers "$@"

# Run every example of README and docs, as a user runs it, and check the pages
docs: _java setup
    {{ python }} -m pytest tests/docs

# Write the examples of docs/examples into README and docs
pages: setup
    {{ cog }} -r {{ documents }}

# Build wheel and sdist, and test the core against the installed wheel
wheel: setup
    .ci/wheel

# Run the tests that take minutes, and let Hypothesis look long
soak *ARGS: _java setup
    {{ python }} -m pytest -m "soak or hypothesis" --hypothesis-profile=soak --timeout=0 "$@"

# Run the Spark tests with each PySpark from 4.0 to 4.3, or with those named (`just matrix 4.0`); takes pytest's arguments
[no-exit-message]
matrix *ARGS: _java setup
    @.ci/matrix "$@"

# Measure how much of both packages the tests without Java cover: lines and branches, with the missing ones and the total
cover: setup
    {{ python }} -m coverage run -m pytest -m "not (spark or soak)"
    {{ python }} -m coverage report

# Run what CI runs
check: _java lint types wheel test

# Make a release here, without pushing or uploading: `just release 0.2.0` (--dry-run: leave nothing)
[no-exit-message]
release *ARGS: setup
    @.ci/release "$@"

# Remove .venv and all that the tools and Spark have left
clean:
    rm -rf .venv .bench .matrix build dist .coverage .hypothesis .mypy_cache .pytest_cache .ruff_cache
    rm -rf spark-warehouse metastore_db artifacts derby.log
    find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Before everything that starts Spark, and before the long installation
[no-exit-message]
_java: _venv
    @{{ python }} .ci/java_check.py

# What `--page` draws with, and the peers that run in the benchmark's own process
_plots: setup
    @{{ python }} -c 'import aiohttp, aiometer, aiostream, httpx2, matplotlib, streamable' 2>/dev/null || \
        {{ python }} -m pip --quiet --disable-pip-version-check install --editable '.[bench]'

_venv:
    @.ci/just --version >/dev/null
