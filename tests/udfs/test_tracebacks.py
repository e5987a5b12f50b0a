"""Tracebacks as notes: what Spark sends to the driver starts with the user's exception."""

from __future__ import annotations

import asyncio
import json
import os
import re
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow as pa
import pytest
import trio
from pyspark.sql.types import DoubleType, StructField, StructType

from trio_asyncio_io import AsyncFunction
from trio_asyncio_io.adapters import in_thread
from trio_asyncio_io.policies import cached, single_flight
from udfs import ResultTypeError
from udfs._plan.arguments import make_settings
from udfs._plan.worker_python import for_map_in_arrow
from udfs._sent.settings import Enrichment
from udfs._spark_thread.conversion import RowConversion
from udfs._tracebacks import starting_in_user_code, traceback_as_note

BATCH = pa.RecordBatch.from_pydict({"n": [1]})


@pytest.fixture(autouse=True)
def _worker(monkeypatch: pytest.MonkeyPatch) -> None:
    """The default environment of a Spark worker."""
    monkeypatch.setenv("SPARK_SIMPLIFIED_TRACEBACK", "1")
    monkeypatch.setenv("SPARK_HIDE_TRACEBACK", "")  # so that the test restores it
    monkeypatch.setenv("SPARK_TRACEBACK_WITH_LOCALS", "")


def look_up(code: str) -> str:
    try:
        return {"EWR": "Newark"}[code]
    except KeyError as error:
        raise LookupError(f"unknown airport: {code}") from error


def failed() -> LookupError:
    with pytest.raises(LookupError) as caught, traceback_as_note():
        look_up("JFK")
    return caught.value


def error_text(error: BaseException) -> str:
    """The text that Spark sends to the driver when `SPARK_HIDE_TRACEBACK` is set."""
    return "".join(traceback.format_exception_only(error))


def test_the_message_comes_first_and_the_traceback_follows() -> None:
    lines = error_text(failed()).splitlines()
    assert lines[0] == "LookupError: unknown airport: JFK"
    assert lines[1] == ""
    assert lines[2] == "Traceback (most recent call last):"
    assert lines[-1] == "LookupError: unknown airport: JFK"
    assert 'raise LookupError(f"unknown airport: {code}") from error' in "\n".join(lines)


@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt, asyncio.CancelledError])
def test_the_message_of_a_base_exception_comes_first_too(kind: type[BaseException]) -> None:
    with pytest.raises(kind) as caught, traceback_as_note():
        raise kind("over and out")
    lines = error_text(caught.value).splitlines()
    assert lines[0].endswith(f"{kind.__name__}: over and out")
    assert lines[2] == "Traceback (most recent call last):"


def test_the_note_includes_the_cause() -> None:
    text = error_text(failed())
    assert (
        text.index("KeyError: 'JFK'") < text.index("The above exception was the direct cause") < text.rindex("Lookup")
    )


def test_spark_is_configured_to_send_no_traceback_of_its_own() -> None:
    failed()
    assert os.environ["SPARK_HIDE_TRACEBACK"]


def test_a_task_has_its_note_although_another_one_of_the_process_has_failed() -> None:
    failed()
    assert "Traceback (most recent call last):" in error_text(failed())


@pytest.mark.parametrize(
    ("name", "value"),
    [("SPARK_SIMPLIFIED_TRACEBACK", ""), ("SPARK_HIDE_TRACEBACK", "1"), ("SPARK_TRACEBACK_WITH_LOCALS", "1")],
)
def test_a_form_configured_by_the_user_is_respected(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(name, value)
    assert error_text(failed()) == "LookupError: unknown airport: JFK\n"


async def weather(n: int) -> float:
    return n / 2


def run_task(batches: Iterator[Any], settings: Any = None) -> None:
    """Run the function that Spark runs in a task."""
    added = StructType([StructField("temp", DoubleType())])
    settings = settings or make_settings(weather, 5.0, {})
    conversion = RowConversion(Enrichment(settings, added, "UTC", inputs=(0,)))
    list(for_map_in_arrow("weather", conversion.run)(batches))


def first_frame(error: BaseException) -> str:
    """The first frame in the note that holds the traceback, as "file, function"."""
    match = re.search(r'^  File "(.*)", line \d+, in (\w+)', error_text(error), re.MULTILINE)
    assert match is not None
    return f"{Path(match[1]).name}, {match[2]}"


async def raises(value: Any) -> None:
    raise OSError("the disk is full")


def raises_in_a_thread(value: Any) -> None:
    raise OSError("the disk is full")


class Unopened(AsyncFunction[Any, None]):
    async def open(self) -> None:
        raise OSError("the disk is full")

    async def invoke(self, value: Any) -> None: ...


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (raises, "raises"),
        (cached(raises), "raises"),
        (cached(single_flight(raises)), "raises"),
        (in_thread(raises_in_a_thread), "raises_in_a_thread"),
        (Unopened(), "open"),
    ],
    ids=["function", "cached", "single flight", "thread", "open"],
)
def test_the_traceback_starts_in_the_users_function(settings: Any, function: Any, name: str) -> None:
    with pytest.raises(OSError, match="the disk is full") as caught:
        run_task(iter([BATCH]), settings(function))
    assert first_frame(caught.value) == f"{Path(__file__).name}, {name}"


