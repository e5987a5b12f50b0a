"""The store: what is kept, for how long, by how many at once, and what becomes of damage."""

from __future__ import annotations

import math
import random
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Self

import pytest

from tests.support import PATIENCE
from trio_asyncio_io.policies import CacheError
from trio_asyncio_io.policies._persistent.store import FORMAT, Insert, Lookup, Store

FLIPS = 300
ROUNDS = 80


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "cache.sqlite"


class Opened:
    """A store for the length of a block, at an instant."""

    def __init__(self, path: Path, now: float = 0.0, name: str = "n") -> None:
        self.now = now
        self.store = Store(str(path), name, lambda: self.now)

    def __enter__(self) -> Self:
        self.store.open()
        return self

    def __exit__(self, *_: object) -> None:
        self.store.close()

    def find(self, *keys: str) -> list[Any]:
        return self.store.execute([Lookup(key.encode()) for key in keys])

    def keep(self, seconds: float = math.inf, **values: str) -> list[Any]:
        return self.store.execute([Insert(key.encode(), value.encode(), seconds) for key, value in values.items()])


def test_what_is_kept_is_found_after_reopening(path: Path) -> None:
    with Opened(path) as one:
        assert one.keep(a="1", b="2") == [None, None]
        assert one.find("a", "c") == [b"1", None]
    with Opened(path) as another:
        assert another.find("c", "b", "a") == [None, b"2", b"1"]


def test_orders_and_questions_are_answered_together(path: Path) -> None:
    with Opened(path) as one:
        assert one.store.execute([Lookup(b"a"), Insert(b"a", b"1", 9.0), Lookup(b"b")]) == [b"1", None, None]
        assert one.store.execute([]) == []


def test_a_value_is_replaced(path: Path) -> None:
    with Opened(path) as one:
        one.keep(a="1")
        one.keep(a="2")
        assert one.find("a") == [b"2"]


def test_names_are_apart(path: Path) -> None:
    with Opened(path, name="one") as one, Opened(path, name="two") as two:
        one.keep(a="1")
        assert two.find("a") == [None]


def test_a_value_is_good_until_it_expires(path: Path) -> None:
    with Opened(path) as one:
        one.keep(seconds=10.0, a="1")
        one.now = 9.75
        assert one.find("a") == [b"1"]
        one.now = 10.0
        assert one.find("a") == [None]


def test_what_has_expired_is_dropped_at_the_next_opening(path: Path) -> None:
    with Opened(path) as one:
        one.keep(seconds=10.0, a="1")
        one.keep(seconds=20.0, b="2")
        one.keep(c="3")
    with Opened(path, now=15.0):
        assert rows(path) == 2
    with Opened(path, now=1e12):
        assert rows(path) == 1


def rows(path: Path) -> int:
    connection = sqlite3.connect(path)
    (count,) = connection.execute("SELECT count(*) FROM answers").fetchone()
    connection.close()
    return int(count)


def changed(path: Path, *statements: str) -> None:
    connection = sqlite3.connect(path, isolation_level=None)
    for statement in statements:
        connection.execute(statement)
    connection.close()


# Files that are no cache.


def refused(path: Path) -> str:
    with pytest.raises(CacheError) as caught, Opened(path):
        pass
    assert str(path) in str(caught.value)
    return str(caught.value)


def test_a_directory_that_is_not_there_is_named(path: Path) -> None:
    assert "make its directory first" in refused(path / "deeper" / "cache.sqlite")


def test_a_directory_is_no_file(tmp_path: Path) -> None:
    assert "cannot be used" in refused(tmp_path)


def test_garbage_is_refused(path: Path) -> None:
    path.write_bytes(random.Random(1).randbytes(10_000))
    assert "is damaged, or not a cache of this project (file is not a database): delete it" in refused(path)


def test_a_database_of_something_else_is_refused_and_left_alone(path: Path) -> None:
    changed(path, "CREATE TABLE accounts (a)")
    before = path.read_bytes()
    assert "is a database, but not a cache of this project: give another path" in refused(path)
    assert path.read_bytes() == before


def test_a_newer_version_is_refused(path: Path) -> None:
    with Opened(path):
        pass
    changed(path, f"PRAGMA user_version = {FORMAT.version + 1}")
    assert f"is of version {FORMAT.version + 1}, and this release reads version {FORMAT.version}" in refused(path)


def test_an_empty_file_becomes_a_cache(path: Path) -> None:
    path.touch()
    with Opened(path) as one:
        one.keep(a="1")
        assert one.find("a") == [b"1"]


@pytest.mark.parametrize("content", [b"S", b"x", b"\x00", b"SQLite format 3", b"SQLite format 3\x00"])
def test_a_file_of_a_few_bytes_is_refused_and_left_as_it_is(path: Path, content: bytes) -> None:
    """SQLite takes a file of one byte for an empty one."""
    path.write_bytes(content)
    assert "is damaged, or not a cache of this project" in refused(path)
    assert path.read_bytes() == content


