"""The check that runs a Spark job, with programs in place of the job."""

from __future__ import annotations

import json
import sys

import pytest

from udfs.check._spark import check_spark

REPORT = {
    "spark": "4.3.0",
    "python": "/env/bin/python",
    "version": "3.12.1",
    "twice": [0, 2, 4],
    "start_seconds": 4.25,
    "seconds": 1.5,
}


def program(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def printing(report: object) -> list[str]:
    return program(f"print('a line of Spark'); print({json.dumps(report)!r})")


def failing(error: str) -> list[str]:
    return program(f"import sys; sys.exit({error!r})")


def test_a_job_that_ends_well_is_ok() -> None:
    found = check_spark(printing(REPORT))
    assert found.state == "ok"
    assert found.text == (
        "4.3.0, started in 4.2 s; a job with three calls took 1.5 s in Python 3.12.1, /env/bin/python"
    )


@pytest.mark.parametrize(
    ("error", "text", "remedy"),
    [
        ("java.net.UnknownHostException: laptop: laptop", "own name has no address", "SPARK_LOCAL_IP=127.0.0.1"),
        ("BindException: Service 'sparkDriver' failed after 16 retries", "cannot listen", "SPARK_LOCAL_IP"),
        ("java.lang.UnsupportedClassVersionError: org/apache/spark", "too old for this Spark", "JAVA_HOME"),
        ("java.lang.UnsupportedOperationException: getSubject is not supported", "too new", "JAVA_HOME"),
        ("java.io.IOException: No space left on device", "the disk is full", "SPARK_LOCAL_DIRS"),
        ("OpenJDK: Cannot allocate memory", "not enough memory", "--driver-memory"),
        ("[PYTHON_VERSION_MISMATCH] Python in worker has", "another version of Python", "PYSPARK_PYTHON="),
        (
            "ModuleNotFoundError: the Python of Spark's workers, /usr/bin/python3, has no module trio. Before Spark",
            "the Python of the workers, /usr/bin/python3, has no module trio",
            "PYSPARK_PYTHON=",
        ),
        ("ModuleNotFoundError: No module named 'pyspark'", "No module named 'pyspark'", "pip install"),
        ("Python worker failed to connect back.", "within Spark's limit", "less busy"),
    ],
)
def test_a_known_fault_has_its_remedy(error: str, text: str, remedy: str) -> None:
    found = check_spark(failing(f"many lines\n{error}\nmany more"))
    assert found.state == "fault"
    assert text in found.text
    assert remedy in found.remedy


def test_an_unknown_fault_shows_the_end_of_the_output_and_the_command() -> None:
    found = check_spark(failing("something else"))
    assert found.state == "fault"
    assert found.text == "the job ended with status 1:\n    something else"
    assert sys.executable in found.remedy


@pytest.mark.parametrize("output", ["", "[1]", "not JSON"])
def test_a_job_without_a_report_is_a_fault(output: str) -> None:
    assert check_spark(program(f"print({output!r})")).state == "fault"


def test_wrong_results_are_a_fault() -> None:
    assert check_spark(printing(REPORT | {"twice": [0]})).text == "the job has wrong results: [0]"


def test_a_job_that_hangs_is_a_fault() -> None:
    found = check_spark(program("input_that_never_comes = __import__('threading').Event().wait()"), seconds=0.5)
    assert (found.state, found.text) == ("fault", "the job did not end within 0.5 seconds")
