"""Files of a memo: written whole or not at all, on any file system that Arrow or fsspec can write."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Final, Literal
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import fs

from .errors import MemoError

__all__ = ["BUCKETS", "MemoFiles", "absolute", "holds", "in_bucket"]

# The answers are divided into this many buckets by the hash of their inputs. A task reads one bucket at a time.
BUCKETS: Final = 256

# The name of a file: whether it is new or compacted, a unique number, and a bit for each bucket that it has answers of.
_NAME: Final = re.compile(r"(new|compact)-[0-9a-f]{32}-([0-9a-f]{64})\.parquet")
_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://")
_TEMPORARY: Final = "_unfinished-"  # Spark ignores names that start with an underscore
_ABANDONED_SECONDS: Final = 86_400.0


def absolute(path: str) -> str:
    """The path with its scheme, or an absolute local path, because workers have another working directory."""
    if path.startswith("file:"):
        path = "/" + path.removeprefix("file:").lstrip("/")
    return path.rstrip("/") if _SCHEME.match(path) else str(Path(path).absolute())


def in_bucket(answers: pa.Table, bucket: int) -> pa.Table:
    """The answers of one bucket."""
    equal: Any = pc.equal  # pyright: ignore[reportAttributeAccessIssue] - made at import
    mask = equal(answers.column("bucket"), bucket)
    return answers.filter(mask)


def holds(name: str, bucket: int) -> bool:
    """Whether the file with this name may have answers of a bucket."""
    found = _NAME.fullmatch(name)
    return found is not None and bool(int(found[2], 16) >> bucket & 1)


class MemoFiles:
    """The files in the directory of a memo.

    A file is written under a temporary name and then moved, so a reader sees it whole or not at all. Files are never
    changed. Any number of processes may read, write and remove files at once.

    Args:
        path: An absolute path or a URI.

    Raises:
        ValueError: No file system for the scheme of the path is installed.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._fs, self._root = _file_system(path)

    def names(self) -> list[str]:
        """The names of the files with answers."""
        selector = fs.FileSelector(self._root, allow_not_found=True)
        return sorted(each.base_name for each in self._fs.get_file_info(selector) if _NAME.fullmatch(each.base_name))

    def read(self, name: str, bucket: int | None = None) -> pa.Table:
        """The answers in a file; of one bucket, or all of them.

        Raises:
            FileNotFoundError: It was removed, because its answers are in another file now.
            MemoError: It is not a complete Parquet file.
        """
        try:
            with self._fs.open_input_file(self._at(name)) as stream, pq.ParquetFile(stream) as file:
                if bucket is None:
                    return file.read()
                table = file.read_row_groups(_groups(file.metadata, bucket))
        except FileNotFoundError:
            raise
        except (pa.ArrowException, OSError) as error:
            raise MemoError(
                f"the file {name} of the memo {self.path} cannot be read ({str(error).strip()}): remove it. Its "
                "answers are then asked for again"
            ) from error
        return in_bucket(table, bucket)

    def write(self, tables: Sequence[pa.Table], kind: Literal["new", "compact"] = "new") -> None:
        """Write tables of answers as one file, with a row group for each."""
        buckets = {bucket for table in tables for bucket in table.column("bucket").unique().to_pylist()}
        name = f"{kind}-{uuid4().hex}-{sum(1 << bucket for bucket in buckets):064x}.parquet"
        sink = pa.BufferOutputStream()
        with pq.ParquetWriter(sink, tables[0].schema) as writer:
            for table in tables:
                writer.write_table(table)
        self._put(name, sink.getvalue())

    def remove(self, names: Iterable[str]) -> None:
        """Remove files, and the rest of those that a process that was killed did not finish a day ago."""
        selector = fs.FileSelector(self._root, allow_not_found=True)
        before = time.time() - _ABANDONED_SECONDS
        abandoned = [
            each.base_name
            for each in self._fs.get_file_info(selector)
            if each.base_name.startswith(_TEMPORARY) and each.mtime_ns is not None and each.mtime_ns < before * 1e9
        ]
        for name in [*names, *abandoned]:
            try:
                self._fs.delete_file(self._at(name))
            except FileNotFoundError:  # by another process that compacts the memo
                pass

    def read_text(self, name: str) -> str | None:
        """The content of a text file, or None if there is none."""
        try:
            with self._fs.open_input_stream(self._at(name)) as stream:
                return bytes(stream.read()).decode()
        except FileNotFoundError:
            return None

    def write_text(self, name: str, text: str) -> None:
        """Write a text file, in place of an older one."""
        self._fs.create_dir(self._root, recursive=True)
        self._put(name, text.encode())

    def _put(self, name: str, content: Any) -> None:
        temporary = self._at(f"{_TEMPORARY}{uuid4().hex}")
        with self._fs.open_output_stream(temporary) as stream:
            stream.write(content)
        self._fs.move(temporary, self._at(name))

    def _at(self, name: str) -> str:
        return f"{self._root}/{name}"


def _groups(metadata: Any, bucket: int) -> list[int]:
    """The row groups that may have answers of a bucket, which is the first column."""
    found = []
    for number in range(metadata.num_row_groups):
        statistics = metadata.row_group(number).column(0).statistics
        if statistics is None or not statistics.has_min_max or statistics.min <= bucket <= statistics.max:
            found.append(number)
    return found


def _file_system(path: str) -> tuple[Any, str]:
    scheme = _SCHEME.match(path)
    if scheme is None:
        return fs.LocalFileSystem(), path
    if scheme[1] in {"s3a", "s3n"}:  # Hadoop's names
        path = "s3" + path.removeprefix(scheme[1])
    try:
        found: tuple[Any, str] = fs.FileSystem.from_uri(path)
    except pa.ArrowInvalid:
        return _fsspec(path, scheme[1])
    return found


def _fsspec(path: str, scheme: str) -> tuple[Any, str]:
    try:
        found, root = import_module("fsspec.core").url_to_fs(path)
    except (ImportError, ValueError) as error:
        raise ValueError(
            f"memo cannot write {scheme}:// ({error}): use a local path that all workers share, s3://, gs://, hdfs://, "
            "or install an fsspec package for this scheme"
        ) from error
    return fs.PyFileSystem(fs.FSSpecHandler(found)), root
