"""Files of a memo: written whole or not at all, on any file system that Arrow or fsspec can write."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable, Sequence
from typing import Any, Final, Literal
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import fs

from .errors import MemoError
from .journal import Journal, read_journal
from .location import file_system

__all__ = ["BUCKETS", "MemoFiles", "holds", "in_bucket"]

# The answers are divided into this many buckets by the hash of their inputs. A task reads one bucket at a time.
BUCKETS: Final = 256

# The name of a file: whether it is new or compacted, a unique number, and a bit for each bucket that it has answers of.
_NAME: Final = re.compile(r"(new|compact)-[0-9a-f]{32}-([0-9a-f]{64})\.parquet")

# Spark, pandas and Arrow ignore names that start with an underscore.
_UNFINISHED: Final = "_unfinished-"
_JOURNAL: Final = "_journal-"
_REPLACED: Final = "_replaced-"
_CLAIM: Final = "_compacting"

# Seconds after which a file counts as left by a process that was killed.
_UNFINISHED_SECONDS: Final = 86_400.0
_JOURNAL_SECONDS: Final = 3_600.0
_CLAIM_SECONDS: Final = 600.0

# Seconds for which a file that was replaced remains, for those who read it.
_REPLACED_SECONDS: Final = 600.0

SMALL_BYTES: Final = 8 * 2**20  # a smaller file is small
_ROWS_OF_GROUP: Final = 4_096

# The answers of so many files with at most so many bytes are held while the buckets of a task are read.
_CACHED_FILES: Final = 128
_CACHED_BYTES: Final = 256 * 1024


def in_bucket(answers: pa.Table, bucket: int) -> pa.Table:
    """The answers of one bucket."""
    equal: Any = pc.equal  # pyright: ignore[reportAttributeAccessIssue] - made at import
    mask = equal(answers.column("bucket"), bucket)
    return answers.filter(mask)


def holds(name: str, bucket: int) -> bool:
    """Whether the file with this name may have answers of a bucket."""
    found = _NAME.fullmatch(name)
    return found is None or bool(int(found[2], 16) >> bucket & 1)


class MemoFiles:
    """The files in the directory of a memo.

    A file is written under a temporary name and then moved, so a reader sees it whole or not at all. Files are never
    changed, except for journals, which grow. Any number of processes may read, write and replace files at once.

    Args:
        path: An absolute path or a URI.

    Raises:
        ValueError: No file system for the scheme of the path is installed.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._fs, self._root = file_system(path)
        self._tables: dict[str, pa.Table] = {}
        self._replacements: dict[str, dict[str, list[str]]] = {}

    def names(self) -> list[str]:
        """The names of the files with answers: those that no other replaces, and journals."""
        return sorted(self._answers())

    def settled(self) -> list[str]:
        """The same without journals that a task may still write."""
        found = self._answers()
        return sorted(name for name, info in found.items() if not _is_of_running_task(info))

    def small(self) -> dict[str, int]:
        """The settled files below `SMALL_BYTES`, and their sizes."""
        found = self._answers()
        sizes = {name: info.size or 0 for name, info in found.items() if not _is_of_running_task(info)}
        return {name: size for name, size in sizes.items() if size < SMALL_BYTES}

    def read(self, name: str, bucket: int | None = None) -> pa.Table:
        """The answers in a file; of one bucket, or all of them.

        Raises:
            FileNotFoundError: It was removed, because its answers are in another file now.
            MemoError: It is not a complete Parquet file.
        """
        table = self._tables.get(name)
        if table is None:
            table = self._opened(name, bucket)
        return table if bucket is None else in_bucket(table, bucket)

    def write(self, tables: Sequence[pa.Table], kind: Literal["new", "compact"] = "new") -> str:
        """Write tables of answers as one file, in the order of their buckets. Returns its name."""
        table = pa.concat_tables(tables).sort_by("bucket")
        buckets = table.column("bucket").unique().to_pylist()
        name = f"{kind}-{uuid4().hex}-{sum(1 << bucket for bucket in buckets):064x}.parquet"
        sink = pa.BufferOutputStream()
        pq.write_table(table, sink, row_group_size=_ROWS_OF_GROUP, write_page_checksum=True)
        self._put(name, sink.getvalue())
        return name

    def open_journal(self, first: pa.Table) -> Journal | None:
        """A journal with these answers. None if the path is not local, because other file systems cannot append."""
        if not isinstance(self._fs, fs.LocalFileSystem):
            return None
        number = uuid4().hex
        return Journal(self._at(f"{_JOURNAL}{number}.arrows"), self._at(_UNFINISHED + number), first)

    def replace(self, names: Sequence[str], by: Sequence[str]) -> None:
        """Leave out these files from now on, because their answers are in others. They are removed later."""
        self._put(f"{_REPLACED}{uuid4().hex}.json", json.dumps({"names": names, "by": by}).encode())

    def remove_replaced(self) -> None:
        """Remove what was replaced some time ago, and what processes that were killed a day ago did not finish."""
        for info in self._infos():
            if info.base_name.startswith(_REPLACED) and _is_older(info, _REPLACED_SECONDS):
                self._remove([*self._replacement(info.base_name)["names"], info.base_name])
            elif info.base_name.startswith(_UNFINISHED) and _is_older(info, _UNFINISHED_SECONDS):
                self._remove([info.base_name])

    def claim(self) -> bool:
        """Claim to be the only compaction. It is not certain, and needs not be. False: another one runs."""
        claim = self._fs.get_file_info(self._at(_CLAIM))
        if claim.type != fs.FileType.NotFound and not _is_older(claim, _CLAIM_SECONDS):
            return False
        self._put(_CLAIM, b"")
        return True

    def release(self) -> None:
        """End the claim."""
        self._remove([_CLAIM])

    def read_text(self, name: str) -> str | None:
        """The content of a text file, or None if there is none. Bytes that are not UTF-8 are replaced."""
        try:
            with self._fs.open_input_stream(self._at(name)) as stream:
                return bytes(stream.read()).decode(errors="replace")
        except FileNotFoundError:
            return None

    def write_text(self, name: str, text: str) -> None:
        """Write a text file, in place of an older one."""
        self._fs.create_dir(self._root, recursive=True)
        self._put(name, text.encode())

    def _opened(self, name: str, bucket: int | None) -> pa.Table:
        """The answers in a file; at least those of the bucket. Caches a small table, because many buckets need it."""
        try:
            with self._fs.open_input_file(self._at(name)) as stream:
                if name.startswith(_JOURNAL):
                    return read_journal(stream)
                with pq.ParquetFile(stream, page_checksum_verification=True) as file:
                    groups = range(file.num_row_groups) if bucket is None else _groups(file.metadata, bucket)
                    table = file.read_row_groups(list(groups))
                    is_whole = len(groups) == file.num_row_groups
        except FileNotFoundError:
            raise
        except (pa.ArrowException, OSError) as error:
            raise MemoError(
                f"the file {name} of the memo {self.path} cannot be read ({str(error).strip()}): remove it. Its "
                "answers are then asked for again"
            ) from error
        if is_whole and table.nbytes <= _CACHED_BYTES and len(self._tables) < _CACHED_FILES:
            self._tables[name] = table
        return table

    def _put(self, name: str, content: Any) -> None:
        temporary = self._at(f"{_UNFINISHED}{uuid4().hex}")
        with self._fs.open_output_stream(temporary) as stream:
            stream.write(content)
        self._fs.move(temporary, self._at(name))

    def _remove(self, names: Iterable[str]) -> None:
        for name in names:
            try:
                self._fs.delete_file(self._at(name))
            except FileNotFoundError:  # another process was faster
                pass

    def _infos(self) -> list[Any]:
        found: list[Any] = self._fs.get_file_info(fs.FileSelector(self._root, allow_not_found=True))
        return found

    def _answers(self) -> dict[str, Any]:
        """The files with answers that no others replace. A listing may lack files that appeared while it was made."""
        infos = {info.base_name: info for info in self._infos()}
        replacements = [self._replacement(name) for name in infos if name.startswith(_REPLACED)]
        replaced = {name for each in replacements if infos.keys() >= set(each["by"]) for name in each["names"]}
        return {
            name: info
            for name, info in infos.items()
            if name not in replaced and (_NAME.fullmatch(name) or name.startswith(_JOURNAL))
        }

    def _replacement(self, name: str) -> dict[str, list[str]]:
        """What the note with this name replaces. Nothing if it is gone or damaged: then its files count again."""
        if name not in self._replacements:
            try:
                self._replacements[name] = json.loads(self.read_text(name) or "")
            except ValueError:
                self._replacements[name] = {"names": [], "by": []}
        return self._replacements[name]

    def _at(self, name: str) -> str:
        return f"{self._root}/{name}"


def _is_older(info: Any, seconds: float) -> bool:
    return info.mtime is not None and info.mtime.timestamp() < time.time() - seconds


def _is_of_running_task(info: Any) -> bool:
    return info.base_name.startswith(_JOURNAL) and not _is_older(info, _JOURNAL_SECONDS)


def _groups(metadata: Any, bucket: int) -> list[int]:
    """The row groups that may have answers of a bucket, which is the first column."""
    found = []
    for number in range(metadata.num_row_groups):
        statistics = metadata.row_group(number).column(0).statistics
        if statistics is None or not statistics.has_min_max or statistics.min <= bucket <= statistics.max:
            found.append(number)
    return found
