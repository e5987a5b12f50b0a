"""Database: files that it creates, recognises, refuses and leaves unchanged. FileThread: one call at a time."""

from __future__ import annotations

import random
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import trio
import trio.testing

from tests.support import PATIENCE
from trio_asyncio_io._files.sqlite import Database, FileFormat, FileThread


class BadFileError(Exception):
    pass


JOURNAL = FileFormat(
    application_id=7,
    version=3,
    schema=("CREATE TABLE numbers (number INTEGER)",),
    settings=("PRAGMA journal_mode = DELETE",),
    error=BadFileError,
    noun="number file",
    kind="a file of numbers",
    if_damaged="delete it",
    if_other_version="upgrade",
)
LOG = replace(JOURNAL, settings=("PRAGMA journal_mode = WAL",))


@pytest.fixture(params=[JOURNAL, LOG], ids=["journal", "log"])
def file_format(request: pytest.FixtureRequest) -> FileFormat:
    return request.param


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "numbers.sqlite"


@contextmanager
def opened(path: Path, file_format: FileFormat) -> Iterator[Database]:
    database = Database(path, file_format)
    database.open(lambda: None)
    try:
        yield database
    finally:
        database.close()


def insert(database: Database, number: int) -> None:
    with database.translated_errors(), database.transaction() as connection:
        connection.execute("INSERT INTO numbers VALUES (?)", (number,))


def numbers(database: Database) -> list[int]:
    return [number for (number,) in database.connection.execute("SELECT number FROM numbers")]


def execute(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)


def refusal(path: Path, file_format: FileFormat) -> str:
    """The message of the error for this file, which must not have changed."""
    before = path.read_bytes() if path.is_file() else None
    database = Database(path, file_format)
    with pytest.raises(BadFileError) as caught:
        database.open(lambda: None)
    assert database._connection is None
    assert before == (path.read_bytes() if path.is_file() else None)
    return str(caught.value)


@pytest.mark.parametrize("make", [lambda path: None, Path.touch], ids=["missing", "empty"])
def test_a_missing_or_empty_file_becomes_a_new_one(
    make: Callable[[Path], None], path: Path, file_format: FileFormat
) -> None:
    make(path)
    with opened(path, file_format) as database:
        insert(database, 1)
    with opened(path, file_format) as database:
        assert numbers(database) == [1]


def test_a_file_is_created_in_one_transaction(path: Path, file_format: FileFormat) -> None:
    broken = replace(file_format, schema=(*file_format.schema, "not a statement"))
    with pytest.raises(BadFileError):
        Database(path, broken).open(lambda: None)
    with opened(path, file_format) as database:
        assert numbers(database) == []


def test_a_transaction_that_raises_writes_nothing(path: Path, file_format: FileFormat) -> None:
    def fail(database: Database) -> None:
        with database.transaction() as connection:
            connection.execute("INSERT INTO numbers VALUES (1)")
            raise KeyError

    with opened(path, file_format) as database:
        with pytest.raises(KeyError):
            fail(database)
        insert(database, 2)
        assert numbers(database) == [2]


def test_a_missing_directory_is_an_error(tmp_path: Path, file_format: FileFormat) -> None:
    path = tmp_path / "missing" / "numbers.sqlite"
    assert refusal(path, file_format) == f"the number file {path} cannot be created: create its directory first"


def test_a_directory_is_refused(tmp_path: Path, file_format: FileFormat) -> None:
    message = refusal(tmp_path, file_format)
    assert message == f"the number file {tmp_path} is a directory: give the path of a file"


@pytest.mark.parametrize(
    "content",
    [b"S", b"\x00", b"SQLite format 3", b"SQLite format 3\x00", b"notes\n" * 500, random.Random(1).randbytes(10_000)],
    ids=["one byte", "one zero", "15 bytes", "16 bytes", "text", "random"],
)
def test_damage_is_refused(content: bytes, path: Path, file_format: FileFormat) -> None:
    """SQLite itself takes a file of one byte for an empty one."""
    path.write_bytes(content)
    message = refusal(path, file_format)
    assert message.startswith(f"the number file {path} is damaged, or not a file of numbers (")
    assert message.endswith("): delete it")


@pytest.mark.parametrize("statement", ["CREATE TABLE accounts (number)", "PRAGMA application_id = 8"])
def test_a_database_of_another_kind_is_refused(statement: str, path: Path, file_format: FileFormat) -> None:
    execute(path, statement, "PRAGMA user_version = 3")
    assert refusal(path, file_format).endswith("is a database, but not a file of numbers: give another path")


@pytest.mark.parametrize("version", [2, 4])
def test_another_version_is_refused(version: int, path: Path, file_format: FileFormat) -> None:
    execute(path, "PRAGMA application_id = 7", f"PRAGMA user_version = {version}")
    assert refusal(path, file_format).endswith(f"is of version {version}, and this release reads version 3: upgrade")


def test_a_file_that_stays_locked_is_an_error(
    path: Path, file_format: FileFormat, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trio_asyncio_io._files.sqlite.BUSY_SECONDS", 0.05)
    with opened(path, file_format) as database, closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(BadFileError, match=r"was locked by another process for 0\.05 s"):
            insert(database, 1)
        other.execute("ROLLBACK")
        insert(database, 2)
        assert numbers(database) == [2]


async def test_a_thread_runs_one_call_at_a_time_and_finishes_it() -> None:
    thread, gate, has_begun = FileThread(), threading.Event(), trio.Event()
    calls: list[str] = []

    def wait() -> None:
        trio.from_thread.run_sync(has_begun.set)
        assert gate.wait(PATIENCE)
        calls.append("first")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(thread.run, wait)
        await has_begun.wait()
        nursery.start_soon(thread.run, calls.append, "second")
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
        gate.set()
    assert calls == ["first"]
