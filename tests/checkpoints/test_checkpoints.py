"""Durable checkpoints: what is committed is loaded, and what is damaged is told, never taken for a state."""

from __future__ import annotations

import os
import pickle
import sqlite3
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

import trio_asyncio_io
from trio_asyncio_io import Snapshot, SnapshotElement, StreamRecord, Watermark, assign_watermarks, ordered_wait
from trio_asyncio_io._sqlite import Database
from trio_asyncio_io.checkpoints import Checkpoint, CheckpointError, CheckpointStore, SQLiteStore, _table

SNAPSHOT = Snapshot(
    (
        SnapshotElement(3, StreamRecord("a", 1)),
        SnapshotElement(4, Watermark(1)),
        SnapshotElement(7, "b", ["B", None]),
    ),
    taken=8,
)
CHECKPOINT = Checkpoint(SNAPSHOT, position={"bytes": 1_024})
OLD = Checkpoint(Snapshot(), position="old")
NEW = Checkpoint(SNAPSHOT, position="new")
EXTRA = 3  # SQLite's number for it
COMMITS_OF_A_PROCESS = 20


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "job.sqlite"


@pytest.fixture
async def store(path: Path) -> AsyncIterator[SQLiteStore]:
    """One that has committed something already."""
    async with SQLiteStore(path) as store:
        await store.commit("job", OLD)
        yield store


def commit(path: Path, checkpoint: Checkpoint = CHECKPOINT, name: str = "job") -> None:
    """As one process does."""

    async def main() -> None:
        async with SQLiteStore(path) as store:
            await store.commit(name, checkpoint)

    trio.run(main)


def load(path: Path, name: str = "job") -> Checkpoint | None:
    """As the next one does."""

    async def main() -> Checkpoint | None:
        async with SQLiteStore(path) as store:
            return await store.load(name)

    return trio.run(main)


