"""SQLiteStore: a committed checkpoint is loaded, and a damaged one is an error, never a wrong state."""

from __future__ import annotations

import os
import pickle
import re
import sqlite3
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from random import Random
from typing import Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

import trio_asyncio_io
from tests.support import PATIENCE, thorough_except
from trio_asyncio_io import Snapshot, SnapshotElement, StreamRecord, Watermark, ordered_wait
from trio_asyncio_io._files.codec import encoded
from trio_asyncio_io.checkpoints import Checkpoint, CheckpointError, CheckpointStore, SQLiteStore

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
COMMITS_OF_A_PROCESS = 8


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "job.sqlite"


@pytest.fixture
async def store(path: Path) -> AsyncIterator[SQLiteStore]:
    """An open store with one commit."""
    async with SQLiteStore(path) as store:
        await store.commit("job", OLD)
        yield store


def commit(path: Path, checkpoint: Checkpoint = CHECKPOINT, name: str = "job") -> None:
    """Commit in a Trio run of its own."""

    async def main() -> None:
        async with SQLiteStore(path) as store:
            await store.commit(name, checkpoint)

    trio.run(main)


def load(path: Path, name: str = "job") -> Checkpoint | None:
    """Load in a Trio run of its own."""

    async def main() -> Checkpoint | None:
        async with SQLiteStore(path) as store:
            return await store.load(name)

    return trio.run(main)


