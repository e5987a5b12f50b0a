"""persistent: a result is in the file before it is returned, and no later run calls for it again.

The file is used in threads, so a mock clock must not jump by itself.
"""

from __future__ import annotations

import math
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, asynccontextmanager
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from tests.support import PATIENCE, outputs
from trio_asyncio_io import AsyncFunction, ordered_wait, unordered_wait
from trio_asyncio_io.policies import CacheError, persistent
from trio_asyncio_io.policies._persistent import Insert, Store, stable_key
from trio_asyncio_io.testing import Recorder, Scripted, Step

NothingLeft = Callable[[], AbstractContextManager[None]]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "cache.sqlite"


@asynccontextmanager
async def opened(function: Any) -> Any:
    await function.open()
    try:
        yield function
    finally:
        await function.close()


def damage(path: Path, start: int) -> None:
    """Overwrite the file from this byte on."""
    content = path.read_bytes() if path.exists() else b""
    path.write_bytes(content[:start] + b"\xaa" * max(10_000, len(content) - start))


class Service:
    """A function with fixed results that records its calls."""

    def __init__(self, results: dict[Any, Any] | None = None) -> None:
        self.results = results or {}
        self.calls: list[Any] = []

    async def __call__(self, value: Any) -> Any:
        self.calls.append(value)
        await trio.lowlevel.checkpoint()
        result = self.results.get(value, f"{value}!")
        if isinstance(result, Exception):
            raise result
        return result

    async def many(self, values: list[Any]) -> list[Any]:
        return [await self(value) for value in values]


async def test_a_later_run_calls_only_for_new_values(path: Path, nothing_left: NothingLeft) -> None:
    for new in (["a", "b"], ["c"]):
        service = Service()
        function = persistent(service, path, name="n")
        with nothing_left():
            for _ in range(2):
                out = await outputs(ordered_wait(["a", "b", *new], function, capacity=1, timeout=math.inf))
                assert out == [f"{value}!" for value in ["a", "b", *new]]
        assert service.calls == new
    assert (function.hits, function.misses) == (5, 1)


async def test_a_result_is_in_the_file_before_it_is_returned(path: Path) -> None:
    async with opened(persistent(Service(), path, name="n")) as one:
        for value in range(20):
            assert await one(value) == f"{value}!"
            other = Service()
            async with opened(persistent(other, path, name="n")) as another:
                assert await another(value) == f"{value}!"
            assert other.calls == []


@pytest.mark.parametrize("result", [None, 0, "", {"temp": [1.5, None]}, (1, b"\x00"), math.inf])
async def test_a_result_is_loaded_unchanged(path: Path, result: Any) -> None:
    for _ in range(2):
        async with opened(persistent(Service({"a": result}), path, name="n")) as function:
            assert await function("a") == result


async def test_exceptions_are_not_cached(path: Path) -> None:
    service = Service({"a": OSError("busy")})
    async with opened(persistent(service, path, name="n")) as function:
        for _ in range(2):
            with pytest.raises(OSError, match="busy"):
                await function("a")
    assert service.calls == ["a", "a"]


async def test_the_key_decides_which_calls_are_the_same(path: Path) -> None:
    service = Service()
    async with opened(persistent(service, path, name="n", key=str.lower)) as function:
        assert [await function(value) for value in "aA"] == ["a!", "a!"]


async def test_arguments_without_a_stable_key_are_refused_and_the_error_names_key(path: Path) -> None:
    async with opened(persistent(Service(), path, name="n")) as function:
        with pytest.raises(TypeError, match="give persistent key="):
            await function({"code": "a"})


async def test_a_result_that_cannot_be_stored_is_refused_with_its_place(path: Path) -> None:
    service = Service({"a": {"temp": [1.5, lambda: None]}})
    async with opened(persistent(service, path, name="n")) as function:
        with pytest.raises(TypeError, match=r"^result\['temp'\]\[1\] is <function .* convert it to plain values"):
            await function("a")


@pytest.mark.parametrize("payload", [b'{"$ZoneInfo":"Nowhere/Land"}', pickle.dumps("old")], ids=["zone", "pickle"])
async def test_a_result_that_cannot_be_read_is_fetched_again(path: Path, payload: bytes) -> None:
    store = Store(str(path), "n")
    store.open()
    assert store.execute([Insert(stable_key(("a",)), payload, math.inf)]) == [None]
    store.close()
    service = Service({"a": "new"})
    async with opened(persistent(service, path, name="n")) as function:
        assert [await function("a") for _ in range(2)] == ["new", "new"]
    assert service.calls == ["a"]


# Expiry.


