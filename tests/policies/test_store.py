"""Store: values with an expiry in a file that several processes use, and what damage does to them."""

from __future__ import annotations

import math
import random
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Self

import pytest

from tests.support import PATIENCE, thorough_except
from trio_asyncio_io.policies import CacheError
from trio_asyncio_io.policies._persistent import Insert, Store

FLIPS = pytest.mark.parametrize("flips", thorough_except([75], [75, 1_000]))
ROUNDS = 80


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "cache.sqlite"


class Clock:
    """The wall clock of all stores, which tests set."""

    now = 0.0

    def time(self) -> float:
        return self.now


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr("trio_asyncio_io.policies._persistent.time", clock)
    return clock


class OpenedStore:
    """A store that is open in a block."""

    def __init__(self, path: Path, name: str = "n") -> None:
        self.store = Store(str(path), name)

    def __enter__(self) -> Self:
        self.store.open()
        return self

    def __exit__(self, *_: object) -> None:
        self.store.close()

    def look_up(self, *keys: str) -> list[Any]:
        return self.store.execute([key.encode() for key in keys])

    def insert(self, seconds: float = math.inf, **values: str) -> list[Any]:
        return self.store.execute([Insert(key.encode(), value.encode(), seconds) for key, value in values.items()])


def test_a_stored_value_is_found_after_reopening(path: Path) -> None:
    with OpenedStore(path) as one:
        assert one.insert(a="1", b="2") == [None, None]
        assert one.look_up("a", "c") == [b"1", None]
    with OpenedStore(path) as other:
        assert other.look_up("c", "b", "a") == [None, b"2", b"1"]


def test_inserts_and_lookups_are_executed_together(path: Path) -> None:
    with OpenedStore(path) as one:
        assert one.store.execute([b"a", Insert(b"a", b"1", 9.0), b"b"]) == [b"1", None, None]
        assert one.store.execute([]) == []


def test_a_value_is_replaced(path: Path) -> None:
    with OpenedStore(path) as one:
        one.insert(a="1")
        one.insert(a="2")
        assert one.look_up("a") == [b"2"]


def test_functions_with_different_names_share_no_values(path: Path) -> None:
    with OpenedStore(path, name="one") as one, OpenedStore(path, name="two") as two:
        one.insert(a="1")
        assert two.look_up("a") == [None]


def test_a_value_is_found_until_it_expires(path: Path, clock: Clock) -> None:
    with OpenedStore(path) as one:
        one.insert(seconds=10.0, a="1")
        clock.now = 9.75
        assert one.look_up("a") == [b"1"]
        clock.now = 10.0
        assert one.look_up("a") == [None]


def test_expired_values_are_deleted_when_the_file_is_opened(path: Path, clock: Clock) -> None:
    with OpenedStore(path) as one:
        one.insert(seconds=10.0, a="1")
        one.insert(seconds=20.0, b="2")
        one.insert(c="3")
    for clock.now, left in ((15.0, 2), (1e12, 1)):
        with OpenedStore(path):
            assert rows(path) == left


def rows(path: Path) -> int:
    connection = sqlite3.connect(path)
    (count,) = connection.execute("SELECT count(*) FROM answers").fetchone()
    connection.close()
    return int(count)


def execute(path: Path, *statements: str) -> None:
    connection = sqlite3.connect(path, isolation_level=None)
    for statement in statements:
        connection.execute(statement)
    connection.close()


# Files that are not caches.


def refusal(path: Path) -> str:
    with pytest.raises(CacheError) as caught, OpenedStore(path):
        pass
    assert str(path) in str(caught.value)
    return str(caught.value)


def test_a_file_that_is_not_a_database_is_refused(path: Path) -> None:
    path.write_bytes(random.Random(1).randbytes(10_000))
    assert "is damaged, or not a cache of this project (file is not a database): delete it" in refusal(path)


# Damage.


FILLED = {f"k{number}": f"value {number} " * (number % 40) for number in range(120)}


