"""Compaction: many small files become few, without the answers that no longer count."""

from __future__ import annotations

import logging
import math
from typing import Final

import pyarrow as pa

from .answers import Freshness, latest
from .errors import MemoError
from .files import BUCKETS, MemoFiles, holds, in_bucket

__all__ = ["compact", "tidy"]

# More small files than this are merged.
MAX_SMALL_FILES: Final = 100

# A merge reads at most this many bytes of files, and a compacted file has about this many bytes of answers.
MAX_BYTES: Final = 64 * 2**20

_ALWAYS: Final = Freshness(-math.inf, -math.inf)

logger = logging.getLogger("udfs")


def tidy(files: MemoFiles) -> None:
    """Merge the small files of a memo, if there are many. Tasks do so while they work, at most one at a time.

    No answer is dropped for its age, because another query may have another `max_age`. If it fails, a warning is
    logged: the memo works without it.
    """
    try:
        files.remove_replaced()
        if len(files.small()) > MAX_SMALL_FILES and files.claim():
            while _merge_small(files):
                pass
            files.release()
    except (MemoError, OSError) as error:
        logger.warning("the files of the memo %s could not be merged: %s", files.path, error)


def compact(files: MemoFiles, freshness: Freshness) -> int:
    """Rewrite a memo with one answer for each key. Returns their number.

    The new files are complete before the old ones are left out. A process that is killed in between leaves answers
    twice, which changes nothing. Of two compactions at once, each replaces only files that it has read.

    Raises:
        FileNotFoundError: Another process compacts the memo.
        MemoError: A file cannot be read.
    """
    while _merge_small(files):
        pass
    names = files.settled()
    fresh = [files.read(name) for name in names if not name.startswith("compact-")]
    compacted = [name for name in names if name.startswith("compact-")]
    total = 0
    by: list[str] = []
    waiting: list[pa.Table] = []
    for bucket in range(BUCKETS):
        parts = [in_bucket(table, bucket) for table in fresh]
        parts += [files.read(name, bucket) for name in compacted if holds(name, bucket)]
        kept = _latest(pa.concat_tables(parts), freshness) if parts else None
        if kept is None or not kept.num_rows:
            continue
        waiting.append(kept)
        total += kept.num_rows
        if sum(table.nbytes for table in waiting) >= MAX_BYTES:
            by.append(files.write(waiting, "compact"))
            waiting = []
    if waiting:
        by.append(files.write(waiting, "compact"))
    if names:
        files.replace(names, by)
    files.remove_replaced()
    return total


def _merge_small(files: MemoFiles) -> bool:
    """Merge some of the small files into one. Returns False, without doing it, if there are few."""
    small = files.small()
    if len(small) <= MAX_SMALL_FILES:
        return False
    chosen: list[str] = []
    nbytes = 0
    for name in sorted(small, key=small.__getitem__):
        nbytes += small[name]
        if nbytes > MAX_BYTES and len(chosen) > 1:
            break
        chosen.append(name)
    whole = pa.concat_tables([files.read(name) for name in chosen])
    failed = whole.column("error").is_valid()
    kept = [_latest(whole.filter(mask), _ALWAYS) for mask in (failed, whole.column("error").is_null())]
    files.replace(chosen, [files.write(kept, "compact")])
    return True


def _latest(whole: pa.Table, freshness: Freshness) -> pa.Table:
    """The latest fresh answer for each key."""
    return whole.take(pa.array(sorted(latest(whole, freshness).values()), pa.int64()))
