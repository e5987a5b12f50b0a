"""What a memo holds while a job writes to it."""

from __future__ import annotations

from pathlib import Path

from udfs._memo.answers import BUCKETS
from udfs._memo.directory import Directory
from udfs._memo.reader import Reader

__all__ = ["remembered"]


def remembered(memo: Path) -> int:
    """The number of answers in the memo; 0 if there is none yet."""
    directory = Directory.existing(str(memo))
    if directory is None:
        return 0
    reader = Reader(directory)
    return sum(reader.bucket(number).num_rows for number in range(BUCKETS))