async def test_results_expire_on_the_wall_clock(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    service = Service({"nothing": None})
    function = persistent(service, path, name="n", ttl=100.0, negative_ttl=10.0)
    misses = []
    for now in (1e9, 1e9 + 9.5, 1e9 + 10.0, 1e9 + 99.5, 1e9 + 100.0):
        clock = SimpleNamespace(time=lambda now=now: now)
        monkeypatch.setattr("trio_asyncio_io.policies._persistent.time", clock)
        async with opened(function):
            await function("something")
            await function("nothing")
        misses.append("".join(value[0] for value in service.calls))
        service.calls.clear()
    assert misses == ["sn", "", "n", "n", "s"]


async def test_with_a_negative_ttl_of_zero_negative_results_are_not_cached(path: Path) -> None:
    service = Service({"a": 404, "b": None})
    function = persistent(service, path, name="n", negative_ttl=0, is_negative=lambda result: result == 404)
    async with opened(function):
        for value in "abab":
            await function(value)
    assert service.calls == ["a", "b", "a"]


# Cancellation.


async def test_the_result_of_a_cancelled_call_is_not_cached(path: Path, mock_clock: MockClock) -> None:
    recorder = Recorder(Scripted({"a": [Step(math.inf), Step()]}))
    async with opened(persistent(recorder, path, name="n")) as function:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(function, "a")
            while not recorder.running:
                await wait_all_tasks_blocked(0.001)
                await trio.to_thread.run_sync(lambda: None)
            nursery.cancel_scope.cancel()
        assert recorder.cancelled == 1
        assert await function("a") == "a"
    assert len(recorder.calls) == 2


async def test_a_returned_result_is_cached_although_its_caller_is_cancelled(path: Path) -> None:
    scope = trio.CancelScope()

    async def cancelled_at_the_end(value: str) -> str:
        scope.cancel()
        return value

    async with opened(persistent(cancelled_at_the_end, path, name="n")) as function:
        with scope:
            assert await function("a") == "a"
        assert await function("a") == "a"
    assert (function.hits, function.misses) == (1, 1)


# Opening and closing.


class Client(AsyncFunction[str, str]):
    def __init__(self, fails_in: str = "") -> None:
        self.lines: list[str] = []
        self.fails_in = fails_in

    async def open(self) -> None:
        self.lines.append("open")
        if self.fails_in == "open":
            raise OSError("no service")

    async def invoke(self, value: str) -> str:
        self.lines.append(value)
        return value.upper()

    async def close(self) -> None:
        self.lines.append("close")
        if self.fails_in == "close":
            raise OSError("no service")


async def test_the_function_is_opened_and_closed_with_the_policy(path: Path) -> None:
    client = Client()
    assert await outputs(ordered_wait(["a"], persistent(client, path, name="n"), timeout=math.inf)) == ["A"]
    assert client.lines == ["open", "a", "close"]


@pytest.mark.parametrize("fails_in", ["open", "close"])
async def test_the_file_is_closed_if_the_function_fails_to_open_or_close(path: Path, fails_in: str) -> None:
    function = persistent(Client(fails_in), path, name="n")
    with pytest.raises(OSError, match="no service"):
        await outputs(ordered_wait(["a"], function, timeout=math.inf))
    assert function._store._database._connection is None
    assert [file.name for file in path.parent.iterdir()] == [path.name]


async def test_it_does_not_use_trios_default_thread_limiter(path: Path) -> None:
    limiter = trio.to_thread.current_default_thread_limiter()
    limiter.total_tokens = 1
    try:
        async with limiter:
            assert await outputs(ordered_wait(["a"], persistent(Service(), path, name="n"), timeout=math.inf)) == ["a!"]
    finally:
        limiter.total_tokens = 40


async def test_closing_takes_no_virtual_time(path: Path, autojump_clock: MockClock) -> None:
    async with opened(persistent(Service(), path, name="n")) as function:
        assert await function("a") == "a!"
    assert trio.current_time() == 0.0


async def test_different_tasks_may_open_and_close_it(path: Path) -> None:
    function = persistent(Service(), path, name="n")
    for step in (function.open, partial(function, "a"), function.close):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(step)
    assert function._store._database._connection is None


async def test_it_can_be_opened_again(path: Path) -> None:
    function = persistent(Service(), path, name="n")
    for _ in range(3):
        async with opened(function):
            assert await function("a") == "a!"
    assert (function.hits, function.misses) == (2, 1)


async def test_calling_it_while_it_is_not_open_is_refused(path: Path) -> None:
    with pytest.raises(RuntimeError, match="is not open: an operator opens it; by hand"):
        await persistent(Service(), path, name="n")("a")


async def test_a_damaged_file_stops_the_operator_before_the_first_call(path: Path) -> None:
    damage(path, 0)
    client = Client()
    with pytest.raises(CacheError, match="delete it"):
        await outputs(ordered_wait(["a"], persistent(client, path, name="n"), timeout=math.inf))
    assert client.lines == []


async def test_damage_to_an_open_file_fails_each_element_with_its_own_error(path: Path) -> None:
    async with opened(persistent(Service(), path, name="n")) as function:
        for value in range(500):
            await function(value)
    errors = []

    async def on_error(value: int, error: Exception) -> None:
        errors.append(error)

    async with unordered_wait(
        range(500), persistent(Service(), path, name="n"), timeout=math.inf, on_error=on_error
    ) as results:
        damage(path, 4096)
        out = [result async for result in results]
    assert len(out) == 500
    assert errors
    assert {type(error) for error in errors} == {CacheError}
    assert len({id(error) for error in errors}) == len(errors)


# Names, keys and options.


async def upper(value: str) -> str:
    return value.upper()


async def many(values: list[str]) -> list[str]:
    return values


async def test_an_open_policy_pickles_as_its_function_and_options(path: Path) -> None:
    options: dict[str, Any] = {"name": "n", "ttl": 5.0, "negative_ttl": 2.0, "is_negative": str.isupper}
    options |= {"key": str.lower}
    async with opened(persistent(upper, path, **options)) as function:
        copy = pickle.loads(pickle.dumps(function))
    assert copy._options == {"path": str(path), **options}
    assert copy._group_commit is None


@pytest.mark.parametrize(
    ("keywords", "error", "message"),
    [
        ({"path": ":memory:"}, ValueError, "path must be a file's path, got ':memory:'"),
        ({"name": ""}, ValueError, "name must not be empty, got ''"),
        ({"ttl": 0}, ValueError, "^ttl must be seconds above 0, got 0"),
        ({"negative_ttl": -1}, ValueError, "negative_ttl must be seconds, not negative and not NaN, got -1"),
        ({"is_negative": 3}, TypeError, "is_negative must be callable, got 3"),
    ],
)
def test_an_illegal_argument_is_refused(keywords: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        persistent(upper, **{"path": "x", "name": "n", **keywords})


# Processes.


JOB = """
import sys
import trio
from trio_asyncio_io import unordered_wait
from trio_asyncio_io.policies import persistent

path, count, mark, calls_that_end = sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
called = 0


async def call(number):
    global called
    called += 1
    print("called", number, flush=True)
    await trio.sleep(0.002 if called <= calls_that_end else float("inf"))
    return f"{number} from {mark}"


async def main():
    stored = persistent(call, path, name="n")
    async with unordered_wait(range(count), stored, capacity=20, timeout=float("inf")) as results:
        async for result in results:
            print("returned", result.split()[0], flush=True)


trio.run(main)
"""


def numbers(lines: list[str], word: str) -> set[int]:
    return {int(line.split()[1]) for line in lines if line.startswith(f"{word} ") and line.endswith("\n")}


@pytest.mark.processes
def test_a_killed_job_repeats_no_call_that_had_returned(path: Path) -> None:
    """It repeats at most the calls that were in flight when it was killed."""
    returned: set[int] = set()
    command = [sys.executable, "-c", JOB, str(path), "400"]
    for kill_after in (30, 60, 90):
        options = [f"run-{kill_after}", str(kill_after + 20)]  # it cannot end before it is killed
        with subprocess.Popen([*command, *options], stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            lines = []
            while len(numbers(lines, "returned") - returned) < kill_after:
                lines.append(process.stdout.readline())
            process.send_signal(signal.SIGKILL)
            lines += process.stdout.readlines()
        assert process.returncode == -signal.SIGKILL
        assert numbers(lines, "called") & returned == set()
        returned |= numbers(lines, "returned")
    last = subprocess.run([*command, "last", "400"], capture_output=True, text=True, check=True)
    lines = last.stdout.splitlines(keepends=True)
    assert numbers(lines, "returned") == set(range(400))
    assert numbers(lines, "called") & returned == set()
    assert len(numbers(lines, "called")) <= 400 - len(returned)


@pytest.mark.processes
def test_several_jobs_share_a_file_at_the_same_time(path: Path) -> None:
    command = [sys.executable, "-c", JOB, str(path), "300"]
    processes = [
        subprocess.Popen([*command, str(number), "300"], stdout=subprocess.PIPE, text=True) for number in range(3)
    ]
    for process in processes:
        out, _ = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0
        assert numbers(out.splitlines(keepends=True), "returned") == set(range(300))
    again = subprocess.run([*command, "again", "300"], capture_output=True, text=True, check=True)
    assert "called" not in again.stdout