def fill(path: Path) -> bytes:
    with OpenedStore(path) as one:
        one.insert(seconds=math.inf, **dict(list(FILLED.items())[:60]))
        one.insert(seconds=100.0, **dict(list(FILLED.items())[60:]))
    return path.read_bytes()


def outcome_of_damage(path: Path) -> str:
    """Check that no value is wrong. Returns "right", "missing" if a value is not found, or "refused".

    A value that a damaged index hid may be found again later. It is still right.
    """
    try:
        with OpenedStore(path) as one:
            found = outcomes_of(one, FILLED)
            written = one.insert(**{key: f"new {key}" for key in FILLED}) + one.insert(another="x")
            again = outcomes_of(one, FILLED)
    except CacheError:
        return "refused"
    for key, right, before, after in zip(FILLED, FILLED.values(), found, again, strict=True):
        assert before in {None, right.encode()} or isinstance(before, CacheError)
        assert after in {None, right.encode(), f"new {key}".encode()} or isinstance(after, CacheError)
    if any(isinstance(outcome, CacheError) for outcome in [*found, *written, *again]):
        return "refused"
    return "missing" if None in found else "right"


def outcomes_of(store: OpenedStore, keys: Iterable[str]) -> list[Any]:
    """The value of each key, or the error of looking it up."""
    outcomes = list[Any]()
    for key in keys:
        try:
            outcomes.extend(store.look_up(key))
        except CacheError as error:
            outcomes.append(error)
    return outcomes


def delete_files(path: Path) -> None:
    for each in path.parent.iterdir():
        each.unlink()


@pytest.mark.slow
@FLIPS
def test_flipped_bytes_never_yield_a_wrong_value(path: Path, flips: int) -> None:
    intact, rng, outcomes = fill(path), random.Random(7), set()
    for _ in range(flips):
        damaged = bytearray(intact)
        for _ in range(rng.choice([1, 1, 3, 30])):
            damaged[rng.randrange(len(intact))] ^= rng.randrange(1, 256)
        delete_files(path)
        path.write_bytes(damaged)
        outcomes.add(outcome_of_damage(path))
    assert outcomes == {"right", "missing", "refused"}


@pytest.mark.slow
@FLIPS
def test_flipped_bytes_of_the_schema_never_yield_a_wrong_value(path: Path, flips: int) -> None:
    """The first page has the header and the definitions of the tables."""
    intact, rng, outcomes = fill(path), random.Random(8), set()
    for _ in range(flips):
        damaged = bytearray(intact)
        offset = rng.randrange(100) if rng.random() < 0.5 else rng.randrange(3000, 4096)
        damaged[offset] ^= rng.randrange(1, 256)
        delete_files(path)
        path.write_bytes(damaged)
        outcomes.add(outcome_of_damage(path))
    assert "refused" in outcomes


def test_a_truncated_file_never_yields_a_wrong_value(path: Path) -> None:
    intact, outcomes = fill(path), set()
    for length in range(0, len(intact), 997):
        delete_files(path)
        path.write_bytes(intact[:length])
        outcomes.add(outcome_of_damage(path))
    assert "refused" in outcomes


@pytest.mark.slow
def test_a_damaged_log_never_yields_a_wrong_value(path: Path, tmp_path: Path) -> None:
    with OpenedStore(path) as one:
        one.insert(**FILLED)
        files = {each.name: each.read_bytes() for each in tmp_path.iterdir()}
    name, rng = f"{path.name}-wal", random.Random(9)
    assert len(files[name]) > 10_000
    for _ in range(100):
        damaged = bytearray(files[name])
        damaged[rng.randrange(len(damaged))] ^= rng.randrange(1, 256)
        delete_files(path)
        path.write_bytes(files[path.name])
        (tmp_path / name).write_bytes(damaged)
        outcome_of_damage(path)


def test_damage_to_an_open_file_is_reported_or_the_value_is_missing(path: Path) -> None:
    """Closing the store moves the log into the file, so these values are read from the file."""
    fill(path)
    with OpenedStore(path) as one:
        intact = path.read_bytes()
        path.write_bytes(intact[:4096] + bytes(len(intact) - 4096))
        found = outcomes_of(one, FILLED)
        assert all(value is None or isinstance(value, CacheError) for value in found)
        assert any("is damaged" in str(value) for value in found)


