"""Formats: logs and Parquet files, whose bytes are compared with checksums before Arrow reads them.

Log: the magic bytes `udfslog1`, then frames. A frame is a head of 24 bytes and a payload, little-endian:

     0  salt       8 bytes, random, the same in each frame of a file
     8  length     8 bytes, the length of the payload, a multiple of 8
    16  checksum   8 bytes, CRC32 of the payload

The first payload is an Arrow schema, the others are record batches. A log gets its name when its schema and its first
answers are on the disk. It ends at its first frame that is not intact, as in SQLite: its process was killed while it
wrote the rest, or the machine crashed. With the salt, an old block of the disk cannot be mistaken for a frame.

Parquet: a file for any reader, sorted by bucket. The page checksums of Parquet leave out page heads and the footer, and
a bit that is flipped there can change an answer or crash Arrow. So the metadata `udfs.groups` has the CRC32 of each row
group, as [[start, end, crc, first bucket, last bucket], ...], and the caller keeps the CRC32 of the footer.
"""

from __future__ import annotations

import io
import json
import mmap
import struct
import zlib
from bisect import bisect_left
from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

_MAGIC: Final = b"udfslog1"
_HEAD: Final = struct.Struct("<8sQQ")

_GROUPS: Final = "udfs.groups"
# A row group has at most this many rows and, unless it is a single row, about this many bytes in memory.
_GROUP_ROWS: Final = 4_096
_GROUP_BYTES: Final = 256 * 1024

# The last bytes of a file, which one read returns. Most footers are shorter.
_TAIL_BYTES: Final = 64 * 1024


class DamagedError(ValueError):
    """A file does not have the bytes that were written."""


def log_start(salt: bytes, schema: pa.Schema) -> bytes:
    """The bytes before the first answers of a log."""
    return _MAGIC + frame(salt, schema.serialize())


def frame(salt: bytes, payload: Any) -> bytes:
    """A frame.

    Args:
        salt: The salt of the log.
        payload: A buffer of Arrow.
    """
    return b"".join((_HEAD.pack(salt, len(payload), zlib.crc32(payload)), payload))


class LogFile:
    """A log that is in memory.

    Args:
        content: Its bytes.

    Attributes:
        schema: The columns of its answers.
        nbytes: The size of the answers in memory.

    Raises:
        DamagedError: The log is damaged.
    """

    def __init__(self, content: bytes) -> None:
        schema_message, *payloads = _payloads(content)
        self.schema = pa.ipc.read_schema(schema_message)
        batches = [pa.ipc.read_record_batch(payload, self.schema) for payload in payloads]
        self._table = pa.Table.from_batches(batches, self.schema).combine_chunks()
        self.nbytes: int = self._table.nbytes

    def read(self, _: Sequence[int]) -> pa.Table:
        """All answers."""
        return self._table