def test_a_file_locked_for_long_is_told(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trio_asyncio_io._sqlite.BUSY_SECONDS", 0.05)
    with Opened(path) as one:
        one.keep(a="1")
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        question, order = one.store.execute([Lookup(b"a"), Insert(b"b", b"2", 1.0)])
        assert question == b"1"
        assert "was locked by another process" in str(order)
        other.close()
        assert one.keep(b="2") == [None]


# Damage.


FILLED = {f"k{number}": f"value {number} " * (number % 40) for number in range(120)}


def filled(path: Path) -> bytes:
    with Opened(path) as one:
        one.keep(seconds=math.inf, **dict(list(FILLED.items())[:60]))
        one.keep(seconds=100.0, **dict(list(FILLED.items())[60:]))
    return path.read_bytes()


def check_that_nothing_is_wrong(path: Path) -> str:
    """Whether all is right, some is missing, or the file is refused; anything else fails.

    What a damaged index hid may come to light again: it was right, and still is.
    """
    try:
        with Opened(path) as one:
            found = one.find(*FILLED)
            written = one.keep(**{key: f"new {key}" for key in FILLED}) + one.keep(another="x")
            again = one.find(*FILLED)
    except CacheError:
        return "refused"
    for key, right, value, later in zip(FILLED, FILLED.values(), found, again, strict=True):
        assert value in {None, right.encode()} or isinstance(value, CacheError)
        assert later in {None, right.encode(), f"new {key}".encode()} or isinstance(later, CacheError)
    if any(isinstance(each, CacheError) for each in [*found, *written, *again]):
        return "refused"
    return "missing" if None in found else "right"


def emptied(path: Path) -> None:
    for each in path.parent.iterdir():
        each.unlink()


def test_flipped_bytes_are_never_a_wrong_answer(path: Path) -> None:
    whole, chance, seen = filled(path), random.Random(7), set()
    for _ in range(FLIPS):
        damaged = bytearray(whole)
        for _ in range(chance.choice([1, 1, 3, 30])):
            damaged[chance.randrange(len(whole))] ^= chance.randrange(1, 256)
        emptied(path)
        path.write_bytes(damaged)
        seen.add(check_that_nothing_is_wrong(path))
    assert seen == {"right", "missing", "refused"}


def test_flipped_bytes_of_the_schema_are_never_a_wrong_answer(path: Path) -> None:
    """The first page has the header and the tables' definitions."""
    whole, chance, seen = filled(path), random.Random(8), set()
    for _ in range(FLIPS):
        damaged = bytearray(whole)
        offset = chance.randrange(100) if chance.random() < 0.5 else chance.randrange(3000, 4096)
        damaged[offset] ^= chance.randrange(1, 256)
        emptied(path)
        path.write_bytes(damaged)
        seen.add(check_that_nothing_is_wrong(path))
    assert "refused" in seen


def test_a_truncated_file_is_never_a_wrong_answer(path: Path) -> None:
    whole, seen = filled(path), set()
    for length in range(0, len(whole), 997):
        emptied(path)
        path.write_bytes(whole[:length])
        seen.add(check_that_nothing_is_wrong(path))
    assert "refused" in seen


def test_a_damaged_log_is_never_a_wrong_answer(path: Path, tmp_path: Path) -> None:
    with Opened(path) as one:
        one.keep(**FILLED)
        files = {each.name: each.read_bytes() for each in tmp_path.iterdir()}
    name, chance = f"{path.name}-wal", random.Random(9)
    assert len(files[name]) > 10_000
    for _ in range(100):
        damaged = bytearray(files[name])
        damaged[chance.randrange(len(damaged))] ^= chance.randrange(1, 256)
        emptied(path)
        path.write_bytes(files[path.name])
        (tmp_path / name).write_bytes(damaged)
        check_that_nothing_is_wrong(path)


def test_damage_done_while_it_is_open_is_told_or_missing(path: Path) -> None:
    """The log is folded into the file first, so that this is read from the file."""
    filled(path)
    with Opened(path) as one:
        whole = path.read_bytes()
        path.write_bytes(whole[:4096] + bytes(len(whole) - 4096))
        found = one.find(*FILLED)
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
        "id = x'00'",
    ],
)
def test_a_row_whose_checksum_is_wrong_is_missing_and_replaced(path: Path, damage: str) -> None:
    with Opened(path, now=-10.0) as one:
        one.keep(seconds=1e6, a="1")
    changed(path, "PRAGMA ignore_check_constraints = ON", f"UPDATE answers SET {damage}")
    with Opened(path, now=-5.0) as one:
        assert one.find("a") == [None]
        one.keep(a="2")
        assert one.find("a") == [b"2"]


def test_a_row_of_another_key_is_no_answer(path: Path) -> None:
    with Opened(path) as one:
        one.keep(a="1")
        stolen = one.store._id(b"b")
        changed(path, f"UPDATE answers SET id = x'{stolen.hex()}'")
        assert one.find("b") == [None]


# Several processes.


HAMMER = """
import sys
from trio_asyncio_io.policies._persistent.store import Insert, Lookup, Store

path, seed = sys.argv[1], int(sys.argv[2])
store = Store(path, "n")
store.open()
for turn in range(150):
    keys = [b"%d" % ((seed + turn * step) % 50) for step in (1, 3, 7)]
    for key, value in zip(keys, store.execute([Lookup(key) for key in keys])):
        assert value in (None, b"value of " + key), (key, value)
    assert store.execute([Insert(key, b"value of " + key, 1e6) for key in keys]) == [None] * 3
    assert store.execute([Lookup(key) for key in keys]) == [b"value of " + key for key in keys]
store.close()
"""


MAKE = """
import sys
import time
from trio_asyncio_io.policies._persistent.store import Insert, Store

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


def test_several_processes_make_a_file_at_the_same_instant(tmp_path: Path) -> None:
    command = [sys.executable, "-c", MAKE, str(tmp_path), str(ROUNDS)]
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


def test_several_processes_use_a_file_at_once(path: Path) -> None:
    processes = [subprocess.Popen([sys.executable, "-c", HAMMER, str(path), str(seed)]) for seed in range(4)]
    assert [process.wait(PATIENCE) for process in processes] == [0, 0, 0, 0]
    with Opened(path) as one:
        found = one.find(*map(str, range(50)))
    assert found == [b"value of %d" % number for number in range(50)]
