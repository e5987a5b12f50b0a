"""The options of a memo, and its manifest."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import types as T  # noqa: N812 - the usual name

from udfs import Memo, MemoError
from udfs._memo.files import MemoFiles
from udfs._memo.layout import Layout
from udfs._memo.memo import as_memo

NUMBER = T.StructType([T.StructField("n", T.LongType())])
LAYOUT = Layout("look_up", NUMBER, T.DoubleType(), ("n",))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"max_age": 0}, "max_age must be above 0 seconds, got 0"),
        ({"max_age": math.nan}, "max_age must be at least 0 seconds, got nan"),
        ({"remember_failures_for": -1}, "remember_failures_for must be at least 0 seconds, got -1"),
        ({"write_every": math.inf}, "write_every must be finite, got inf"),
    ],
    ids=str,
)
def test_a_value_out_of_range_is_a_value_error(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Memo("memo", **arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"path": 5}, 'memo must be a path such as "/data/weather", or a Memo, got 5'),
        ({"path": ""}, "memo must be a path"),
        ({"path": "memo", "max_age": "1 day"}, "max_age must be a number of seconds, got '1 day'"),
        ({"path": "memo", "version": 2}, 'version must be a string such as "2", got 2'),
        ({"path": "memo", "name": ""}, "name must be the name of a function, got ''"),
    ],
    ids=str,
)
def test_a_value_of_the_wrong_type_is_a_type_error(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        Memo(**arguments)


def test_a_path_is_a_memo_with_the_defaults(tmp_path: Path) -> None:
    assert as_memo(tmp_path) == as_memo(str(tmp_path)) == Memo(str(tmp_path))


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (Layout("geocode", NUMBER, T.DoubleType(), ("n",)), "has function 'look_up', .* 'geocode': give each function"),
        (
            Layout("look_up", NUMBER, T.LongType(), ("n",)),
            "has answer 'double', .* 'bigint': give the new columns these",
        ),
        (
            Layout("look_up", T.StructType([T.StructField("n", T.StringType())]), T.DoubleType(), ("n",)),
            "has inputs 'struct<n:bigint>', .* 'struct<n:string>': give the inputs these names and types",
        ),
        (
            Layout("look_up", NUMBER, T.DoubleType(), ("m",)),
            "has spread_by .*: use the same operator and the same key=",
        ),
    ],
    ids=["function", "answer", "inputs", "key"],
)
def test_a_memo_of_another_function_or_schema_is_refused(tmp_path: Path, other: Layout, message: str) -> None:
    files = MemoFiles(str(tmp_path))
    LAYOUT.claim(files)
    LAYOUT.claim(files)
    with pytest.raises(MemoError, match=f"the memo {tmp_path} {message}"):
        other.claim(files)


@pytest.mark.parametrize("text", ["", "not json", "[1]"], ids=repr)
def test_a_damaged_manifest_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "_memo.json").write_text(text)
    with pytest.raises(MemoError, match=f"the memo {tmp_path}|_memo.json of the memo {tmp_path} is not JSON"):
        LAYOUT.claim(MemoFiles(str(tmp_path)))
