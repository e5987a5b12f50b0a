"""HttpConversion: Arrow columns to requests, and their outcomes to an Arrow array of structs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import count
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.types import MapType, StringType

from trio_asyncio_io import ElementTimeoutError

from .._sent.arrow_types import arrow_type, struct_type
from .._sent.extra_columns import ERROR_TYPE
from .._sent.row import Failure, Row
from .._sent.settings import Settings
from .._spark_thread.batches import ranges
from .._spark_thread.conversion import Conversion
from ._outcome import AttemptError, HttpResponse
from ._requests import HttpRequest

RESPONSE_TYPE: Final = struct_type(
    status="integer", headers=MapType(StringType(), StringType()), body="string", error=ERROR_TYPE
)
RESPONSE_ARROW_TYPE: Final = arrow_type(RESPONSE_TYPE)

# The parameters of each function, and how many of them are required
PARAMETERS: Final = {
    "http_get": (("url", "headers"), 1),
    "http_request": (("method", "url", "headers", "body"), 2),
}

# Characters of the bodies in one Arrow array. Its strings may have 2 GiB, and a character has up to four bytes
_CHARACTERS: Final = 64 * 1024 * 1024

# Parts of a message that may contain a secret: a URL, or the user part of one. Each pattern matches only at the start
# of a word, so it takes linear time
_URL: Final = re.compile(r"(?<!\S)\S*://\S+")
_USERINFO: Final = re.compile(r"(?<![^\s/'\"])[^\s/'\"]*@")


class HttpConversion(Conversion[Any, pa.Array]):
    """Converts columns to requests, and their responses to an array.

    Args:
        settings: The settings of the calls.
        function: "http_get" or "http_request".
    """

    def __init__(self, settings: Settings, function: str) -> None:
        super().__init__(settings)
        self._function = function
        self._numbers = count()

    def read(self, batch: Any) -> list[Row]:
        """The rows of a batch, which is an array or a tuple of arrays.

        Raises:
            TypeError: The function has too few or too many columns, or one of another type.
        """
        columns = batch if isinstance(batch, tuple) else (batch,)
        names, required = PARAMETERS[self._function]
        if not required <= len(columns) <= len(names):
            rule = f"{self._function} takes {', '.join(names)}, of which the first {required} are required"
            raise TypeError(f"{rule}, got {len(columns)}")
        values = {name: _values(self._function, name, column) for name, column in zip(names, columns, strict=False)}
        size, number = len(columns[0]), next(self._numbers)
        methods = values.get("method", ["GET"] * size)
        headers, bodies = values.get("headers", [None] * size), values.get("body", [None] * size)
        parts = zip(methods, values["url"], headers, bodies, strict=True)
        return [
            Row((_request(method, url, pairs, body),), number, index)
            for index, (method, url, pairs, body) in enumerate(parts)
        ]

    def write(self, rows: list[Row]) -> Iterator[pa.Array]:
        """The outcomes, in the order of the rows."""
        sizes = [0 if (response := _response(row)) is None else len(response.body) for row in rows]
        for start, end in ranges(sizes, _CHARACTERS):
            structs = [_as_struct(row, self.settings.options.timeout) for row in rows[start:end]]
            yield pa.array(structs, type=RESPONSE_ARROW_TYPE)


def _request(method: str | None, url: str | None, headers: Any, body: Any) -> HttpRequest | None:
    """The request of a row. None, so that the row is skipped, if it has no method or no URL."""
    return None if method is None or url is None else HttpRequest(method, url, headers or (), body)


def _values(function: str, name: str, column: pa.Array) -> list[Any]:
    """Return the values of a column, after a check of its type."""
    fits, rule = _TYPES[name]
    if not (fits(column.type) or pa.types.is_null(column.type)):
        raise TypeError(f"{name} of {function} must be {rule}, and is {column.type}: cast it")
    values: list[Any] = column.to_pylist()
    return values


def _is_text(dtype: pa.DataType) -> bool:
    return bool(pa.types.is_string(dtype) or pa.types.is_large_string(dtype))


def _is_text_or_binary(dtype: pa.DataType) -> bool:
    return _is_text(dtype) or bool(pa.types.is_binary(dtype) or pa.types.is_large_binary(dtype))


def _is_text_by_text(dtype: pa.DataType) -> bool:
    return bool(pa.types.is_map(dtype)) and _is_text(dtype.key_type) and _is_text(dtype.item_type)


_TYPES: Final = {
    "method": (_is_text, "a string"),
    "url": (_is_text, "a string"),
    "headers": (_is_text_by_text, "a map<string, string>"),
    "body": (_is_text_or_binary, "a string or binary"),
}


def _response(row: Row) -> HttpResponse | None:
    """The response that is the result of a row. When retries or time are used up, it is that of the last attempt."""
    if row.failure is None:
        response: HttpResponse | None = row.result
        return response
    request: HttpRequest = row.inputs[0]
    return None if request.last is None else request.last.response


def _as_struct(row: Row, timeout: float) -> dict[str, Any] | None:
    response, failure = _response(row), row.failure
    if response is not None:
        headers = list(response.headers.items())
        return {"status": response.status, "headers": headers, "body": response.body, "error": None}
    if failure is None:
        return None
    last: AttemptError | None = row.inputs[0].last
    exception = last.error if last is not None and last.error is not None else failure.exception
    error = Failure(exception, failure.attempts, failure.seconds).as_struct()
    if isinstance(exception, ElementTimeoutError):
        error["message"] = f"there was no answer within the timeout of {timeout:g} s"
    error["message"] = _USERINFO.sub("", _URL.sub("<URL>", error["message"]))
    return {"status": None, "headers": None, "body": None, "error": error}
