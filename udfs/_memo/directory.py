"""Directory: the files of a memo by name, the function that they belong to, and reading with checksums."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple, Self
from uuid import uuid4

import pyarrow as pa
from pyarrow import fs

from .answers import compute, contents_of, kind_of
from .format import DamagedError, parquet, read_log, read_parquet
from .location import file_system

__all__ = ["Directory", "File", "MemoError"]

_NAME: Final = re.compile(
    r"(_log|answers)-([0-9a-f]{16})-(\d{1,3})\.(\d{1,3})\.([1-9]\d{0,2})-[0-9a-f]{32}(?:-([0-9a-f]{8})\.parquet)?"
)

# Names with an underscore are ignored by Spark, pandas and Arrow.
_UNFINISHED: Final = "_unfinished-"
_REPLACED: Final = "_replaced-"

# Seconds after which a process that has not finished a file counts as killed.
_UNFINISHED_SECONDS: Final = 86_400.0

# Seconds for which a file that was replaced remains, for engines that have listed it.
_REPLACED_SECONDS: Final = 600.0

# Files are kept in memory up to this size, because a task reads most of them for many buckets.
_CACHE_BYTES: Final = 32 * 2**20

# By the name of what differs between two memos.
_REMEDIES: Final = {
    "format": "use the release that wrote it, or another directory",
    "function": "give each function a memo of its own; if it was only renamed, give Memo(path, name=...) the old name",
    "inputs": "give the inputs these names and types, or use another directory",
    "answer": "give the new columns these types, or use another directory",
    "spread_by": "use the same operator and the same key=, or another directory",
    "buckets": "use the release that wrote it, or another directory",
}


class MemoError(RuntimeError):
    """A memo cannot be used: one of its files is damaged, or it belongs to another function or schema."""

    __module__ = "udfs"


class File(NamedTuple):
    """A file with answers.

    Attributes:
        name: Its name.
        kind: The digest of what its memo holds, according to the name.
        buckets: The buckets that it may have.
        checksum: The CRC32 of a Parquet footer; None for a log.
        size: Bytes.
        age: Seconds since it was last written.
    """

    name: str
    kind: str
    buckets: range
    checksum: int | None
    size: int
    age: float

    @property
    def is_log(self) -> bool:
        """Whether it is a log, to which its task may append."""
        return self.checksum is None

    @classmethod
    def of(cls, info: Any) -> Self | None:
        """The file of an entry in a listing; None for an entry of another origin."""
        found = _NAME.fullmatch(info.base_name)
        if found is None or (found[1] == "_log") != (found[6] is None) or not info.is_file:
            return None
        start, stop, step = map(int, found.group(3, 4, 5))
        checksum = None if found[6] is None else int(found[6], 16)
        return cls(found[0], found[2], range(start, stop, step), checksum, info.size or 0, _age(info))


class Directory:
    """The directory of one memo. Any number of processes may use it at once.

    Args:
        path: An absolute path or a URI.
        schema: The columns of the answers, with metadata that identifies the memo.

    Raises:
        ValueError: No file system for the scheme of the path is installed.
    """

    def __init__(self, path: str, schema: pa.Schema) -> None:
        self.path = path
        self.schema = schema
        self.kind = kind_of(schema)
        self._fs, self._root = file_system(path)
        self._cache: dict[str, tuple[int, pa.Table]] = {}

    @classmethod
    def existing(cls, path: str) -> Self | None:
        """The memo in this directory, whatever it holds. None if there is none.

        Raises:
            MemoError: There are several memos, or the first file is damaged.
        """
        unknown = cls(path, pa.schema([]))
        for file in _files(unknown._infos()).values():
            with suppress(FileNotFoundError):
                found = cls(path, unknown._table(file, range(0))[0].schema)
                found.files()
                return found
        return None

    @property
    def can_append(self) -> bool:
        """Whether files can grow, as on a local or mounted file system. Objects cannot."""
        return isinstance(self._fs, fs.LocalFileSystem)

    def claim(self) -> None:
        """Make the memo, or check that it has the same contents.

        Writes first and looks afterwards. So of two functions that begin at once, never both succeed; both may fail.

        Raises:
            MemoError: The memo belongs to another function, or to other types.
            OSError: The directory cannot be written.
        """
        if any(file.buckets for file in self.files().values()):
            return
        self._fs.create_dir(self._root, recursive=True)
        name = self.put_table(self.schema.empty_table(), range(0))
        try:
            self.files()
        except BaseException:
            self.remove(name)
            raise

    def check(self) -> None:
        """Check, in a worker, that the memo is there.

        Raises:
            MemoError: It is not: the path is not shared. Or it belongs to another function.
        """
        if not self.files():
            raise MemoError(
                f"this worker does not see the memo {self.path}, which the driver has made: use a path on storage "
                "that the driver and all workers share"
            )

    def files(self) -> dict[str, File]:
        """The files with answers by name, without those that were replaced.

        Raises:
            MemoError: One of them belongs to another function, or to other types.
        """
        infos = self._infos()
        replaced = {name for note in infos if note.startswith(_REPLACED) for name in self._replaced_by(note, infos)}
        files = _files(infos)
        self._refuse_others(files.values())
        return {name: file for name, file in files.items() if name not in replaced}

    def bucket(self, number: int, without: str | None = None) -> pa.Table:
        """All answers of a bucket, except those in the file `without`.

        Raises:
            MemoError: A file is damaged.
        """
        read: dict[str, pa.Table | None] = {}
        # Answers may move to another file while files are listed or read. So it ends with a listing without a new file
        while new := [f for f in self.files().values() if f.name not in read and number in f.buckets]:
            for file in new:
                try:
                    read[file.name] = None if file.name == without else self._cached(file, number)
                except FileNotFoundError:
                    read[file.name] = None
        return pa.concat_tables([self.schema.empty_table(), *(table for table in read.values() if table is not None)])

    def read(self, file: File, buckets: range) -> pa.Table:
        """The answers of some buckets in a file.

        Args:
            file: A file of this directory.
            buckets: A range with step 1.

        Raises:
            FileNotFoundError: It was removed, because its answers are in another file now.
            MemoError: It is damaged, or belongs to another function.
        """
        return _in_buckets(self._checked(file, buckets)[0], buckets)

    def put(self, name: str, content: bytes) -> None:
        """Write a file. It is on the disk before it has its name."""
        temporary = f"{_UNFINISHED}{uuid4().hex}"
        with self._fs.open_output_stream(self.at(temporary)) as stream:
            stream.write(content)
        self._sync(self.at(temporary))
        self._fs.move(self.at(temporary), self.at(name))
        self._sync(self._root)

    def put_table(self, table: pa.Table, buckets: range) -> str:
        """Write answers as a Parquet file. Returns its name."""
        content, checksum = parquet(table)
        name = f"answers-{self._label(buckets)}-{checksum:08x}.parquet"
        self.put(name, content)
        return name

    def new_log(self, buckets: range) -> str:
        """A name for a log with these buckets."""
        return f"_log-{self._label(buckets)}"

    def at(self, name: str) -> str:
        """The path of a file in its file system."""
        return f"{self._root}/{name}"

    def remove(self, *names: str) -> None:
        """Remove files. Another process may be faster."""
        for name in names:
            with suppress(FileNotFoundError):
                self._fs.delete_file(self.at(name))

    def replace(self, names: Sequence[str], by: Sequence[str]) -> None:
        """Leave out these files from now on, because their answers are in others. They are removed later."""
        self.put(f"{_REPLACED}{uuid4().hex}.json", json.dumps({"names": names, "by": by}).encode())

    def clean(self) -> None:
        """Remove files that were replaced some time ago, and files that a killed process left unfinished a day ago."""
        infos = self._infos()
        for name in sorted(infos, key=lambda name: -_age(infos[name])):  # what replaced a file may be replaced later
            if name.startswith(_REPLACED) and _age(infos[name]) > _REPLACED_SECONDS:
                self.remove(*self._replaced_by(name, infos), name)
            elif name.startswith(_UNFINISHED) and _age(infos[name]) > _UNFINISHED_SECONDS:
                self.remove(name)

    def _label(self, buckets: range) -> str:
        return f"{self.kind}-{buckets.start}.{buckets.stop}.{buckets.step}-{uuid4().hex}"

    def _infos(self) -> dict[str, Any]:
        with suppress(FileNotFoundError):  # Arrow also raises it if the directory is made while it looks
            infos = self._fs.get_file_info(fs.FileSelector(self._root, allow_not_found=True))
            return {info.base_name: info for info in infos}
        return {}

    def _refuse_others(self, files: Iterable[File]) -> None:
        for file in files:
            if file.kind != self.kind:
                with suppress(FileNotFoundError):  # its query was refused, and removed it
                    raise MemoError(self._mismatch(contents_of(self._table(file, range(0))[0].schema)))

    def _mismatch(self, found: dict[str, Any]) -> str:
        wanted = contents_of(self.schema)
        name = next((name for name in _REMEDIES if found.get(name) != wanted.get(name)), "format")
        return (
            f"the memo {self.path} has {name} {found.get(name)!r}, and this query has {wanted.get(name)!r}: "
            f"{_REMEDIES[name]}"
        )

    def _cached(self, file: File, bucket: int) -> pa.Table:
        """The answers of a bucket in a file. Keeps small files in memory."""
        size, table = self._cache.get(file.name, (-1, None))
        if table is not None and size == file.size:
            return _in_buckets(table, range(bucket, bucket + 1))
        table, is_whole = self._checked(file, range(bucket, bucket + 1))
        self._cache.pop(file.name, None)
        if is_whole and table.nbytes + sum(each.nbytes for _, each in self._cache.values()) <= _CACHE_BYTES:
            self._cache[file.name] = file.size, table
        return _in_buckets(table, range(bucket, bucket + 1))

    def _checked(self, file: File, buckets: range) -> tuple[pa.Table, bool]:
        """As `_table`, of this memo."""
        table, is_whole = self._table(file, buckets)
        if kind_of(table.schema) != self.kind:
            raise MemoError(
                f"the file {file.name} of the memo {self.path} belongs to another memo: remove it from here"
            )
        return table.cast(self.schema), is_whole

    def _table(self, file: File, buckets: range) -> tuple[pa.Table, bool]:
        """The answers of at least these buckets in a file, as they were written, and whether these are all."""
        try:
            if file.checksum is None:
                with self._fs.open_input_stream(self.at(file.name)) as stream:
                    return read_log(bytes(stream.read())), True
            with self._fs.open_input_file(self.at(file.name)) as stream:
                return read_parquet(stream, file.checksum, buckets)
        except FileNotFoundError:
            raise
        except DamagedError as error:
            raise MemoError(
                f"the file {file.name} of the memo {self.path} cannot be read (damaged: {error}): remove it, "
                "and only its answers are called for again"
            ) from error
        except (OSError, pa.ArrowException) as error:
            raise MemoError(
                f"the file {file.name} of the memo {self.path} cannot be read ({str(error).strip()}): check its "
                "permissions and the storage"
            ) from error

    def _replaced_by(self, note: str, infos: dict[str, Any]) -> list[str]:
        """What a note replaces. Nothing if it is damaged or gone, or if a file that replaces them is not listed."""
        with suppress(FileNotFoundError, ValueError, KeyError, TypeError):
            with self._fs.open_input_stream(self.at(note)) as stream:
                content = json.loads(stream.read())
            if infos.keys() >= set(content["by"]):
                return [name for name in content["names"] if name in infos]
        return []

    def _sync(self, path: str) -> None:
        if self.can_append:
            descriptor = os.open(path, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)


def _files(infos: dict[str, Any]) -> dict[str, File]:
    """The files with answers in a listing."""
    found = {name: File.of(info) for name, info in infos.items()}
    return {name: file for name, file in found.items() if file is not None}


def _in_buckets(table: pa.Table, buckets: range) -> pa.Table:
    bucket = table.column("bucket")
    return table.filter(compute.and_(compute.greater_equal(bucket, buckets.start), compute.less(bucket, buckets.stop)))


def _age(info: Any) -> float:
    """Seconds since a file was last written; 0 if its file system does not tell."""
    return 0.0 if info.mtime is None else time.time() - info.mtime.timestamp()
