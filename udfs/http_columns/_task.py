"""The HTTP rows: requests out of Arrow columns, and what came of them as an Arrow array."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.types import IntegerType, MapType, StringType, StructField, StructType

from trio_asyncio_io import ElementTimeoutError

from .._row import Failure, Row
from .._settings import Settings
from .._task.conversion import Conversion
from .._task.converters import arrow_type
from .._task.extra_columns import ERROR_TYPE
from ._answer import Answer
from ._request import Request

__all__ = ["ANSWER_TYPE", "PARAMETERS", "HttpWork"]

ANSWER_TYPE: Final = StructType(
    [
        StructField("status", IntegerType()),
        StructField("headers", MapType(StringType(), StringType())),
        StructField("body", StringType()),
        StructField("error", ERROR_TYPE),
    ]
)

# What each function is called with, and how many of these must be there
PARAMETERS: Final = {
    "http_get": (("url", "headers"), 1),
    "http_request": (("method", "url", "headers", "body"), 2),
}

# An Arrow array of strings holds 2 GiB; a character is four bytes at most.
_CHARACTERS: Final = 64 * 1024 * 1024

# What may hold a secret: a URL, or a part of one up to its host. Each pattern starts only where a word does, so that
# it takes linear time.
_URL: Final = re.compile(r"(?<!\S)\S*://\S+")
_USERINFO: Final = re.compile(r"(?<![^\s/'\"])[^\s/'\"]*@")

_MESSAGE_CHARACTERS: Final = 1_000


@dataclass(frozen=True, slots=True)
class HttpWork:
    """What a task needs to know; pickled.

    Args:
        settings: How its calls are made.
        kind: "http_get" or "http_request".
    """

    settings: Settings
    kind: str

    def run(self, batches: Iterator[Any]) -> Iterator[pa.Array]:
        """The answers to the requests in the batches, row by row.

        Raises:
            TypeError: The columns are not those of the function.
        """
        return HttpConversion(self.settings, self.kind).run(batches)


class HttpConversion(Conversion[Any, pa.Array]):
    """Converts columns to requests, and their answers to an array.

    Args:
        settings, kind: As in `HttpWork`.
    """

    def __init__(self, settings: Settings, kind: str) -> None:
        super().__init__(settings)
        self._kind = kind
        self._numbers = count()

    def read(self, batch: Any) -> list[Row]:
        """The rows of a batch, which is an array or a tuple of arrays."""
        return self._rows(batch if isinstance(batch, tuple) else (batch,), next(self._numbers))

    def write(self, rows: list[Row]) -> Iterator[pa.Array]:
        """The answers, in the order of the rows."""
        for part in _parts(rows):
            yield pa.array(
                [_as_struct(row, self.settings.options.timeout) for row in part], type=arrow_type(ANSWER_TYPE)
            )

    def _rows(self, columns: Sequence[pa.Array], number: int) -> list[Row]:
        names, least = PARAMETERS[self._kind]
        if not least <= len(columns) <= len(names):
            raise TypeError(f"{self._kind} takes {', '.join(names)}, of which the first {least} must be there")
        values = {name: _values(self._kind, name, column) for name, column in zip(names, columns, strict=False)}
        size = len(columns[0])
        methods = values.get("method", ["GET"] * size)
        headers, bodies = values.get("headers", [None] * size), values.get("body", [None] * size)
        parts = zip(methods, values["url"], headers, bodies, strict=True)
        return [
            Row((Request(method, url, pairs or (), body),), number, index)
            for index, (method, url, pairs, body) in enumerate(parts)
        ]


def _values(kind: str, name: str, column: pa.Array) -> list[Any]:
    """The column's values, if it can be this parameter."""
    fits, wanted = _WANTED[name]
    if not (fits(column.type) or pa.types.is_null(column.type)):
        raise TypeError(f"{name} of {kind} must be {wanted}, and is {column.type}: cast it")
    values: list[Any] = column.to_pylist()
    return values


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _is_text_or_binary(kind: pa.DataType) -> bool:
    return _is_text(kind) or bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


def _is_text_by_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_map(kind)) and _is_text(kind.key_type) and _is_text(kind.item_type)


_WANTED: Final = {
    "method": (_is_text, "a string"),
    "url": (_is_text, "a string"),
    "headers": (_is_text_by_text, "a map<string, string>"),
    "body": (_is_text_or_binary, "a string or binary"),
}


def _parts(chunk: list[Row]) -> Iterator[list[Row]]:
    """The chunk in parts that an Arrow array can hold."""
    part: list[Row] = []
    length = 0
    for row in chunk:
        own = len(row.result.body) if row.result else 0
        if part and length + own > _CHARACTERS:
            yield part
            part, length = [], 0
        part.append(row)
        length += own
    yield part


def _as_struct(row: Row, timeout: float) -> dict[str, Any] | None:
    request: Request = row.inputs[0]
    if row.failure is None:
        return None if row.result is None else _of_answer(row.result)
    # A failure that came of its own accord has no other outcome beside it; a deadline or the last retry has.
    if request.last is None:
        return _of_failure(row.failure, row.failure.exception, timeout)
    if request.last.response is not None:
        return _of_answer(request.last.response)
    assert request.last.error is not None
    return _of_failure(row.failure, request.last.error, timeout)


def _of_answer(answer: Answer) -> dict[str, Any]:
    return {"status": answer.status, "headers": list(answer.headers.items()), "body": answer.body, "error": None}


def _of_failure(failure: Failure, exception: Exception, timeout: float) -> dict[str, Any]:
    error = Failure(exception, failure.attempts, failure.seconds).as_struct()
    if isinstance(exception, ElementTimeoutError):
        error["message"] = f"there was no answer within the timeout of {timeout:g} s"
    error["message"] = _shortened(_USERINFO.sub("", _URL.sub("<URL>", error["message"])))
    return {"status": None, "headers": None, "body": None, "error": error}


def _shortened(message: str) -> str:
    """The message without most of its text if a server made it too long."""
    if len(message) <= _MESSAGE_CHARACTERS:
        return message
    return f"{message[:_MESSAGE_CHARACTERS]}… ({len(message):,} characters)"