@contextmanager
def writing(path: Path) -> Iterator[sqlite3.Connection]:
    """Another process's transaction, which keeps all others from writing until it is rolled back."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield connection


class Uncooperative:
    """Does not pickle."""

    def __reduce__(self) -> Any:
        raise TypeError("not me")


class Gone:
    """Pickles, and does not unpickle."""

    def __reduce__(self) -> Any:
        return int, ("no number",)


def test_what_one_process_commits_the_next_one_loads(path: Path) -> None:
    commit(path)
    assert load(path) == CHECKPOINT


async def test_a_store_loads_what_it_has_committed_itself(store: SQLiteStore) -> None:
    await store.commit("job", CHECKPOINT)
    assert await store.load("job") == CHECKPOINT


def test_where_nothing_was_committed_there_is_none(path: Path) -> None:
    assert load(path) is None
    commit(path, name="another")
    assert load(path) is None


async def test_a_commit_replaces_the_one_before_it_and_no_other_name(store: SQLiteStore) -> None:
    for number in range(5):
        await store.commit("one", Checkpoint(SNAPSHOT, number))
        await store.commit("two", Checkpoint(SNAPSHOT, -number))
    await store.commit("one", NEW)
    assert await store.load("one") == NEW
    assert await store.load("two") == Checkpoint(SNAPSHOT, -4)
    assert await store.load("job") == OLD


def test_exceptions_among_the_results_come_back(path: Path) -> None:
    failed = Snapshot((SnapshotElement(0, "a", [LookupError("no a")]),), taken=1)
    commit(path, Checkpoint(failed, 0))
    found = load(path)
    assert found is not None
    assert repr(found.snapshot.elements[0].results) == "[LookupError('no a')]"


async def test_a_run_goes_on_from_what_was_committed(path: Path) -> None:
    async def double(number: int) -> int:
        await trio.lowlevel.checkpoint()
        return 2 * number

    async with SQLiteStore(path) as store:
        async with ordered_wait(range(20), double, capacity=3, buffer=5, timeout=5.0) as results:
            first = [await results.receive() for _ in range(7)]
            await store.commit("job", Checkpoint(results.snapshot(), len(first)))
            await results.receive()  # after the commit: it is lost with this run
        start = await store.load("job")
        assert start is not None
        source = range(20)[start.snapshot.taken :]
        async with ordered_wait(source, double, timeout=5.0, restore=start.snapshot) as results:
            rest = [result async for result in results]
    assert [*first[: start.position], *rest] == [2 * number for number in range(20)]


async def test_a_run_with_assigned_watermarks_goes_on_from_what_was_committed(path: Path) -> None:
    def source(taken: int) -> Iterator[StreamRecord[int] | Watermark]:
        return assign_watermarks(range(taken, 20), timestamp=lambda number: number, max_out_of_orderness=0)

    async def double(number: int) -> int:
        return 2 * number

    async with SQLiteStore(path) as store:
        async with ordered_wait(source(0), double, capacity=3, buffer=5, timeout=5.0) as results:
            first = [await results.receive() for _ in range(7)]
            await store.commit("job", Checkpoint(results.snapshot(), len(first)))
        start = await store.load("job")
        assert start is not None
        async with ordered_wait(source(start.snapshot.taken), double, timeout=5.0, restore=start.snapshot) as results:
            rest = [result async for result in results]
    values = [each.value for each in [*first, *rest] if isinstance(each, StreamRecord)]
    assert values == [2 * number for number in range(20)]


def test_the_store_is_what_the_protocol_asks_for(path: Path) -> None:
    store: CheckpointStore = SQLiteStore(path)
    assert repr(store) == f"SQLiteStore({str(path)!r})"


def test_a_store_is_made_outside_of_trio_and_serves_one_run_after_the_other(path: Path) -> None:
    store = SQLiteStore(path)
    trio.run(store.commit, "job", CHECKPOINT)
    assert trio.run(store.load, "job") == CHECKPOINT
    trio.run(store.aclose)


def test_a_checkpoint_takes_a_snapshot_and_nothing_else() -> None:
    with pytest.raises(TypeError, match=r"takes a Snapshot, got None: give it the result of `results.snapshot\(\)`"):
        Checkpoint(None, 0)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("path", "error", "why"),
    [
        (None, TypeError, "path must be a file's path, got None"),
        (b"job", TypeError, "path must be a file's path, got b'job'"),
        ("", ValueError, "path must be a file's path, got ''"),
        (":memory:", ValueError, "path must be a file's path, got ':memory:'"),
    ],
)
def test_a_path_that_is_none_is_refused(path: Any, error: type[Exception], why: str) -> None:
    with pytest.raises(error, match=why):
        SQLiteStore(path)


@pytest.mark.parametrize(
    ("name", "error", "why"),
    [
        (7, TypeError, "name must be a string, got 7"),
        ("", ValueError, "name must not be empty"),
        ("\ud800", ValueError, r"name must be text that UTF-8 can encode, got '\\ud800'"),
    ],
)
async def test_a_name_that_is_none_is_refused(name: Any, error: type[Exception], why: str, path: Path) -> None:
    async with SQLiteStore(path) as store:
        with pytest.raises(error, match=why):
            await store.load(name)
        with pytest.raises(error, match=why):
            await store.commit(name, CHECKPOINT)


async def test_a_bare_snapshot_is_not_committed(path: Path) -> None:
    async with SQLiteStore(path) as store:
        with pytest.raises(TypeError, match="commit takes a Checkpoint, got a Snapshot"):
            await store.commit("job", SNAPSHOT)  # type: ignore[arg-type]


UNPICKLABLE = [
    (Checkpoint(Snapshot((SnapshotElement(5, Uncooperative()),)), 0), "element 5, a Uncooperative,"),
    (Checkpoint(Snapshot((SnapshotElement(5, StreamRecord(Uncooperative(), 1)),)), 0), "element 5, a Uncooperative,"),
    (Checkpoint(Snapshot((SnapshotElement(5, 1, [1, Uncooperative()]),)), 0), "a result of element 5, a Uncooperative"),
    (Checkpoint(Snapshot((SnapshotElement(5, StreamRecord(1, Uncooperative())),)), 0), "element 5, a StreamRecord,"),
    (Checkpoint(SNAPSHOT, Uncooperative()), "the position, a Uncooperative,"),
    (Checkpoint(SNAPSHOT, threading.Lock()), "the position, a lock, does not pickle: cannot pickle '_thread.lock'"),
]


@pytest.mark.parametrize(("checkpoint", "why"), UNPICKLABLE, ids=[why for _, why in UNPICKLABLE])
async def test_what_does_not_pickle_is_named_and_the_old_one_stands(
    checkpoint: Checkpoint, why: str, path: Path
) -> None:
    async with SQLiteStore(path) as store:
        await store.commit("job", CHECKPOINT)
        with pytest.raises(CheckpointError, match=why) as caught:
            await store.commit("job", checkpoint)
        assert isinstance(caught.value.__cause__, TypeError)
        assert await store.load("job") == CHECKPOINT


def test_what_does_not_unpickle_is_told_and_kept(path: Path) -> None:
    commit(path, Checkpoint(SNAPSHOT, Gone()))
    before = path.read_bytes()
    with pytest.raises(CheckpointError, match=r"ValueError: invalid literal .* It is kept as it is") as caught:
        load(path)
    assert str(caught.value).startswith(f"'job' in the file {path}: it does not unpickle: ")
    assert isinstance(caught.value.__cause__, ValueError)
    assert path.read_bytes() == before


def test_another_object_is_no_checkpoint(path: Path) -> None:
    file = _table.CheckpointTable(path)
    file.commit("job", pickle.dumps(SNAPSHOT))
    file.close()
    with pytest.raises(CheckpointError, match="it is not a durable checkpoint, but a Snapshot"):
        load(path)


def test_every_byte_that_is_damaged_is_told_or_does_not_matter(path: Path) -> None:
    commit(path)
    commit(path, NEW, name="another")
    whole = path.read_bytes()
    used = [place for place, byte in enumerate(whole) if byte]
    random = Random(1)
    damages = [(place, 0) for place in used]
    damages += [(random.randrange(len(whole)), random.randrange(256)) for _ in range(200)]
    outcomes = Counter[str]()
    for place, byte in damages:
        damaged = bytearray(whole)
        damaged[place] = byte
        path.write_bytes(damaged)
        outcomes[told_or_loaded(path)] += 1
    assert outcomes.keys() == {"told", "loaded"}
    assert outcomes["told"] > len(used) / 2


def told_or_loaded(path: Path) -> str:
    try:
        found = load(path)
    except CheckpointError as error:
        return "told" if str(path) in str(error) else f"told without the file: {error}"
    return "loaded" if found == CHECKPOINT else f"loaded {found}"


@pytest.mark.parametrize("part", [0.01, 0.3, 0.5, 0.9, 0.999])
def test_a_file_that_was_cut_is_told(part: float, path: Path) -> None:
    commit(path)
    path.write_bytes(path.read_bytes()[: int(part * path.stat().st_size)])
    with pytest.raises(CheckpointError, match=f"the file {path} is damaged.*delete both and begin anew"):
        load(path)


@pytest.mark.parametrize("length", [1, 2, 15, 16, 99, 100, 512, 4_096])
def test_the_first_bytes_of_a_file_are_refused_and_left_as_they_are(length: int, path: Path) -> None:
    """SQLite takes a file of one byte for an empty one."""
    commit(path)
    first = path.read_bytes()[:length]
    path.write_bytes(first)
    for use in (load, commit):
        with pytest.raises(CheckpointError, match=f"the file {path} is damaged.*restore it from a copy"):
            use(path)
        assert path.read_bytes() == first


@pytest.mark.parametrize("make", [lambda path: None, Path.touch], ids=["missing", "empty"])
def test_a_file_that_is_missing_or_empty_is_a_new_one(make: Any, path: Path) -> None:
    """A process that is killed before its first commit leaves an empty one."""
    make(path)
    assert load(path) is None
    commit(path)
    assert load(path) == CHECKPOINT


def test_garbage_is_told_and_left_as_it_is(path: Path) -> None:
    path.write_bytes(b"these are my holiday notes\n" * 100)
    with pytest.raises(CheckpointError, match=f"the file {path} is damaged, or not a file of durable checkpoints"):
        commit(path)
    assert path.read_bytes() == b"these are my holiday notes\n" * 100


def test_another_programs_database_is_left_as_it_is(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE notes (text)")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(
        CheckpointError, match="is a database, but not a file of durable checkpoints: give another path"
    ):
        commit(path)
    assert path.read_bytes() == before


def test_a_newer_file_is_told_and_left_as_it_is(path: Path) -> None:
    commit(path)
    with sqlite3.connect(path) as connection:
        connection.execute(f"PRAGMA user_version = {_table.FORMAT.version + 1}")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(CheckpointError, match=r"is of version 2, and this release reads version 1: .*or upgrade"):
        commit(path)
    assert path.read_bytes() == before


def test_a_directory_that_is_missing_is_told(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="cannot be made: make its directory first"):
        load(tmp_path / "missing" / "job.sqlite")


def test_a_directory_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=f"the file {tmp_path} cannot be used: unable to open"):
        load(tmp_path)


def test_the_path_is_that_of_the_moment_at_which_it_was_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    store = SQLiteStore("job.sqlite")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    trio.run(store.commit, "job", CHECKPOINT)
    trio.run(store.aclose)
    assert load(tmp_path / "job.sqlite") == CHECKPOINT


def test_the_file_does_not_grow_with_the_number_of_commits(path: Path) -> None:
    random = Random(1)
    sizes = []

    async def commits(number: int) -> None:
        async with SQLiteStore(path) as store:
            for _ in range(number):
                await store.commit("job", Checkpoint(SNAPSHOT, random.randbytes(random.randrange(10_000, 20_000))))

    for number in (20, 200):
        trio.run(commits, number)
        sizes.append(path.stat().st_size)
    assert sizes[1] <= sizes[0] + 20_000
    assert [each.name for each in path.parent.iterdir()] == [path.name]


def test_a_commit_that_has_returned_is_meant_to_survive_a_power_cut(path: Path) -> None:
    file = _table.CheckpointTable(path)
    file.commit("job", b"")
    connection = file._database.connection
    settings = [connection.execute(f"PRAGMA {each}").fetchone()[0] for each in ("journal_mode", "synchronous")]
    file.close()
    assert settings == ["delete", EXTRA]


def test_a_file_is_made_as_a_whole_or_not_at_all(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        schema = (*_table.FORMAT.schema, "and then it is killed")
        patch.setattr(_table, "FORMAT", replace(_table.FORMAT, schema=schema))
        with pytest.raises(CheckpointError):
            commit(path)
    assert load(path) is None
    commit(path)
    assert load(path) == CHECKPOINT


def test_a_file_that_another_process_has_made_a_moment_ago_is_used_as_it_is(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit(path, OLD)
    is_new, seen_before = Database._is_new, iter([True])
    monkeypatch.setattr(Database, "_is_new", lambda *arguments: next(seen_before, None) or is_new(*arguments))
    assert load(path) == OLD


async def test_a_closed_store_says_so(store: SQLiteStore) -> None:
    await store.aclose()
    await store.aclose()
    with pytest.raises(trio.ClosedResourceError, match="was closed"):
        await store.load("job")
    with pytest.raises(trio.ClosedResourceError, match="was closed"):
        await store.commit("job", CHECKPOINT)


def test_a_store_that_was_never_used_makes_no_file(path: Path) -> None:
    trio.run(SQLiteStore(path).aclose)
    assert not path.exists()


async def test_what_is_committed_is_what_stood_there_at_the_call(store: SQLiteStore, path: Path) -> None:
    value = ["as it was"]
    checkpoint = Checkpoint(Snapshot((SnapshotElement(0, value),), taken=1), 0)
    with writing(path) as writer:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(store.commit, "another", NEW)  # before which it does not come to its turn
            await wait_all_tasks_blocked()
            nursery.start_soon(store.commit, "job", checkpoint)
            await wait_all_tasks_blocked()
            value[0] = "changed while it was being written"
            writer.execute("ROLLBACK")
    found = await store.load("job")
    assert found is not None
    assert found.snapshot.elements[0].element == ["as it was"]


async def test_a_commit_that_has_begun_is_finished_and_returns(store: SQLiteStore, path: Path) -> None:
    has_returned = False

    async def commit_new() -> None:
        nonlocal has_returned
        await store.commit("job", NEW)
        has_returned = True

    with writing(path) as writer:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(commit_new)
            await wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()
            with trio.CancelScope(shield=True):
                await wait_all_tasks_blocked()
            assert not has_returned
            writer.execute("ROLLBACK")
    assert has_returned
    assert await store.load("job") == NEW


async def test_a_commit_that_is_cancelled_did_not_happen(store: SQLiteStore) -> None:
    with trio.CancelScope() as scope:
        scope.cancel()
        await store.commit("job", NEW)
    assert scope.cancelled_caught
    assert await store.load("job") == OLD


async def test_a_commit_that_waits_for_another_one_leaves_when_it_is_cancelled(store: SQLiteStore, path: Path) -> None:
    with writing(path) as writer:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(store.commit, "job", NEW)
            await wait_all_tasks_blocked()
            with trio.move_on_after(0.01) as scope:
                await store.commit("job", CHECKPOINT)
            assert scope.cancelled_caught
            writer.execute("ROLLBACK")
    assert await store.load("job") == NEW


async def test_leaving_the_block_waits_for_a_commit_under_way(path: Path) -> None:
    async def roll_back() -> None:
        await trio.sleep(0.05)
        writer.execute("ROLLBACK")

    with writing(path) as writer:
        async with trio.open_nursery() as nursery:
            async with SQLiteStore(path) as store:
                nursery.start_soon(store.commit, "job", NEW)
                await wait_all_tasks_blocked()
                nursery.start_soon(roll_back)
            async with SQLiteStore(path) as another:
                assert await another.load("job") == NEW


async def test_leaving_the_block_when_cancelled_closes_the_file_all_the_same(path: Path) -> None:
    with trio.CancelScope() as scope:
        async with SQLiteStore(path) as store:
            await store.commit("job", NEW)
            scope.cancel()
    assert not store._table._database.is_open


async def test_other_tasks_run_while_a_commit_waits(store: SQLiteStore, path: Path) -> None:
    turns = 0
    with writing(path) as writer:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(store.commit, "job", NEW)
            for _ in range(20):
                await trio.sleep(0.001)
                turns += 1
            writer.execute("ROLLBACK")
    assert turns == 20


async def test_a_file_that_stays_locked_is_told_and_the_old_one_stands(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trio_asyncio_io._sqlite.BUSY_SECONDS", 0.1)
    async with SQLiteStore(path) as store:
        await store.commit("job", OLD)
        with writing(path):
            before = time.monotonic()
            with pytest.raises(CheckpointError, match=r"was locked by another process for 0\.1 s"):
                await store.commit("job", NEW)
            assert time.monotonic() - before >= 0.1
        assert await store.load("job") == OLD
        await store.commit("job", NEW)
        assert await store.load("job") == NEW


PROCESS = f"""
import sys, trio
from trio_asyncio_io import Snapshot
from trio_asyncio_io._sqlite import Database
from trio_asyncio_io.checkpoints import Checkpoint, SQLiteStore

async def main(path, name):
    async with SQLiteStore(path) as store:
        for number in range({COMMITS_OF_A_PROCESS}):
            await store.commit(name, Checkpoint(Snapshot(), (name, number)))
            await store.commit("shared", Checkpoint(Snapshot(), (name, number)))

trio.run(main, *sys.argv[1:])
"""


def test_several_processes_share_a_file_from_its_first_moment_on(path: Path) -> None:
    names = ["a", "b", "c"]
    root = str(Path(trio_asyncio_io.__file__).parents[1])
    processes = [
        subprocess.Popen([sys.executable, "-c", PROCESS, path, name], env={**os.environ, "PYTHONPATH": root})
        for name in names
    ]
    assert [process.wait() for process in processes] == [0, 0, 0]
    last = COMMITS_OF_A_PROCESS - 1
    assert [load(path, name) for name in names] == [Checkpoint(Snapshot(), (name, last)) for name in names]
    assert load(path, "shared") in [Checkpoint(Snapshot(), (name, last)) for name in names]
