"""The headline: the user's exception before its traceback, unless the user wants something else."""

from __future__ import annotations

import asyncio
import os
import traceback
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import DoubleType, StructField, StructType

from udfs._dataframe import _named
from udfs._settings import make_settings
from udfs._task.enrichment import Enrichment
from udfs._task.tracebacks import headline_first


@pytest.fixture(autouse=True)
def _worker(monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment of one of Spark's workers, as it is by default."""
    monkeypatch.setenv("SPARK_SIMPLIFIED_TRACEBACK", "1")
    monkeypatch.setenv("SPARK_HIDE_TRACEBACK", "")  # so that it is restored, too
    monkeypatch.setenv("SPARK_TRACEBACK_WITH_LOCALS", "")


def look_up(code: str) -> str:
    try:
        return {"EWR": "Newark"}[code]
    except KeyError as error:
        raise LookupError(f"there is no {code}") from error


def failed() -> LookupError:
    with pytest.raises(LookupError) as caught, headline_first():
        look_up("JFK")
    return caught.value


def told(error: BaseException) -> str:
    """What Spark sends to the driver: without a traceback if it is asked to."""
    return "".join(traceback.format_exception_only(error))


def test_the_message_stands_first_and_the_way_there_below() -> None:
    lines = told(failed()).splitlines()
    assert lines[0] == "LookupError: there is no JFK"
    assert lines[1] == ""
    assert lines[2] == "Traceback (most recent call last):"
    assert lines[-1] == "LookupError: there is no JFK"
    assert 'raise LookupError(f"there is no {code}") from error' in "\n".join(lines)


@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt, asyncio.CancelledError])
def test_an_exception_that_would_end_the_process_stands_first_as_well(kind: type[BaseException]) -> None:
    with pytest.raises(kind) as caught, headline_first():
        raise kind("over and out")
    lines = told(caught.value).splitlines()
    assert lines[0].endswith(f"{kind.__name__}: over and out")
    assert lines[2] == "Traceback (most recent call last):"


def test_a_cause_is_told_which_spark_leaves_out() -> None:
    text = told(failed())
    assert (
        text.index("KeyError: 'JFK'") < text.index("The above exception was the direct cause") < text.rindex("Lookup")
    )


def test_spark_is_asked_to_tell_the_exception_without_its_traceback() -> None:
    failed()
    assert os.environ["SPARK_HIDE_TRACEBACK"] == "1"


@pytest.mark.parametrize(
    ("name", "value"),
    [("SPARK_SIMPLIFIED_TRACEBACK", ""), ("SPARK_HIDE_TRACEBACK", "1"), ("SPARK_TRACEBACK_WITH_LOCALS", "1")],
)
def test_who_has_chosen_a_form_of_the_traceback_gets_that(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    assert told(failed()) == "LookupError: there is no JFK\n"


def task(batches: Iterator[Any]) -> Any:
    """The function that Spark runs in a task."""
    added = StructType([StructField("temp", DoubleType())])
    return _named(Enrichment(make_settings(weather, 5.0, {}), added, "UTC", inputs=(0,)))(batches)


async def weather(n: int) -> float:
    return n / 2


def first_frame(error: BaseException) -> str:
    """The first line about a frame in the note that holds the traceback."""
    frames = [line for line in told(error).splitlines() if line.startswith('  File "')]
    return frames[0]


def test_our_own_frames_are_left_out() -> None:
    def batches() -> Iterator[Any]:
        yield pa.RecordBatch.from_pydict({"n": pa.array([], pa.int64())})
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="full") as caught:
        list(task(batches()))
    assert first_frame(caught.value).endswith(", in batches")
    assert 'raise OSError("the disk is full")' in told(caught.value)


def test_what_comes_from_us_alone_is_told_in_full() -> None:
    with pytest.raises(AttributeError) as caught:
        list(task(iter([[None]])))
    assert "udfs" in first_frame(caught.value)


def test_leaving_is_no_failure() -> None:
    def numbers() -> object:
        with headline_first():
            yield 1

    generator = numbers()
    assert next(generator) == 1  # type: ignore[call-overload]
    generator.close()  # type: ignore[attr-defined]
    with headline_first():
        pass


class CafeError(OSError):
    pass


def read() -> None:
    error = CafeError("cannot open caf\udce9.txt")
    error.add_note("row ('caf\udce9')")
    raise error


def test_an_exception_whose_text_cannot_be_encoded_is_raised_with_a_text_that_can() -> None:
    with pytest.raises(Exception, match=r"^cannot open caf\\udce9\.txt\n") as caught, headline_first():
        read()
    text = told(caught.value)
    assert text.encode().decode() == text
    assert "CafeError: cannot open caf\\udce9.txt\nrow ('caf\\udce9')\n" in text
    assert "in read" in text  # its traceback


def test_an_exception_whose_str_raises_is_raised_as_itself() -> None:
    class MuteError(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no text")

    with pytest.raises(MuteError), headline_first():
        raise MuteError
