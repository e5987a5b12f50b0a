"""Layout: the columns of a memo's files, and the manifest that names the function to which they belong."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.types import DataType, StructType

from .._sent.column_types import ERROR_TYPE, arrow_type, plan_type
from .errors import MemoError
from .files import BUCKETS, MemoFiles

__all__ = ["Layout"]

_MANIFEST: Final = "_memo.json"
_FORMAT: Final = 1


@dataclass(frozen=True, slots=True)
class Layout:
    """What a memo holds. All who use it must agree on this.

    Attributes:
        function: The name of the function.
        inputs: The input columns of a call.
        answer: The type of an answer: of the new column, a struct of several, or an array of these with `flatten`.
        spread_by: The names of the input columns whose hash is the bucket.
    """

    function: str
    inputs: StructType
    answer: DataType
    spread_by: tuple[str, ...]

    @property
    def schema(self) -> pa.Schema:
        """The columns of a file."""
        inputs = pa.struct([pa.field(each.name, arrow_type(each.dataType)) for each in self.inputs.fields])
        return pa.schema(
            [
                pa.field("bucket", pa.int32()),
                pa.field("key", pa.binary()),
                pa.field("inputs", inputs),
                pa.field("answer", arrow_type(self.answer)),
                pa.field("error", arrow_type(ERROR_TYPE)),
                pa.field("answered_at", pa.timestamp("us", tz="UTC")),
                pa.field("function", pa.string()),
                pa.field("version", pa.string()),
            ]
        )

    def table(
        self,
        calls: Sequence[tuple[int, bytes]],
        inputs: Sequence[pa.Array],
        answers: pa.Array,
        errors: Sequence[Any],
        *,
        at: float,
        version: str,
    ) -> pa.Table:
        """Answers as a file has them.

        Args:
            calls: The bucket and the key of each.
            inputs: The values of each input column.
            answers, errors: One for each call. A call that failed has an error and no answer.
            at: When they were answered, in seconds since the epoch.
            version: The version of the answers.
        """
        schema = self.schema
        fields = list(schema.field("inputs").type)
        values = [value.cast(field.type) for value, field in zip(inputs, fields, strict=True)]
        times = pa.array([round(at * 1e6)] * len(calls), pa.int64()).cast(pa.timestamp("us", tz="UTC"))
        columns = [
            pa.array([bucket for bucket, _ in calls], pa.int32()),
            pa.array([key for _, key in calls], pa.binary()),
            pa.StructArray.from_arrays(values, fields=fields),
            answers,
            pa.array(errors, schema.field("error").type),
            times,
            pa.array([self.function] * len(calls), pa.string()),
            pa.array([version] * len(calls), pa.string()),
        ]
        return pa.Table.from_arrays(columns, schema=schema)

    def claim(self, files: MemoFiles) -> None:
        """Write the manifest of a new memo, or compare it with that of an existing one.

        Raises:
            MemoError: The memo belongs to another function, or to other types.
        """
        wanted = self._manifest()
        if files.read_text(_MANIFEST) is None:
            files.write_text(_MANIFEST, json.dumps(wanted, indent=1))
        found = _parsed(files)
        for name, value in wanted.items():
            if found.get(name) != value:
                raise MemoError(_mismatch(files.path, name, found.get(name), value))

    def check(self, files: MemoFiles) -> None:
        """Check, in a worker, that the memo is there.

        Raises:
            MemoError: It is not: the path is not shared.
        """
        if files.read_text(_MANIFEST) is None:
            raise MemoError(
                f"this worker does not see the memo {files.path}, which the driver has made: use a path on storage "
                "that the driver and all workers share"
            )

    def _manifest(self) -> dict[str, Any]:
        return {
            "format": _FORMAT,
            "function": self.function,
            "inputs": plan_type(self.inputs).simpleString(),
            "answer": plan_type(self.answer).simpleString(),
            "spread_by": list(self.spread_by),
            "buckets": BUCKETS,
        }


def _parsed(files: MemoFiles) -> dict[str, Any]:
    try:
        parsed = json.loads(files.read_text(_MANIFEST) or "")
    except ValueError as error:
        raise MemoError(
            f"{_MANIFEST} of the memo {files.path} is not JSON ({error}): use another directory, or remove this one"
        ) from error
    return parsed if isinstance(parsed, dict) else {}


_REMEDIES: Final = {
    "format": "use the release that wrote it, or another directory",
    "function": "give each function a memo of its own; if it was only renamed, give Memo(path, name=...) the old name",
    "inputs": "give the inputs these names and types, or use another directory",
    "answer": "give the new columns these types, or use another directory",
    "spread_by": "use the same operator and the same key=, or another directory",
    "buckets": "use the release that wrote it, or another directory",
}


def _mismatch(path: str, name: str, found: Any, wanted: Any) -> str:
    return f"the memo {path} has {name} {found!r}, and this query has {wanted!r}: {_REMEDIES[name]}"