@contextmanager
def writing(path: Path) -> Iterator[sqlite3.Connection]:
    """A transaction of another process. Nobody else can write until it is rolled back."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield connection


class Exploding:
    """Its pickle runs code when it is loaded."""

    def __reduce__(self) -> Any:
        return pytest.fail, ("the pickle was loaded",)


def test_a_later_process_loads_the_commit_of_an_earlier_one(path: Path) -> None:
    commit(path)
    assert load(path) == CHECKPOINT


def test_without_a_commit_under_its_name_load_returns_none(path: Path) -> None:
    assert load(path) is None
    commit(path, name="another")
    assert load(path) is None


async def test_a_commit_replaces_only_the_checkpoint_of_its_name(store: SQLiteStore) -> None:
    for number in range(5):
        await store.commit("one", Checkpoint(SNAPSHOT, number))
        await store.commit("two", Checkpoint(SNAPSHOT, -number))
    await store.commit("one", NEW)
    assert await store.load("one") == NEW
    assert await store.load("two") == Checkpoint(SNAPSHOT, -4)
    assert await store.load("job") == OLD


async def test_a_run_continues_from_its_checkpoint(path: Path) -> None:
    async def double(number: int) -> int:
        await trio.lowlevel.checkpoint()
        return 2 * number

    async with SQLiteStore(path) as store:
        async with ordered_wait(range(20), double, capacity=3, buffer=5, timeout=5.0) as results:
            first = [await results.receive() for _ in range(7)]
            await store.commit("job", Checkpoint(results.snapshot(), len(first)))
            await results.receive()  # after the commit, so the next run emits it again
        start = await store.load("job")
        assert start is not None
        source = range(20)[start.snapshot.taken :]
        async with ordered_wait(source, double, timeout=5.0, restore=start.snapshot) as results:
            rest = [result async for result in results]
    assert [*first[: start.position], *rest] == [2 * number for number in range(20)]


def test_the_store_implements_the_protocol(path: Path) -> None:
    store: CheckpointStore = SQLiteStore(path)
    assert repr(store) == f"SQLiteStore({str(path)!r})"


def test_a_store_can_be_created_outside_trio_and_used_in_several_runs(path: Path) -> None:
    store = SQLiteStore(path)
    trio.run(store.commit, "job", CHECKPOINT)
    assert trio.run(store.load, "job") == CHECKPOINT
    trio.run(store.aclose)


def test_a_checkpoint_without_a_snapshot_is_refused() -> None:
    with pytest.raises(TypeError, match=r"takes a Snapshot, got None: give it the result of `results.snapshot\(\)`"):
        Checkpoint(None, 0)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "error", "why"),
    [
        (7, TypeError, "name must be a string, got 7"),
        ("", ValueError, "name must not be empty"),
        ("\ud800", ValueError, r"name must be text that UTF-8 can encode, got '\\ud800'"),
    ],
)
async def test_an_illegal_name_is_refused(name: Any, error: type[Exception], why: str, path: Path) -> None:
    async with SQLiteStore(path) as store:
        with pytest.raises(error, match=why):
            await store.load(name)
        with pytest.raises(error, match=why):
            await store.commit(name, CHECKPOINT)


async def test_commit_refuses_a_bare_snapshot(path: Path) -> None:
    async with SQLiteStore(path) as store:
        with pytest.raises(TypeError, match="commit takes a Checkpoint, got Snapshot"):
            await store.commit("job", SNAPSHOT)  # type: ignore[arg-type]


LOCK = threading.Lock()
NOT_STORABLE = [
    (Snapshot((SnapshotElement(5, LOCK),)), "snapshot.elements[0].element is <unlocked"),
    (Snapshot((SnapshotElement(5, StreamRecord(1, LOCK)),)), "snapshot.elements[0].element.timestamp is <unlo"),
    (Snapshot((SnapshotElement(5, 1, [1, {"a": LOCK}]),)), "snapshot.elements[0].results[1]['a'] is <unlocked"),
    (Snapshot((SnapshotElement(5, 1, [ValueError("x")]),)), "snapshot.elements[0].results[0] is ValueError('x')"),
]


@pytest.mark.parametrize(("snapshot", "why"), NOT_STORABLE, ids=[why for _, why in NOT_STORABLE])
async def test_a_part_that_cannot_be_stored_is_named_and_the_old_checkpoint_remains(
    snapshot: Snapshot, why: str, path: Path
) -> None:
    async with SQLiteStore(path) as store:
        await store.commit("job", CHECKPOINT)
        with pytest.raises(CheckpointError, match=f"^{re.escape(why)}.* Nothing was committed$") as caught:
            await store.commit("job", Checkpoint(snapshot, 0))
        assert isinstance(caught.value.__cause__, TypeError | ValueError)
        with pytest.raises(CheckpointError, match=r"^position is <unlocked"):
            await store.commit("job", Checkpoint(snapshot=SNAPSHOT, position=LOCK))
        assert await store.load("job") == CHECKPOINT


@pytest.mark.parametrize(
    ("position", "why"),
    [
        (b'{"$ZoneInfo":"Nowhere/Land"}', "ZoneInfoNotFoundError: .* It remains in the file: install what is missing"),
        (pickle.dumps(Exploding()), "UnicodeDecodeError"),
    ],
    ids=["zone", "pickle"],
)
def test_content_that_cannot_be_read_is_an_error_and_remains(position: bytes, why: str, path: Path) -> None:
    """A pickle runs no code, even if its checksum is right."""
    store = SQLiteStore(path)
    store._commit("job", encoded(SNAPSHOT, "snapshot"), position)
    store._database.close()
    before = path.read_bytes()
    with pytest.raises(CheckpointError, match=f"^'job' in the file {path} cannot be read: {why}"):
        load(path)
    assert path.read_bytes() == before


def test_content_that_is_no_snapshot_is_refused(path: Path) -> None:
    store = SQLiteStore(path)
    store._commit("job", b"[1,2]", b"0")
    store._database.close()
    with pytest.raises(CheckpointError, match=r"cannot be read: a durable checkpoint takes a Snapshot, got \[1, 2\]"):
        load(path)


# Damage. Read without a Trio run, which is twenty times as fast


def outcome_of_load(path: Path) -> str:
    store = SQLiteStore(path)
    try:
        found = {name: store._load(name) for name in ("job", "another", "third")}
    except CheckpointError as error:
        return "error" if str(path) in str(error) else f"error without the path: {error}"
    finally:
        store._database.close()
    return "loaded" if found == INTACT else f"loaded {found}"


INTACT = {"job": (b"snapshot of the job", b"7"), "another": (b"another snapshot", b"8"), "third": None}


def intact_file(path: Path) -> bytes:
    store = SQLiteStore(path)
    for name, row in INTACT.items():
        if row is not None:
            store._commit(name, *row)
    store._database.close()
    return path.read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize("step", thorough_except([7], [7, 1]))
def test_a_flipped_bit_is_an_error_or_makes_no_difference(path: Path, step: int) -> None:
    intact = intact_file(path)
    used = [place for place, byte in enumerate(intact) if byte]
    random = Random(1)
    places = [*used, *random.sample(range(len(intact)), 300 // step)]
    outcomes = Counter[str]()
    for number in range(0, len(places) * 8, step):
        place, bit = places[number // 8], number % 8
        damaged = bytearray(intact)
        damaged[place] ^= 1 << bit
        path.write_bytes(damaged)
        outcomes[outcome_of_load(path)] += 1
    assert outcomes.keys() == {"error", "loaded"}
    assert outcomes["error"] > outcomes.total() / 4


@pytest.mark.slow
@pytest.mark.parametrize("step", thorough_except([61], [61, 1]))
def test_a_truncated_file_is_an_error_at_each_length(path: Path, step: int) -> None:
    intact = intact_file(path)
    lengths = [*range(1, len(intact), step), *range(len(intact) - 20, len(intact))]
    for length in lengths:
        path.write_bytes(intact[:length])
        assert (length, outcome_of_load(path)) == (length, "error")


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE checkpoints SET name = 'third' WHERE name = 'job'",
        """UPDATE checkpoints SET (snapshot, position, checksum) =
           (SELECT snapshot, position, checksum FROM checkpoints WHERE name = 'another') WHERE name = 'job'""",
        "UPDATE checkpoints SET (snapshot, position) = (position, snapshot) WHERE name = 'job'",
        "UPDATE checkpoints SET position = (SELECT max(position) FROM checkpoints)",
        "UPDATE checkpoints SET position = 'text'",
        "UPDATE checkpoints SET checksum = x'00'",
        "DROP TABLE checkpoints",
        "ALTER TABLE checkpoints RENAME COLUMN position TO place",
    ],
)
def test_a_record_that_is_swapped_or_changed_is_an_error(path: Path, damage: str) -> None:
    intact_file(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(damage)
    assert outcome_of_load(path) == "error"


def test_damage_is_reported_with_the_file_and_the_remedy(path: Path) -> None:
    commit(path)
    path.write_bytes(path.read_bytes()[:5_000])
    with pytest.raises(CheckpointError, match=f"the file {path} is damaged.*delete both and begin anew"):
        load(path)


def test_a_relative_path_is_resolved_when_the_store_is_created(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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

    for number in (20, 60):
        trio.run(commits, number)
        sizes.append(path.stat().st_size)
    assert sizes[1] <= sizes[0] + 20_000
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_the_settings_are_those_that_survive_a_power_cut(path: Path) -> None:
    store = SQLiteStore(path)
    store._commit("job", b"", b"")
    connection = store._database.connection
    settings = [connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("journal_mode", "synchronous")]
    store._database.close()
    assert settings == ["delete", EXTRA]


async def test_a_closed_store_raises_closed_resource_error(store: SQLiteStore) -> None:
    await store.aclose()
    await store.aclose()
    with pytest.raises(trio.ClosedResourceError, match="was closed"):
        await store.load("job")
    with pytest.raises(trio.ClosedResourceError, match="was closed"):
        await store.commit("job", CHECKPOINT)


def test_a_store_that_is_never_used_creates_no_file(path: Path) -> None:
    trio.run(SQLiteStore(path).aclose)
    assert not path.exists()


async def test_later_changes_to_an_element_are_not_committed(store: SQLiteStore, path: Path) -> None:
    value = ["before"]
    checkpoint = Checkpoint(Snapshot((SnapshotElement(0, value),), taken=1), 0)
    with writing(path) as writer:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(store.commit, "another", NEW)  # the next commit has to wait for it
            await wait_all_tasks_blocked()
            nursery.start_soon(store.commit, "job", checkpoint)
            await wait_all_tasks_blocked()
            value[0] = "after"
            writer.execute("ROLLBACK")
    found = await store.load("job")
    assert found is not None
    assert found.snapshot.elements[0].element == ["before"]


async def test_a_commit_that_has_begun_finishes_although_it_is_cancelled(store: SQLiteStore, path: Path) -> None:
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


async def test_a_commit_in_a_cancelled_scope_does_not_happen(store: SQLiteStore) -> None:
    with trio.CancelScope() as scope:
        scope.cancel()
        await store.commit("job", NEW)
    assert scope.cancelled_caught
    assert await store.load("job") == OLD


async def test_a_commit_that_waits_for_another_one_can_be_cancelled(store: SQLiteStore, path: Path) -> None:
    with writing(path) as writer:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(store.commit, "job", NEW)
            await wait_all_tasks_blocked()
            async with trio.open_nursery() as cancelled:
                cancelled.start_soon(store.commit, "job", CHECKPOINT)
                await wait_all_tasks_blocked()
                cancelled.cancel_scope.cancel()
            writer.execute("ROLLBACK")
    assert await store.load("job") == NEW


async def test_leaving_the_block_waits_for_a_commit(path: Path) -> None:
    async def roll_back() -> None:
        await wait_all_tasks_blocked()  # until leaving the block waits
        writer.execute("ROLLBACK")

    with writing(path) as writer:
        async with trio.open_nursery() as nursery:
            async with SQLiteStore(path) as store:
                nursery.start_soon(store.commit, "job", NEW)
                await wait_all_tasks_blocked()
                nursery.start_soon(roll_back)
            async with SQLiteStore(path) as another:
                assert await another.load("job") == NEW


async def test_leaving_a_cancelled_block_closes_the_file(path: Path) -> None:
    with trio.CancelScope() as scope:
        async with SQLiteStore(path) as store:
            await store.commit("job", NEW)
            scope.cancel()
    assert store._database._connection is None


PROCESS = f"""
import sys, trio
from trio_asyncio_io import Snapshot
from trio_asyncio_io.checkpoints import Checkpoint, SQLiteStore

async def main(path, name):
    async with SQLiteStore(path) as store:
        for number in range({COMMITS_OF_A_PROCESS}):
            await store.commit(name, Checkpoint(Snapshot(), (name, number)))
            await store.commit("shared", Checkpoint(Snapshot(), (name, number)))

trio.run(main, *sys.argv[1:])
"""


@pytest.mark.processes
def test_several_processes_create_and_share_a_file(path: Path) -> None:
    names = ["a", "b", "c"]
    root = str(Path(trio_asyncio_io.__file__).parents[1])
    processes = [
        subprocess.Popen([sys.executable, "-c", PROCESS, path, name], env={**os.environ, "PYTHONPATH": root})
        for name in names
    ]
    assert [process.wait(PATIENCE) for process in processes] == [0, 0, 0]
    last = COMMITS_OF_A_PROCESS - 1
    assert [load(path, name) for name in names] == [Checkpoint(Snapshot(), (name, last)) for name in names]
    assert load(path, "shared") in [Checkpoint(Snapshot(), (name, last)) for name in names]
