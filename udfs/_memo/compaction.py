"""Compaction: many small files become few, without the answers that no longer count."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from .answers import Freshness, latest
from .files import BUCKETS, MemoFiles, holds, in_bucket

__all__ = ["compact"]

# A compacted file has at least this many answers, unless it is the last one.
MIN_ROWS: Final = 100_000


def compact(files: MemoFiles, freshness: Freshness) -> int:
    """Rewrite a memo with one answer for each key. Returns their number.

    The new files are complete before the first old one is removed. A process that is killed in between leaves answers
    twice, which changes nothing. Of two compactions at once, each removes only files that it has read.

    Raises:
        FileNotFoundError: Another process compacts the memo.
        MemoError: A file cannot be read.
    """
    names = files.names()
    compacted = [name for name in names if name.startswith("compact-")]
    fresh = [files.read(name) for name in names if name not in compacted]
    total = 0
    waiting: list[pa.Table] = []
    for bucket in range(BUCKETS):
        parts = [in_bucket(table, bucket) for table in fresh]
        parts += [files.read(name, bucket) for name in compacted if holds(name, bucket)]
        kept = _kept(parts, freshness)
        if kept is None:
            continue
        waiting.append(kept)
        total += kept.num_rows
        if sum(table.num_rows for table in waiting) >= MIN_ROWS:
            files.write(waiting, "compact")
            waiting = []
    if waiting:
        files.write(waiting, "compact")
    files.remove(names)
    return total


def _kept(parts: list[pa.Table], freshness: Freshness) -> pa.Table | None:
    """The latest fresh answer for each key, or None if there is none."""
    if not any(part.num_rows for part in parts):
        return None
    whole = pa.concat_tables(parts)
    rows = latest(whole, freshness)
    return whole.take(pa.array(sorted(rows.values()), pa.int64())) if rows else None
