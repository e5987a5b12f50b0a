"""What a memo has: the numbers of its answers, and its files."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa

from udfs._memo.directory import Directory
from udfs._memo.reader import Reader

ALL = range(256)


def numbers(table: pa.Table) -> list[int]:
    return sorted(each["n"] for each in table.column("inputs").to_pylist())


def known(directory: Directory, buckets: Iterable[int] = ALL) -> list[int]:
    """The numbers that have an answer, as another process would find them."""
    reader = Reader(Directory(directory.path, directory.schema))
    return sorted(number for bucket in buckets for number in numbers(reader.bucket(bucket)))


def log_of(directory: Directory) -> str:
    """The name of the only log."""
    [name] = [file.name for file in directory.files().values() if file.is_log]
    return name


def age(path: str | Path, seconds: float) -> None:
    """Let a file be older than it is."""
    os.utime(path, (time.time() - seconds,) * 2)
