"""Reader: the answers of a memo, by bucket and by key."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

import pyarrow as pa

from .answers import BUCKETS, compute
from .directory import PASS_BYTES, Directory, File, MemoError, OpenFile

# A reader keeps this many files open, and this many bytes of answers in memory for the next read.
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

    def bucket(self, number: int) -> pa.Table:
        """All answers of a bucket.

        Raises:
            MemoError: A file is damaged.
        """
        return self._read([number])

    def parts(self, buckets: Sequence[int]) -> list[Sequence[int]]:
        """The buckets in parts, whose answers together have at most about `PASS_BYTES` in the files.

        Args:
            buckets: In ascending order.
        """
        wanted = set(buckets)
        nbytes = sum(file.size * len(wanted.intersection(file.buckets)) // len(file.buckets) for file in self._files)
        number = min(len(buckets), 1 + nbytes // PASS_BYTES)
        edges = [len(buckets) * part // number for part in range(number + 1)] if number else []
        return [buckets[start:end] for start, end in pairwise(edges)]

    def find(self, buckets: Sequence[int], keys: pa.Array) -> pa.Table:
        """All answers for these keys.

        Args:
            buckets: The buckets of the keys, in ascending order.
            keys: Null for a row without a key.

        Raises:
            MemoError: A file is damaged.
        """
        table = self._read(buckets)
        return table.filter(compute.is_in(table.column("key"), value_set=keys))

    def _read(self, buckets: Sequence[int]) -> pa.Table:
        found: dict[str, pa.Table] = {}
        wanted = set(buckets)
        while new := [f for f in self._files if f.name not in found and not wanted.isdisjoint(f.buckets)]:
            for file in new:
                try:
                    found[file.name] = self._opened(file).read(buckets)
                except FileNotFoundError:  # its answers are in another file now
                    found[file.name] = self._directory.schema.empty_table()
                    self._files = self._listed()
        return pa.concat_tables([self._directory.schema.empty_table(), *found.values()])

    def _opened(self, file: File) -> OpenFile:
        opened = self._open.get(file.name)
        if opened is None:
            kept_bytes = KEPT_BYTES * file.size // max(1, sum(each.size for each in self._files))
            opened = self._directory.open(file, kept_bytes)
            if len(self._open) < MAX_OPEN and opened.nbytes <= kept_bytes:
                self._open[file.name] = opened
        return opened

    def _listed(self) -> list[File]:
        files = self._directory.files().values()
        if not files:
            raise MemoError(
                f"this worker does not see the memo {self._directory.path}, which the driver has made: "
                "use a path on storage that the driver and all workers share"
            )
        return [file for file in files if set(file.buckets) & set(self._buckets)]