def parquet(table: pa.Table) -> tuple[bytes, int]:
    """A table, sorted by bucket, as a Parquet file, and the CRC32 of its footer."""
    table = table.sort_by("bucket")
    buckets = table.column("bucket").to_pylist()
    sink = io.BytesIO()
    groups: list[tuple[int, int, int, int, int]] = []
    with pq.ParquetWriter(sink, table.schema, write_page_checksum=True) as writer:
        length = min(_GROUP_ROWS, max(1, _GROUP_BYTES * table.num_rows // max(1, table.nbytes)))
        for first in range(0, table.num_rows, length):
            rows = buckets[first : first + length]
            start = groups[-1][1] if groups else 0
            writer.write_table(table.slice(first, length), row_group_size=length)
            end = sink.tell()
            groups.append((start, end, zlib.crc32(sink.getbuffer()[start:end]), rows[0], rows[-1]))
        writer.add_key_value_metadata({_GROUPS: json.dumps(groups)})
    content = sink.getvalue()
    return content, zlib.crc32(content[-_footer_bytes(content) :])


class ParquetFile:
    """A Parquet file that is open. Its footer is read once.

    Args:
        file: An open file of Arrow.
        checksum: The CRC32 of its footer.
        kept_bytes: The row groups of a read are kept for the next one if they have at most this many bytes in memory.

    Attributes:
        schema: The columns of its answers.
        nbytes: 0: the answers are not in memory.

    Raises:
        DamagedError: The footer is damaged.
    """

    nbytes = 0

    def __init__(self, file: Any, checksum: int, kept_bytes: int) -> None:
        self._file = file
        self._size: int = file.size()
        self._footer = self._read_footer()
        if not self._size or zlib.crc32(self._footer) != checksum:
            raise DamagedError("its footer is not what was written")
        self._metadata = pq.read_metadata(pa.BufferReader(self._space(0, b"")))
        self._groups = json.loads(self._metadata.metadata[_GROUPS.encode()])
        schema = self._metadata.schema.to_arrow_schema()
        more = {name: value for name, value in schema.metadata.items() if name != _GROUPS.encode()}
        self.schema = schema.with_metadata(more)
        self._kept_bytes = kept_bytes
        self._kept: dict[int, pa.Table] = {}

    def read(self, buckets: Sequence[int]) -> pa.Table:
        """The answers of at least these buckets.

        Args:
            buckets: In ascending order.

        Raises:
            DamagedError: A row group is damaged.
        """
        numbers = [
            n
            for n, (*_, first, last) in enumerate(self._groups)
            if (place := bisect_left(buckets, first)) < len(buckets) and buckets[place] <= last
        ]
        groups = {n: self._kept[n] if n in self._kept else self._group(n) for n in numbers}
        self._kept = groups if sum(group.nbytes for group in groups.values()) <= self._kept_bytes else {}
        return pa.concat_tables([self.schema.empty_table(), *groups.values()])

    def _group(self, number: int) -> pa.Table:
        start, end, checksum, *_ = self._groups[number]
        content = self._file.read_at(end - start, start)
        if zlib.crc32(content) != checksum:
            raise DamagedError(f"bytes {start} to {end} are not what was written")
        parquet_file = pq.ParquetFile(pa.BufferReader(self._space(start, content)), metadata=self._metadata)
        return parquet_file.read_row_group(number).replace_schema_metadata(self.schema.metadata)

    def _space(self, start: int, content: bytes) -> pa.Buffer:
        """The file with checked bytes only: the footer, and these at `start`. The rest takes no memory."""
        space = mmap.mmap(-1, self._size)
        space[self._size - len(self._footer) :] = self._footer
        space[start : start + len(content)] = content
        return pa.py_buffer(space)

    def _read_footer(self) -> bytes:
        tail: bytes = self._file.read_at(min(self._size, _TAIL_BYTES), max(0, self._size - _TAIL_BYTES))
        nbytes = min(self._size, _footer_bytes(tail))
        return tail[-nbytes:] if nbytes <= len(tail) else self._file.read_at(nbytes, self._size - nbytes)


def _footer_bytes(end: bytes) -> int:
    """The length of a Parquet footer with its length and magic bytes, according to the last bytes of a file."""
    return int.from_bytes(end[-8:-4], "little") + 8


def _payloads(content: bytes) -> list[pa.Buffer]:
    if content[: len(_MAGIC)] != _MAGIC:
        raise DamagedError("it does not begin like a log")
    whole, position = pa.py_buffer(content), len(_MAGIC)
    salt = content[position : position + 8]
    found: list[pa.Buffer] = []
    while (start := position + _HEAD.size) <= len(content):
        salt_of_frame, length, checksum = _HEAD.unpack_from(content, position)
        if salt_of_frame != salt or not length or start + length > len(content):
            break
        payload = whole.slice(start, length)
        if zlib.crc32(payload) != checksum:
            break
        found.append(payload)
        position = start + length
    if len(found) < 2:  # noqa: PLR2004 - the schema and the first answers
        raise DamagedError("its first answers are not what was written")
    return found
