"""What a memo holds while a job writes to it."""

from __future__ import annotations

from pathlib import Path

from udfs._memo.answers import BUCKETS
from udfs._memo.directory import Directory, MemoError
from udfs._memo.reader import Reader


def remembered(memo: Path) -> int:
    """The number of answers in the memo; 0 if there is none yet."""
    try:
        reader = Reader(Directory.existing(str(memo)))
    except MemoError:
        return 0
    return sum(reader.bucket(number).num_rows for number in range(BUCKETS))
