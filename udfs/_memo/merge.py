"""Merge: many files become few Parquet files, without answers that no longer count."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Final

import pyarrow as pa

from .answers import ALWAYS, BUCKETS, Freshness, latest
from .directory import LOG, PASS_BYTES, Directory, File, MemoError

# More small files than this are merged, at most `MAX_MERGED` at a time.
MAX_SMALL_FILES: Final = 100
MAX_MERGED: Final = 1_000
# A fraction of `PASS_BYTES`, so that a merge never writes as many small files as it has read.
SMALL_BYTES: Final = 8 * 2**20

# A log that nobody has written for this long was left by a process that was killed. A task ends its log much earlier.
KILLED_SECONDS: Final = 3_600.0

# How often a compaction is tried while other processes move its files.
_ATTEMPTS: Final = 10

logger = logging.getLogger("udfs")


def merge(directory: Directory) -> None:
    """Merge the small files, if there are many. If that fails, a warning is logged: the memo works without it.

    Drops no answer for its age, because another query may have another `max_age`, and keeps the latest failure of a key
    beside its latest answer.
    """
    try:
        while len(small := [file for file in _settled(directory) if file.size < SMALL_BYTES]) > MAX_SMALL_FILES:
            rewrite(directory, sorted(small, key=lambda file: file.size)[:MAX_MERGED])
    except FileNotFoundError:
        pass  # another process merges the same files
    except (MemoError, OSError) as error:
        logger.warning("the files of the memo %s could not be merged: %s", directory.path, error)


def compact(directory: Directory, fresh: Freshness) -> int:
    """Leave one answer for each key, and none that is not fresh. Returns their number.

    Raises:
        MemoError: A file is damaged.
        OSError: The directory cannot be written, or other processes move its files all the time.
    """
    keep = partial(latest, fresh=fresh)
    for _ in range(_ATTEMPTS - 1):
        with suppress(FileNotFoundError):
            return rewrite(directory, _settled(directory), keep)
    return rewrite(directory, _settled(directory), keep)


def _keep_all(table: pa.Table) -> pa.Table:
    return latest(table, ALWAYS, by=("key", "failed"))


def rewrite(directory: Directory, files: Sequence[File], keep: Callable[[pa.Table], pa.Table] = _keep_all) -> int:
    """Write Parquet files in place of these files, some buckets at a time. Returns the number of answers.

    New files are complete before the old ones are left out. A process that is killed leaves answers twice.

    Args:
        keep: Which answers of a bucket to keep.

    Raises:
        FileNotFoundError: Another process has moved the answers of a file.
        MemoError: A file is damaged.
    """
    passes = min(BUCKETS, 1 + sum(file.size for file in files) // PASS_BYTES)
    by: list[str] = []
    total = 0
    for number in range(passes):
        buckets = range(BUCKETS * number // passes, BUCKETS * (number + 1) // passes)
        parts = [directory.open(file).read(buckets) for file in files]
        table = keep(pa.concat_tables([directory.schema.empty_table(), *parts]))
        total += table.num_rows
        if table.num_rows:
            is_one_task = passes == 1 and len({file.buckets for file in files}) == 1
            by.append(directory.put_table(table, files[0].buckets if is_one_task else buckets))
    if files and not by:  # an empty file still names the function
        by.append(directory.put_table(directory.schema.empty_table(), range(0)))
    if tables := [file.name for file in files if not file.is_log]:
        directory.replace(tables, by)
    directory.remove(*(file.name for file in files if file.is_log))
    return total


def _settled(directory: Directory) -> list[File]:
    """The Parquet files, which the logs of killed tasks become first. Removes what was replaced some time ago."""
    directory.clean()
    files = directory.files()
    for name in directory.older(LOG, KILLED_SECONDS):
        if name in files:
            rewrite(directory, [files[name]])
    return [file for file in directory.files().values() if not file.is_log]
