"""Formats: logs and Parquet files, whose bytes are compared with checksums before Arrow reads them.

Log: the magic bytes `udfslog1`, then frames. A frame is a head of 32 bytes and a payload, little-endian:

     0  salt       8 bytes, random, the same in each frame of a file
     8  length     8 bytes, the length of the payload, a multiple of 8
    16  synced     8 bytes: so many bytes of the file were on the disk before this frame was written
    24  checksum   4 bytes, CRC32 of the payload
    28  checksum   4 bytes, CRC32 of the 28 bytes before it, started with the position of the frame in the file

The first payload is an Arrow schema, the others are record batches. A payload of length 0 only reports what is on the
disk. A log gets its name when its schema and its first answers are on the disk. The salt and the position identify a
frame, so neither the content of an answer nor an old block of the disk can be taken for one.

A log ends at its first frame that is not intact. If a later frame reports that these bytes were on the disk, the log is
damaged. Otherwise its process was killed while it wrote them, or the machine crashed: they are skipped.

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
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

__all__ = ["DamagedError", "frame", "log_start", "parquet", "read_log", "read_parquet"]

_MAGIC: Final = b"udfslog1"
_HEAD: Final = struct.Struct("<8sQQI")
_HEAD_BYTES: Final = _HEAD.size + 4

_GROUPS: Final = "udfs.groups"
_GROUP_ROWS: Final = 4_096

# Enough for the footer of most files, so that one read is enough, too.
_TAIL_BYTES: Final = 64 * 1024


class DamagedError(ValueError):
    """Bytes are not those that were written."""


class _Head(NamedTuple):
    salt: bytes
    length: int
    synced: int
    checksum: int


def log_start(salt: bytes, schema: pa.Schema) -> bytes:
    """The bytes before the first answers of a log."""
    return _MAGIC + frame(salt, len(_MAGIC), schema.serialize(), 0)


def frame(salt: bytes, position: int, payload: Any, synced: int) -> bytes:
    """A frame.

    Args:
        salt: That of the log.
        position: Where the frame is in the log.
        payload: Bytes, or a buffer of Arrow.
        synced: The number of bytes of the log that are on the disk.
    """
    head = _HEAD.pack(salt, len(payload), synced, zlib.crc32(payload))
    return b"".join((head, _checksum_of_head(head, position), payload))


def read_log(content: bytes) -> pa.Table:
    """The answers in a log.

    Raises:
        DamagedError: The log is damaged.
    """
    schema_message, *payloads = _payloads(content)
    schema = pa.ipc.read_schema(schema_message)
    batches = [pa.ipc.read_record_batch(payload, schema) for payload in payloads if payload.size]
    return pa.Table.from_batches(batches, schema).combine_chunks()


def parquet(table: pa.Table) -> tuple[bytes, int]:
    """A table, sorted by bucket, as a Parquet file, and the CRC32 of its footer."""
    table = table.sort_by("bucket")
    buckets = table.column("bucket").to_pylist()
    sink = io.BytesIO()
    groups: list[tuple[int, int, int, int, int]] = []
    with pq.ParquetWriter(sink, table.schema, write_page_checksum=True) as writer:
        for first in range(0, table.num_rows, _GROUP_ROWS):
            rows = buckets[first : first + _GROUP_ROWS]
            start = groups[-1][1] if groups else 0
            writer.write_table(table.slice(first, _GROUP_ROWS), row_group_size=_GROUP_ROWS)
            end = sink.tell()
            groups.append((start, end, zlib.crc32(sink.getbuffer()[start:end]), rows[0], rows[-1]))
        writer.add_key_value_metadata({_GROUPS: json.dumps(groups)})
    content = sink.getvalue()
    return content, zlib.crc32(content[-_footer_bytes(content) :])


def read_parquet(file: Any, checksum: int, buckets: range) -> tuple[pa.Table, bool]:
    """The row groups that may have answers of these buckets, and whether these are all.

    Args:
        file: An open file of Arrow.
        checksum: The CRC32 of its footer.
        buckets: A range with step 1. An empty one reads the schema.

    Raises:
        DamagedError: The footer or one of the row groups is damaged.
    """
    size = file.size()
    tail = file.read_at(min(size, _TAIL_BYTES), max(0, size - _TAIL_BYTES))
    nbytes = min(size, _footer_bytes(tail))
    footer = tail[-nbytes:] if nbytes <= len(tail) else file.read_at(nbytes, size - nbytes)
    if not size or zlib.crc32(footer) != checksum:
        raise DamagedError("its footer is not what was written")
    # Arrow reads this copy, which has checked bytes only. The rest is a hole, and takes no memory
    space = mmap.mmap(-1, size)
    space[size - nbytes :] = footer
    metadata = pq.read_metadata(pa.BufferReader(pa.py_buffer(space)))
    groups = json.loads(metadata.metadata[_GROUPS.encode()])
    needed = [n for n, (*_, first, last) in enumerate(groups) if first < buckets.stop and buckets.start <= last]
    for start, end, crc, *_ in map(groups.__getitem__, needed):
        content = file.read_at(end - start, start)
        if zlib.crc32(content) != crc:
            raise DamagedError(f"bytes {start} to {end} are not what was written")
        space[start:end] = content
    parquet_file = pq.ParquetFile(pa.BufferReader(pa.py_buffer(space)), metadata=metadata)
    # pyarrow 18 cannot read no row group
    table = parquet_file.read_row_groups(needed) if needed else parquet_file.schema_arrow.empty_table()
    more = {name: value for name, value in table.schema.metadata.items() if name != _GROUPS.encode()}
    return table.replace_schema_metadata(more), len(needed) == len(groups)


def _footer_bytes(end: bytes) -> int:
    """The length of a Parquet footer with its length and magic bytes, according to the last bytes of a file."""
    return int.from_bytes(end[-8:-4], "little") + 8


def _payloads(content: bytes) -> list[pa.Buffer]:
    if content[: len(_MAGIC)] != _MAGIC:
        raise DamagedError("it does not begin like a log")
    whole, position = pa.py_buffer(content), len(_MAGIC)
    salt = content[position : position + 8]
    found: list[pa.Buffer] = []
    while (head := _head(content, position)) and head.salt == salt:
        start = position + _HEAD_BYTES
        if start + head.length > len(content):
            break
        payload = whole.slice(start, head.length)
        if zlib.crc32(payload) != head.checksum:
            break
        found.append(payload)
        position = start + head.length
    if len(found) < 2:  # noqa: PLR2004 - the schema and the first answers
        raise DamagedError("its first answers are not what was written")
    if _was_synced(content, salt, position):
        raise DamagedError(f"byte {position} and the following are not what was written")
    return found


def _was_synced(content: bytes, salt: bytes, end: int) -> bool:
    """Whether a frame behind the end of the intact frames reports that more than these were on the disk."""
    position = content.find(salt, end)
    while position >= 0:
        head = _head(content, position)
        if head is not None and head.synced > end:
            return True
        position = content.find(salt, position + 1)
    return False


def _head(content: bytes, position: int) -> _Head | None:
    """The head of the frame at this position; None if there is none that is intact."""
    head, checksum = content[position : position + _HEAD.size], content[position + _HEAD.size : position + _HEAD_BYTES]
    is_intact = len(checksum) == 4 and checksum == _checksum_of_head(head, position)  # noqa: PLR2004 - bytes
    return _Head(*_HEAD.unpack(head)) if is_intact else None


def _checksum_of_head(head: bytes, position: int) -> bytes:
    return zlib.crc32(head, position & 0xFFFF_FFFF).to_bytes(4, "little")
