"""Directory: the files of a memo by name, the function that they belong to, and reading with checksums."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final, NamedTuple, Self
from uuid import uuid4

import pyarrow as pa
from pyarrow import fs

from .._urls import without_user
from .answers import compute, contents_of, digest_of, has_grown, new_fields, widened
from .format import DamagedError, LogFile, ParquetFile, parquet
from .location import file_system

_NAME: Final = re.compile(
    r"(_log|answers)-([0-9a-f]{16})-(\d{1,3})\.(\d{1,3})\.([1-9]\d{0,2})-[0-9a-f]{32}(?:-([0-9a-f]{8})\.parquet)?"
)

# Names with an underscore are ignored by Spark, pandas and Arrow.
LOG: Final = "_log-"
_UNFINISHED: Final = "_unfinished-"
_REPLACED: Final = "_replaced-"

# Seconds after which a process that has not finished a file counts as killed.
_UNFINISHED_SECONDS: Final = 86_400.0

# Seconds for which a file that was replaced remains, for engines that have listed it.
_REPLACED_SECONDS: Final = 600.0

# About the size of the files, or of the parts of files, that are read at a time.
PASS_BYTES: Final = 32 * 2**20

# By the name of what differs between two memos.
_REMEDIES: Final = {
    "format": "use the release that wrote it, or another directory",
    "function": "give each function a memo of its own; if it was only renamed, give Memo(path, name=...) the old name",
    "inputs": "give the inputs these names and types, name those that were renamed in Memo(path, renamed=...), or use "
    "another directory",
    "answer": "give the new columns these types; others may be added if there are two or more. Otherwise, use another "
    "directory, and add these answers to it with Memo.add",
    "spread_by": "use the same operator and the same key=, or another directory",
    "buckets": "use the release that wrote it, or another directory",
}


class MemoError(RuntimeError):
    """A memo cannot be used: it is damaged, or belongs to another function or schema."""

    __module__ = "udfs"


class File(NamedTuple):
    """A file with answers.

    Attributes:
        name: Its name.
        digest: Identifies what its memo holds, according to the name.
        buckets: The buckets that it may have.
        checksum: The CRC32 of a Parquet footer; None for a log.
        size: Bytes.
    """

    name: str
    digest: str
    buckets: range
    checksum: int | None
    size: int

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
        return cls(found[0], found[2], range(start, stop, step), checksum, info.size or 0)


class Directory:
    """The directory of one memo. Any number of processes may use it at once.

    Args:
        path: An absolute path or a URI.
        schema: The columns of the answers, with metadata that identifies the memo.

    Attributes:
        path: The path for messages and logs, without a password.
        can_append: Whether files can grow, as on a local file system. Objects cannot. A mount is tried, and set to
            False by the first writer whose append it refuses.

    Raises:
        ValueError: No file system for the scheme of the path is installed.
    """

    def __init__(self, path: str, schema: pa.Schema) -> None:
        self.path = without_user(path)
        self.schema = schema
        self.digest = digest_of(schema)
        self._older: dict[str, pa.Schema] = {}  # of files whose answers have fewer fields, by digest
        self._fs, self._root = file_system(path)
        self._is_local = self.can_append = isinstance(self._fs, fs.LocalFileSystem)

    @classmethod
    def existing(cls, path: str) -> Self:
        """The memo in this directory, whatever it holds. If its answers have grown, it has all of their fields.

        Raises:
            MemoError: There is no memo, there are several, a file is damaged, or the path names a file.
        """
        unknown = cls(path, pa.schema([]))
        schemas: dict[str, pa.Schema] = {}
        for file in _files(unknown._infos()).values():
            if file.digest not in schemas:
                with suppress(FileNotFoundError):
                    schemas[file.digest] = unknown.open(file).schema
        if not schemas:
            raise MemoError(f"there is no memo at {unknown.path}: check the path, or run a query with memo= first")
        widest = max(schemas.values(), key=lambda schema: sum(has_grown(each, schema) for each in schemas.values()))
        found = cls(path, widest)
        found.files()
        return found

    def claim(self) -> None:
        """Make the memo, or check that it has the same contents. Its answers may get more fields.

        Writes first and looks afterwards, so of two functions that begin at once, at most one succeeds.

        Raises:
            MemoError: The memo belongs to another function, or to other types. Or the path is a file, or is below one.
            OSError: The directory cannot be written.
        """
        if any(file.buckets and file.digest == self.digest for file in self.files().values()):
            with self.writing():
                self._now()  # before calls are paid whose answers cannot be written
            return
        try:
            with self.writing():
                self._fs.create_dir(self._root, recursive=True)
        except NotADirectoryError as error:
            raise MemoError(f"the memo {self.path} is below a file: give the path of a directory") from error
        name = self.put_table(self.schema.empty_table(), range(0))
        try:
            self.files()
        except BaseException:
            self.remove(name)
            raise

    def files(self) -> dict[str, File]:
        """The files with answers by name, without those that were replaced.

        Raises:
            MemoError: One of them belongs to another function, or to other types. Or the path names a file.
        """
        infos = self._infos()
        replaced = {name for note in infos if note.startswith(_REPLACED) for name in self._replaced_by(note, infos)}
        files = _files(infos)
        others: dict[str, pa.Schema] = {}
        for file in files.values():
            if file.digest != self.digest and file.digest not in self._older and file.digest not in others:
                with suppress(FileNotFoundError):  # its query was refused, and removed it
                    others[file.digest] = self.open(file).schema
        # Those with the most fields first, so that an error names all of them
        for digest in sorted(others, key=lambda digest: len(str(others[digest])), reverse=True):
            self._check_older(digest, others[digest])
        return {name: file for name, file in files.items() if name not in replaced}

    def open(self, file: File, kept_bytes: int = 0) -> OpenFile:
        """Open a file of this directory. It is closed when the result is no longer used.

        Args:
            file: The file.
            kept_bytes: Upper limit of the answers of one read that are kept in memory for the next one.

        Raises:
            FileNotFoundError: It was removed, because its answers are in another file now.
            MemoError: It is damaged.
        """
        with self.naming(file):
            if file.checksum is None:
                with self._fs.open_input_stream(self.at(file.name)) as stream:
                    return OpenFile(self, file, LogFile(bytes(stream.read())))
            opened = self._fs.open_input_file(self.at(file.name))
            return OpenFile(self, file, ParquetFile(opened, file.checksum, kept_bytes))

    def put(self, name: str, content: bytes) -> None:
        """Write a file. It is on the disk before it has its name.

        Raises:
            OSError: It cannot be written. Nothing is left of it, if that is possible.
        """
        temporary = f"{_UNFINISHED}{uuid4().hex}"
        with self.writing():
            try:
                with self._fs.open_output_stream(self.at(temporary)) as stream:
                    stream.write(content)
                self._sync(self.at(temporary))
                self._fs.move(self.at(temporary), self.at(name))
            except BaseException:
                with suppress(OSError):
                    self.remove(temporary)
                raise
            self._sync(self._root)

    def put_table(self, table: pa.Table, buckets: range) -> str:
        """Write answers as a Parquet file. Returns its name."""
        content, checksum = parquet(table)
        name = f"answers-{self._label(buckets)}-{checksum:08x}.parquet"
        self.put(name, content)
        return name

    def new_log(self, buckets: range) -> str:
        """A name for a log with these buckets."""
        return f"{LOG}{self._label(buckets)}"

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
        self.remove(*self.older(_UNFINISHED, _UNFINISHED_SECONDS))
        notes = self.older(_REPLACED, _REPLACED_SECONDS)
        infos = self._infos() if notes else {}
        for note in notes:  # the oldest first, because what replaced a file may be replaced later
            self.remove(*self._replaced_by(note, infos), note)

    def older(self, prefix: str, seconds: float) -> list[str]:
        """The names with this prefix that were last written more than these seconds ago, the oldest first.

        Compares times of the file system's own clock, since this machine's clock may differ. Without modification
        times, no file counts as old.
        """
        times = {name: _written(info) for name, info in self._infos().items() if name.startswith(prefix)}
        now = self._now() if times else math.nan
        return sorted((name for name, written in times.items() if now - written > seconds), key=times.__getitem__)

    def _now(self) -> float:
        """The time on the file system's clock, from a file that is written now."""
        probe = self.at(f"{_UNFINISHED}{uuid4().hex}")
        with self._fs.open_output_stream(probe) as stream:
            stream.write(b"now")
        [info] = self._fs.get_file_info([probe])
        self._fs.delete_file(probe)
        return _written(info)

    def _label(self, buckets: range) -> str:
        return f"{self.digest}-{buckets.start}.{buckets.stop}.{buckets.step}-{uuid4().hex}"

    def _infos(self) -> dict[str, Any]:
        try:
            infos = self._fs.get_file_info(fs.FileSelector(self._root, allow_not_found=True))
        except FileNotFoundError:  # Arrow also raises it if the directory is made while it looks
            return {}
        except NotADirectoryError as error:
            raise MemoError(f"the memo {self.path} is a file: give the path of a directory") from error
        return {info.base_name: info for info in infos}

    def _check_older(self, digest: str, schema: pa.Schema) -> None:
        """Check that answers with another digest can be read as those of this memo.

        Raises:
            MemoError: They cannot.
        """
        if has_grown(schema, self.schema):
            self._older[digest] = schema
        elif has_grown(self.schema, schema):
            names = sorted(new_fields(self.schema.field("answer").type, schema.field("answer").type) or [])
            raise MemoError(
                f"the answers of the memo {self.path} have more fields than this query: add {', '.join(names)} "
                "to its schema, with the types that the memo has, and drop the new columns afterwards"
            )
        else:
            raise MemoError(self._mismatch(contents_of(schema)))

    def _mismatch(self, found: dict[str, Any]) -> str:
        wanted = contents_of(self.schema)
        name = next((name for name in _REMEDIES if found.get(name) != wanted.get(name)), "format")
        return (
            f"the memo {self.path} has {name} {found.get(name)!r}, and this query has {wanted.get(name)!r}: "
            f"{_REMEDIES[name]}"
        )

    @contextmanager
    def naming(self, file: File) -> Iterator[None]:
        """Errors in this block name the file and say what to do."""
        try:
            yield
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

    @contextmanager
    def writing(self) -> Iterator[None]:
        """An `OSError` in this block names the memo and says what to do. It keeps its class and its number."""
        try:
            yield
        except OSError as error:
            reason = str(error).strip() if error.errno is None else os.strerror(error.errno)
            message = (
                f"the memo {self.path} cannot be written ({reason}): make room, or check its permissions and the "
                "storage. The answers in it count when the job runs again"
            )
            raise (OSError(message) if error.errno is None else OSError(error.errno, message)) from error

    def _replaced_by(self, note: str, infos: dict[str, Any]) -> list[str]:
        """The files that a note replaces; none if it is damaged or gone, or if a file that replaces them is missing."""
        with suppress(FileNotFoundError, ValueError, KeyError, TypeError):
            with self._fs.open_input_stream(self.at(note)) as stream:
                content = json.loads(stream.read())
            if infos.keys() >= set(content["by"]):
                return [name for name in content["names"] if name in infos]
        return []

    def _sync(self, path: str) -> None:
        if self._is_local:
            descriptor = os.open(path, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)