@pytest.mark.parametrize(
    "damage",
    [
        "value = CAST('other' AS BLOB)",
        "value = 'text'",
        "value = 7",
        "expires = 5.0",
        "expires = 'soon'",
        "expires = 7",
        "checksum = 'none'",
        "checksum = x'00'",
        "(value, expires, checksum) = (SELECT value, expires, checksum FROM answers WHERE value = CAST('2' AS BLOB))",
    ],
)
def test_a_row_that_is_changed_or_swapped_is_refused_and_the_others_are_found(
    path: Path, damage: str, clock: Clock
) -> None:
    clock.now = -10.0
    with OpenedStore(path) as one:
        one.insert(seconds=1e6, a="1", b="2")
        damaged = one.store._id(b"a").hex()
    execute(path, "PRAGMA ignore_check_constraints = ON", f"UPDATE answers SET {damage} WHERE id = x'{damaged}'")
    clock.now = -5.0
    with OpenedStore(path) as one:
        error, found = outcomes_of(one, "ab")
        assert isinstance(error, CacheError)
        assert f"{path} is damaged, or not a cache of this project (the checksum of a result is wrong)" in str(error)
        assert found == b"2"


def test_a_row_that_is_removed_or_moved_to_another_key_is_missing_or_refused(path: Path) -> None:
    with OpenedStore(path) as one:
        one.insert(a="1", b="2")
        id_a, id_c = (one.store._id(key).hex() for key in (b"a", b"c"))
        execute(path, f"UPDATE answers SET id = x'{id_c}' WHERE id = x'{id_a}'")
        missing, found, refused = outcomes_of(one, "abc")
        assert (missing, found, type(refused)) == (None, b"2", CacheError)


# Several processes.


READ_AND_WRITE = """
import sys
from trio_asyncio_io.policies._persistent import Insert, Store

path, seed = sys.argv[1], int(sys.argv[2])
store = Store(path, "n")
store.open()
for round_ in range(150):
    keys = [b"%d" % ((seed + round_ * step) % 50) for step in (1, 3, 7)]
    for key, value in zip(keys, store.execute(keys)):
        assert value in (None, b"value of " + key), (key, value)
    assert store.execute([Insert(key, b"value of " + key, 1e6) for key in keys]) == [None] * 3
    assert store.execute(keys) == [b"value of " + key for key in keys]
store.close()
"""


CREATE = """
import sys
import time
from trio_asyncio_io.policies._persistent import Insert, Store

for number in range(int(sys.argv[2])):
    store = Store(f"{sys.argv[1]}/{number}", "n")
    print("ready", flush=True)
    instant = float(sys.stdin.readline())
    while time.time() < instant:
        pass
    store.open()
    assert store.execute([Insert(b"a", b"1", 9.0)]) == [None]
    store.close()
"""


@pytest.mark.processes
def test_several_processes_create_a_file_at_the_same_instant(tmp_path: Path) -> None:
    command = [sys.executable, "-c", CREATE, str(tmp_path), str(ROUNDS)]
    processes = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    for _ in range(ROUNDS):
        assert [process.stdout.readline() for process in processes] == ["ready\n"] * 3
        instant = time.time() + 0.002
        for process in processes:
            process.stdin.write(f"{instant}\n")
            process.stdin.flush()
    for process in processes:
        process.communicate(timeout=PATIENCE)
        assert process.returncode == 0


@pytest.mark.processes
def test_several_processes_use_a_file_at_the_same_time(path: Path) -> None:
    processes = [subprocess.Popen([sys.executable, "-c", READ_AND_WRITE, str(path), str(seed)]) for seed in range(4)]
    assert [process.wait(PATIENCE) for process in processes] == [0, 0, 0, 0]
    with OpenedStore(path) as one:
        found = one.look_up(*map(str, range(50)))
    assert found == [b"value of %d" % number for number in range(50)]
