"""Bytes of logs: what was written is read, and everything else is refused or skipped."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from udfs._memo.format import DamagedError, LogFile, ParquetFile, frame, log_start, parquet

SALT = b"saltsalt"


class Log:
    """The bytes of a log, and the length after each part."""

    def __init__(self, schema: pa.Schema, *tables: pa.Table) -> None:
        self.content = log_start(SALT, schema)
        self.ends: list[int] = []
        for table in tables:
            [batch] = table.to_batches()
            self.add(batch.serialize())

    def add(self, payload: Any) -> None:
        self.content += frame(SALT, payload)
        self.ends.append(len(self.content))


@pytest.fixture
def log(answers: Any, directory: Any) -> Log:
    """A log of five answers, one after the other."""
    return Log(directory().schema, *(answers(number) for number in range(5)))


def answers_in(content: bytes) -> pa.Table:
    return LogFile(content).read(range(256))


def numbers(table: pa.Table) -> list[int]:
    return [each["n"] for each in table.column("inputs").to_pylist()]


def test_a_log_that_was_cut_off_anywhere_has_the_answers_before_that(log: Log) -> None:
    for length in range(log.ends[0], len(log.content) + 1):
        expected = [number for number, end in enumerate(log.ends) if end <= length]
        assert numbers(answers_in(log.content[:length])) == expected
        zeros = log.content[:length] + bytes(len(log.content) - length)  # as a file system may leave them
        assert numbers(answers_in(zeros))[: len(expected)] == expected


def test_a_log_without_its_first_answers_is_damaged_because_it_gets_its_name_with_them(log: Log) -> None:
    for length in range(log.ends[0]):
        with pytest.raises(DamagedError):
            answers_in(log.content[:length])


def test_a_log_ends_at_a_damage_and_no_answer_before_it_is_lost(log: Log) -> None:
    for position in range(log.ends[0], len(log.content)):
        damaged = bytearray(log.content)
        damaged[position] ^= 0x10
        before = [number for number, end in enumerate(log.ends) if end <= position]
        assert numbers(answers_in(bytes(damaged))) == before


def test_an_answer_that_contains_a_log_cannot_forge_a_frame(log: Log, directory: Any, answers: Any) -> None:
    """The answer itself is torn, and nothing behind the start of its frame is searched for another one."""
    forged = Log(directory().schema)
    forged.content = log.content[: log.ends[1]]
    forged.add(log.content + bytes(-len(log.content) % 8))
    assert numbers(answers_in(forged.content[:-8])) == [0, 1]


def test_parquet_is_read_by_bucket_and_in_groups(directory: Any, answers: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("udfs._memo.format._GROUP_ROWS", 2)
    content, checksum = parquet(answers(3, 1, 2, 1 + 256, 4))
    for kept_bytes in (0, 2**20):
        file = ParquetFile(pa.BufferReader(content), checksum, kept_bytes)
        assert file.schema.equals(directory().schema, check_metadata=True)
        for buckets, expected in (
            (range(256), [1, 257, 2, 3, 4]),
            (range(1, 2), [1, 257]),
            (range(4, 5), [4]),
            (range(9, 10), []),
            (range(0), []),
        ):
            assert numbers(file.read(buckets)) == expected


def test_a_row_group_has_a_limited_size_in_memory(answers: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    table = answers(*range(64))
    monkeypatch.setattr("udfs._memo.format._GROUP_BYTES", table.nbytes // 4)
    content, checksum = parquet(table)
    assert pq.ParquetFile(pa.BufferReader(content)).metadata.num_row_groups >= 4
    assert numbers(ParquetFile(pa.BufferReader(content), checksum, 0).read(range(256))) == list(range(64))


def test_only_the_row_groups_of_the_buckets_are_read(answers: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A task has every 64th bucket, for example. Those between them belong to other tasks."""
    monkeypatch.setattr("udfs._memo.format._GROUP_ROWS", 1)
    content, checksum = parquet(answers(3, 5, 67, 70, 131))
    read = []

    class File:
        def __init__(self) -> None:
            self.opened = pa.BufferReader(content)

        def size(self) -> int:
            return len(content)

        def read_at(self, nbytes: int, offset: int) -> bytes:
            read.append(offset)
            return bytes(self.opened.read_at(nbytes, offset))

    file = ParquetFile(File(), checksum, 0)
    read.clear()
    assert numbers(file.read([3, 67, 131])) == [3, 67, 131]
    assert len(read) == 3
    assert numbers(file.read([4, 66, 132])) == []