def test_the_traceback_starts_in_the_input_if_that_fails() -> None:
    def batches() -> Iterator[Any]:
        yield pa.RecordBatch.from_pydict({"n": pa.array([], pa.int64())})
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="full") as caught:
        run_task(batches())
    assert first_frame(caught.value) == f"{Path(__file__).name}, batches"


def test_a_traceback_of_our_frames_alone_is_complete() -> None:
    with pytest.raises(AttributeError) as caught:
        run_task(iter([[None]]))
    assert first_frame(caught.value) == "_tracebacks.py, traceback_as_note"


async def takes_two(one: Any, two: Any) -> None: ...


async def wrong_type(value: Any) -> str:
    return "warm"


@pytest.mark.parametrize(
    ("function", "kind"),
    [(takes_two, TypeError), (wrong_type, ResultTypeError), (trio.sleep_forever, TypeError)],
    ids=["arguments", "result", "library"],
)
def test_a_failure_that_no_users_frame_raised_has_no_traceback(settings: Any, function: Any, kind: type) -> None:
    with pytest.raises(kind) as caught:
        run_task(iter([BATCH]), settings(function))
    assert "File " not in error_text(caught.value)
    assert "row (1)" in error_text(caught.value)


def test_no_frame_of_the_project_is_left_between_those_of_the_user(settings: Any) -> None:
    async def outer(value: Any) -> None:
        await cached(raises)(value)

    with pytest.raises(OSError, match="full") as caught:
        run_task(iter([BATCH]), settings(outer))
    names = re.findall(r"^  File .*, in (\w+)", error_text(caught.value), re.MULTILINE)
    assert names == ["outer", "raises"]


def test_a_traceback_without_frames_of_the_user_is_kept_whole() -> None:
    with pytest.raises(ValueError, match="Expecting") as caught:
        json.loads("{")
    below_this_test = caught.value.with_traceback(caught.tb.tb_next)
    assert starting_in_user_code(below_this_test).__traceback__ is caught.tb.tb_next


def test_a_module_of_the_user_may_begin_like_the_project(settings: Any) -> None:
    module = ModuleType("udfs_of_mine")
    exec("async def look_up(value): raise OSError('full')", vars(module))
    with pytest.raises(OSError, match="full") as caught:
        run_task(iter([BATCH]), settings(module.look_up))
    assert first_frame(caught.value) == "<string>, look_up"


def test_a_failure_without_frames_of_the_user_shows_those_of_its_cause() -> None:
    error = ResultTypeError("it is not a number")
    with pytest.raises(LookupError) as cause:
        look_up("JFK")
    error.__cause__ = cause.value
    with pytest.raises(ResultTypeError) as caught, traceback_as_note():
        raise error
    assert "in look_up" in error_text(caught.value)


def test_exceptions_that_refer_to_each_other_have_one_traceback_each() -> None:
    error = LookupError("unknown airport")
    error.__context__ = group = ExceptionGroup("two", [error, OSError("full")])
    group.__context__ = error
    with pytest.raises(LookupError) as caught, traceback_as_note():
        raise error
    assert error_text(caught.value).startswith("LookupError: unknown airport")


def test_closing_a_generator_is_not_a_failure() -> None:
    def numbers() -> object:
        with traceback_as_note():
            yield 1

    generator = numbers()
    assert next(generator) == 1  # type: ignore[call-overload]
    generator.close()  # type: ignore[attr-defined]
    with traceback_as_note():
        pass


class CafeError(OSError):
    pass


def read() -> None:
    error = CafeError("cannot open caf\udce9.txt")
    error.add_note("row ('caf\udce9')")
    raise error


def test_a_text_that_utf8_cannot_encode_is_escaped() -> None:
    with pytest.raises(Exception, match=r"^cannot open caf\\udce9\.txt\n") as caught, traceback_as_note():
        read()
    text = error_text(caught.value)
    assert text.encode().decode() == text
    assert "CafeError: cannot open caf\\udce9.txt\nrow ('caf\\udce9')\n" in text
    assert "in read" in text  # its traceback


def test_an_exception_whose_str_raises_is_raised_unchanged() -> None:
    class MuteError(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no text")

    with pytest.raises(MuteError), traceback_as_note():
        raise MuteError
