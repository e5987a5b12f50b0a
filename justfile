# `.ci/just` creates .venv and runs these recipes. An installed just works as well.

set positional-arguments

python := ".venv/bin/python"

# Includes the scripts of docs/examples and their output
cog := python + " -m cogapp -I .ci -p 'from pages import example'"
# Tests that share a JVM or a server run in the same process: see tests/scheduling.py
parallel := "-n 3"
documents := `grep -rl --include='*.md' '<!-- \[\[\[cog ' README.md docs | sort | xargs`

# The Python of Spark's workers. Unset, it would be the first `python3` on PATH
export PYSPARK_PYTHON := justfile_directory() / python

# It would replace the Spark in .venv
unexport SPARK_HOME

# Without bytecode, each of Spark's workers compiles PySpark again: seconds per task
unexport PYTHONDONTWRITEBYTECODE

# List the recipes
default:
    @{{ quote(just_executable()) }} --list --unsorted

# Install the project and its tools into .venv, if that is not done
[no-exit-message]
setup:
    @.ci/setup

# Run the main job: enrich a month of flights over HTTP (--full: the year; --help: all options)
[no-exit-message]
demo *ARGS: _java
    @.ci/setup demo
    @exec {{ python }} -m udfs.demo "$@" # exec: otherwise the SIGTERM that just passes on would end only the shell

# Run the tests in three processes, in about five minutes on two cores; with pytest's arguments, run what they select in one process
[no-exit-message]
test *ARGS: _java setup
    {{ python }} -m pytest {{ if ARGS == "" { parallel + " -m 'not (connect or variation or thorough or soak)'" } else { "" } }} "$@"

# Run the tests for the edit loop, in about a minute: no Java, no servers, nothing slow; accepts pytest's arguments
[no-exit-message]
quick *ARGS: setup
    {{ python }} -m pytest {{ parallel }} -m "not (spark or processes or slow or variation or thorough or soak)" "$@"

# Run the variations of the tests of `just test`; `just check` runs them beside it
[no-exit-message]
variations *ARGS: _java setup
    {{ python }} -m pytest {{ parallel }} -m "variation and not (thorough or soak)" "$@"

# Run what `just test` leaves out, before a release: longer variations, Spark Connect, most examples; more of each property
[no-exit-message]
thorough *ARGS: _java setup
    {{ python }} -m pytest {{ parallel }} -m "(connect or variation or thorough or hypothesis) and not soak" \
        --hypothesis-profile=thorough "$@"

# Run the operator in every interleaving of small worlds, the larger ones, too: two minutes of CPU time
[no-exit-message]
explore *ARGS: setup
    {{ python }} -m pytest {{ parallel }} tests/explored "$@"

# Check style, formatting, the pages and the import contracts
lint: setup
    {{ python }} -m ruff check
    {{ python }} -m ruff format --check
    {{ python }} .ci/documents.py
    {{ python }} .ci/check_pages.py
    {{ cog }} --check {{ documents }}
    {{ python }} .ci/llms.py --check
    {{ python }} .venv/bin/lint-imports --no-logo --no-cache

# Check the types with mypy and pyright, for the oldest and the newest Python
types: setup
    {{ python }} -m mypy
    {{ python }} -m mypy --python-version 3.14
    PYRIGHT_PYTHON_IGNORE_WARNINGS=1 {{ python }} -m pyright
    PYRIGHT_PYTHON_IGNORE_WARNINGS=1 {{ python }} -m pyright --pythonversion 3.14

# Measure the operator, the UDFs and the installed peers (--quick: in about five minutes; --help: all options)
[no-exit-message]
bench *ARGS: setup _plots
    @exec {{ python }} -m benchmarks "$@"

# Run every example of README and docs as a user would, and check the pages
docs: _java setup
    {{ python }} -m pytest tests/docs

# Write the examples of docs/examples into README and docs, the error messages, and docs/llms.txt
pages: setup
    {{ python }} .ci/documents.py
    {{ cog }} -r {{ documents }}
    {{ python }} .ci/llms.py

# Build the documentation as a site that also works from files: site/index.html
site: setup
    {{ python }} .ci/documents.py
    {{ python }} -m zensical build --clean --strict

# Draw the timelines of the pages again
drawings: setup
    {{ python }} .ci/drawings.py docs

# Run the notebooks of docs/notebooks, and write their outputs into them
notebooks: setup
    {{ python }} .ci/notebooks.py

# Build wheel and sdist, and test the installed wheel: without extras, with `http`, and the README's example with Spark
wheel: _java setup
    .ci/wheel

# Run the tests that take an hour or more, and let Hypothesis try many examples
soak *ARGS: _java setup
    {{ python }} -m pytest -m "soak or hypothesis" --hypothesis-profile=soak --timeout=0 "$@"

# Run the Spark tests with PySpark 3.5 to 4.3, or those named (`just matrix 4.0`); `just matrix python`: the newest Python
[no-exit-message]
matrix *ARGS: _java setup
    @.ci/matrix "$@"

# Measure how much of both packages the tests without Java cover, in lines and branches, with one total
cover: setup
    {{ python }} -m coverage run -m pytest -m "not (spark or soak)"
    {{ python }} -m coverage report

# Run what CI runs with the oldest Python, in about half an hour
[no-exit-message]
check:
    @.ci/run

# Make a release here, without pushing or uploading: `just release 0.2.0` (`just release --dry-run`: leave nothing)
[no-exit-message]
release *ARGS: setup
    @.ci/release "$@"

# Remove .venv and all files of the tools and of Spark
clean:
    rm -rf .venv .matrix build dist site .cache .coverage .hypothesis .mypy_cache .pytest_cache .ruff_cache
    rm -rf spark-warehouse metastore_db artifacts derby.log
    find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Fails early, before the long installation, if Spark would find no Java
[no-exit-message]
_java: _venv
    @{{ python }} -m udfs.check java >/dev/null

# Installs what `--page` draws with, and the peers that run in the benchmark's process
_plots: setup
    @{{ python }} -c 'import aiohttp, aiometer, aiostream, httpx2, matplotlib, streamable' 2>/dev/null || \
        {{ python }} -m pip --quiet --disable-pip-version-check install --group bench

_venv:
    @.ci/just --version >/dev/null