class OpenFile:
    """A file of a memo that is open.

    Args:
        directory: Its directory.
        file: Its name and its buckets.
        content: Its bytes.
    """

    def __init__(self, directory: Directory, file: File, content: LogFile | ParquetFile) -> None:
        self._directory = directory
        self._file = file
        self._content = content
        self.schema = content.schema
        self.nbytes = content.nbytes

    def read(self, buckets: Sequence[int]) -> pa.Table:
        """The answers of some buckets.

        Args:
            buckets: In ascending order.

        Raises:
            FileNotFoundError: The file was removed, because its answers are in another one now.
            MemoError: It is damaged.
        """
        with self._directory.naming(self._file):
            table = self._content.read(buckets)
        is_asked = compute.is_in(table.column("bucket"), value_set=pa.array(buckets, pa.int32()))
        table, schema = table.filter(is_asked), self._directory.schema
        return _grown(table, schema) if self._file.digest != self._directory.digest else table.cast(schema)


def _grown(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """The table with the columns of a schema whose answers have more fields."""
    dtype, place = schema.field("answer").type, table.schema.get_field_index("answer")
    answers = pa.chunked_array([widened(each, dtype) for each in table.column(place).chunks], dtype)
    return table.set_column(place, "answer", answers).cast(schema)


def _files(infos: dict[str, Any]) -> dict[str, File]:
    """The files with answers in a listing."""
    found = {name: File.of(info) for name, info in infos.items()}
    return {name: file for name, file in found.items() if file is not None}


def _written(info: Any) -> float:
    """When a file was last written, in seconds on its file system's clock; NaN without a modification time."""
    return math.nan if info.mtime is None else float(info.mtime.timestamp())
