"""Reader: the answers of a memo, bucket by bucket."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from .answers import BUCKETS
from .directory import Directory, File, MemoError, OpenFile

__all__ = ["Reader"]

# A reader keeps this many files open, and this many bytes of answers in memory for the next bucket.
MAX_OPEN: Final = 128
KEPT_BYTES: Final = 64 * 2**20


class Reader:
    """The answers that a memo had when the reader was made. Used by one thread.

    Lists the directory once, and opens each file once. If the memo is large, it opens files more often.

    Args:
        directory: The memo.
        buckets: The buckets to read.

    Raises:
        MemoError: There is no memo, as on a worker that does not share the path. Or it belongs to another function.
    """

    def __init__(self, directory: Directory, buckets: range = range(BUCKETS)) -> None:
        self._directory = directory
        self._buckets = buckets
        self._open: dict[str, OpenFile] = {}
        self._files = self._listed()
        self._kept_bytes = KEPT_BYTES // max(1, len(self._files))

    def bucket(self, number: int) -> pa.Table:
        """All answers of a bucket.

        Raises:
            MemoError: A file is damaged.
        """
        found: dict[str, pa.Table] = {}
        while new := [f for f in self._files if f.name not in found and number in f.buckets]:
            for file in new:
                try:
                    found[file.name] = self._opened(file).read(range(number, number + 1))
                except FileNotFoundError:  # its answers are in another file now
                    found[file.name] = self._directory.schema.empty_table()
                    self._files = self._listed()
        return pa.concat_tables([self._directory.schema.empty_table(), *found.values()])

    def _opened(self, file: File) -> OpenFile:
        opened = self._open.get(file.name)
        if opened is None:
            opened = self._directory.open(file, self._kept_bytes)
            if len(self._open) < MAX_OPEN and opened.nbytes <= self._kept_bytes:
                self._open[file.name] = opened
        return opened

    def _listed(self) -> list[File]:
        files = self._directory.files().values()
        if not files:
            raise MemoError(
                f"this worker does not see the memo {self._directory.shown_path}, which the driver has made: "
                "use a path on storage that the driver and all workers share"
            )
        return [file for file in files if set(file.buckets) & set(self._buckets)]
