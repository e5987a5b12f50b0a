"""The persistent cache: what was paid for once is not paid for again, not even after a kill.

Threads work here, so where there is a mock clock it does not jump of its own accord.
"""

from __future__ import annotations

import math
import pickle
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from tests.support import outputs, stable_id
from trio_asyncio_io import AsyncFunction, ordered_wait, unordered_wait
from trio_asyncio_io.policies import CacheError, cached, grouped, persistent, single_flight
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
    """Make garbage of the file from this byte on."""
    content = path.read_bytes() if path.exists() else b""
    path.write_bytes(content[:start] + b"\xaa" * max(10_000, len(content) - start))


class Service:
    """Asked, and answers; keeps what it was asked."""

    def __init__(self, answers: dict[Any, Any] | None = None) -> None:
        self.answers = answers or {}
        self.asked: list[Any] = []

    async def __call__(self, value: Any) -> Any:
        self.asked.append(value)
        await trio.lowlevel.checkpoint()
        answer = self.answers.get(value, f"{value}!")
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def many(self, values: list[Any]) -> list[Any]:
        return [await self(value) for value in values]


async def test_another_run_asks_for_nothing_that_one_has_found(path: Path, nothing_left: NothingLeft) -> None:
    for asked in (["a", "b"], ["c"]):
        service = Service()
        function = persistent(service, path, name="n")
        with nothing_left():
            for _ in range(2):
                out = await outputs(ordered_wait(["a", "b", *asked], function, capacity=1, timeout=math.inf))
                assert out == [f"{value}!" for value in ["a", "b", *asked]]
        assert service.asked == asked
    assert (function.hits, function.misses) == (5, 1)


async def test_a_result_is_in_the_file_before_it_is_returned(path: Path) -> None:
    async with opened(persistent(Service(), path, name="n")) as one:
        for value in range(20):
            assert await one(value) == f"{value}!"
            other = Service()
            async with opened(persistent(other, path, name="n")) as another:
                assert await another(value) == f"{value}!"
            assert other.asked == []


@pytest.mark.parametrize("result", [None, 0, "", {"temp": [1.5, None]}, (1, b"\x00"), math.inf])
async def test_a_result_comes_back_as_it_was(path: Path, result: Any) -> None:
    for _ in range(2):
        async with opened(persistent(Service({"a": result}), path, name="n")) as function:
            assert await function("a") == result


async def test_exceptions_are_not_kept(path: Path) -> None:
    service = Service({"a": OSError("busy")})
    async with opened(persistent(service, path, name="n")) as function:
        for _ in range(2):
            with pytest.raises(OSError, match="busy"):
                await function("a")
    assert service.asked == ["a", "a"]


async def test_keys_of_different_types_are_different_calls(path: Path) -> None:
    service = Service({1: "int or so"})
    async with opened(persistent(service, path, name="n")) as function:
        for value in (1, 1.0, True, "1"):
            await function(value)
    assert [type(value) for value in service.asked] == [int, float, bool, str]


async def test_functions_of_several_columns_have_keys_of_several_values(path: Path) -> None:
    async def product(a: int, b: int) -> int:
        return a * b

    async with opened(persistent(product, path, name="n")) as function:
        assert [await function(a, b) for a, b in [(2, 3), (3, 4), (2, 3)]] == [6, 12, 6]
    assert (function.hits, function.misses) == (1, 2)


async def test_a_key_of_ones_own_decides(path: Path) -> None:
    service = Service()
    async with opened(persistent(service, path, name="n", key=str.lower)) as function:
        assert [await function(value) for value in "aA"] == ["a!", "a!"]


async def test_what_makes_no_key_is_refused_with_a_hint(path: Path) -> None:
    async with opened(persistent(Service(), path, name="n")) as function:
        with pytest.raises(TypeError, match="give persistent key="):
            await function({"code": "a"})


async def test_what_cannot_be_pickled_is_told(path: Path) -> None:
    async with opened(persistent(Service({"a": lambda: None}), path, name="n")) as function:
        with pytest.raises(
            TypeError, match=r"persistent cannot store <function .*Let the function return plain values"
        ):
            await function("a")


async def test_a_result_that_cannot_be_unpickled_any_more_is_asked_for_again(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(persistent(Service({"a": Gone()}), path, name="n")) as function:
        await function("a")
    monkeypatch.delitem(globals(), "Gone")
    service = Service({"a": "new"})
    async with opened(persistent(service, path, name="n")) as function:
        assert [await function("a") for _ in range(2)] == ["new", "new"]
    assert service.asked == ["a"]


class Gone:
    """A result's class, which is renamed later."""


# For how long.


async def test_results_expire_on_the_wall_clock(path: Path) -> None:
    service = Service({"nothing": None})
    function = persistent(service, path, name="n", ttl=100.0, negative_ttl=10.0)
    asked = []
    for now in (1e9, 1e9 + 9.5, 1e9 + 10.0, 1e9 + 99.5, 1e9 + 100.0):
        function._store._clock = lambda now=now: now
        async with opened(function):
            await function("something")
            await function("nothing")
        asked.append("".join(value[0] for value in service.asked))
        service.asked.clear()
    assert asked == ["sn", "", "n", "n", "s"]


async def test_one_may_say_what_is_negative_and_that_it_is_not_kept(path: Path) -> None:
    service = Service({"a": 404, "b": None})
    function = persistent(service, path, name="n", negative_ttl=0, is_negative=lambda result: result == 404)
    async with opened(function):
        for value in "abab":
            await function(value)
    assert service.asked == ["a", "b", "a"]


# Who leaves.


async def test_nothing_is_kept_of_a_call_that_is_cancelled(path: Path, mock_clock: MockClock) -> None:
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


async def test_a_result_that_is_there_is_kept_although_its_caller_is_cancelled(path: Path) -> None:
    scope = trio.CancelScope()

    async def paid(value: str) -> str:
        scope.cancel()
        return value

    async with opened(persistent(paid, path, name="n")) as function:
        with scope:
            assert await function("a") == "a"
        assert await function("a") == "a"
    assert (function.hits, function.misses) == (1, 1)


# Its life.


class Client(AsyncFunction[str, str]):
    def __init__(self, trouble: str = "") -> None:
        self.lines: list[str] = []
        self.trouble = trouble

    async def open(self) -> None:
        self.lines.append("open")
        if self.trouble == "open":
            raise OSError("no service")

    async def invoke(self, value: str) -> str:
        self.lines.append(value)
        return value.upper()

    async def close(self) -> None:
        self.lines.append("close")
        if self.trouble == "close":
            raise OSError("no service")


async def test_the_function_is_opened_and_closed_with_it(path: Path) -> None:
    client = Client()
    assert await outputs(ordered_wait(["a"], persistent(client, path), timeout=math.inf)) == ["A"]
    assert client.lines == ["open", "a", "close"]


@pytest.mark.parametrize("trouble", ["open", "close"])
async def test_the_file_is_closed_whatever_the_function_does(path: Path, trouble: str) -> None:
    function = persistent(Client(trouble), path, name="n")
    with pytest.raises(OSError, match="no service"):
        await outputs(ordered_wait(["a"], function, timeout=math.inf))
    assert not function._store.is_open
    assert [each.name for each in path.parent.iterdir()] == [path.name]


async def test_it_does_not_wait_for_those_who_hold_trios_default_threads(path: Path) -> None:
    limiter = trio.to_thread.current_default_thread_limiter()
    limiter.total_tokens = 1
    try:
        async with limiter:
            assert await outputs(ordered_wait(["a"], persistent(Service(), path, name="n"), timeout=math.inf)) == ["a!"]
    finally:
        limiter.total_tokens = 40


async def test_a_file_that_cannot_be_closed_holds_nobody_up_and_has_its_results(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk hangs. The function is still closed."""
    monkeypatch.setattr("trio_asyncio_io.policies._persistent.policy.CLOSE_SECONDS", 0.05)
    client, hangs = Client(), threading.Event()
    function = persistent(client, path, name="n")
    await function.open()
    assert await function("a") == "A"
    close, function._store.close = function._store.close, hangs.wait
    with pytest.raises(trio.TooSlowError, match=r"the cache file was not closed within 0\.05 s"):
        await function.close()
    monkeypatch.undo()
    assert client.lines == ["open", "a", "close"]
    async with opened(persistent(Client(), path, name="n")) as another:
        assert await another("a") == "A"
        assert another.hits == 1
    hangs.set()
    close()


async def test_closing_takes_no_time_on_a_virtual_clock(path: Path, autojump_clock: MockClock) -> None:
    async with opened(persistent(Service(), path, name="n")) as function:
        assert await function("a") == "a!"
    assert trio.current_time() == 0.0


async def test_it_is_opened_and_closed_by_different_tasks(path: Path) -> None:
    function = persistent(Service(), path, name="n")
    for step in (function.open, partial(function, "a"), function.close):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(step)
    assert not function._store.is_open


async def test_it_can_be_opened_again(path: Path) -> None:
    function = persistent(Service(), path, name="n")
    for _ in range(3):
        async with opened(function):
            assert await function("a") == "a!"
    assert (function.hits, function.misses) == (2, 1)


async def test_without_being_opened_it_says_so(path: Path) -> None:
    with pytest.raises(RuntimeError, match="is not open: an operator opens it; by hand"):
        await persistent(Service(), path, name="n")("a")


async def test_a_file_that_is_no_cache_stops_the_operator_before_the_first_call(path: Path) -> None:
    damage(path, 0)
    client = Client()
    with pytest.raises(CacheError, match="delete it"):
        await outputs(ordered_wait(["a"], persistent(client, path), timeout=math.inf))
    assert client.lines == []


def test_a_cache_error_can_be_told_from_those_of_the_service() -> None:
    assert issubclass(CacheError, RuntimeError)


async def test_damage_found_later_is_each_elements_own_error(path: Path) -> None:
    async with opened(persistent(Service(), path, name="n")) as function:
        for value in range(500):
            await function(value)
    errors = []

    async def keep(value: int, error: Exception) -> None:
        errors.append(error)

    async with unordered_wait(
        range(500), persistent(Service(), path, name="n"), timeout=math.inf, on_error=keep
    ) as results:
        damage(path, 4096)
        out = [result async for result in results]
    assert len(out) == 500
    assert errors
    assert {type(error) for error in errors} == {CacheError}
    assert len({id(error) for error in errors}) == len(errors)


# What it is made of.


async def upper(value: str) -> str:
    return value.upper()


async def many(values: list[str]) -> list[str]:
    return values


class Named:
    async def invoke(self, value: str) -> str:
        return value


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (upper, f"{__name__}.upper"),
        (cached(single_flight(upper)), f"{__name__}.upper"),
        (grouped(many), f"{__name__}.many"),
        (Client(), f"{__name__}.Client"),
        (Named(), f"{__name__}.Named"),
    ],
    ids=stable_id,
)
def test_its_name_is_the_functions(path: Path, function: Any, name: str) -> None:
    assert persistent(function, path)._options["name"] == name


@pytest.mark.parametrize(
    "function", [lambda value: value, partial(upper), Service(), Service().__call__], ids=stable_id
)
def test_what_has_no_name_of_its_own_needs_one(path: Path, function: Any) -> None:
    with pytest.raises(
        TypeError, match=r"name must be given for .*nothing in the file would distinguish it from others"
    ):
        persistent(function, path)


async def test_a_closure_needs_a_name(path: Path) -> None:
    async def fetch(value: str) -> str:
        return f"{path}{value}"

    with pytest.raises(TypeError, match="name must be given"):
        persistent(fetch, path)


async def test_it_pickles_as_what_it_was_made_of_even_while_it_is_open(path: Path) -> None:
    options = {"name": "n", "ttl": 5.0, "negative_ttl": 2.0, "is_negative": str.isupper, "key": str.lower}
    async with opened(persistent(upper, path, **options)) as function:
        copy = pickle.loads(pickle.dumps(function))
    assert copy._options == {"path": str(path), **options}
    assert not copy._store.is_open


@pytest.mark.parametrize(
    ("keywords", "error", "message"),
    [
        ({"path": 3}, TypeError, "path must be a file's path, got 3"),
        ({"path": b"x"}, TypeError, "path must be a file's path, got b'x'"),
        ({"path": ":memory:"}, ValueError, "path must be a file's path, got ':memory:'"),
        ({"path": ""}, ValueError, "path must be a file's path, got ''"),
        ({"name": 3}, TypeError, "name must be a string, got 3"),
        ({"name": ""}, ValueError, "name must not be empty, got ''"),
        ({"name": "\ud800"}, ValueError, r"name must be text that UTF-8 can encode, got '\\ud800'"),
        ({"ttl": 0}, ValueError, "^ttl must be seconds above 0, got 0"),
        ({"negative_ttl": -1}, ValueError, "negative_ttl must be seconds, not negative and not NaN, got -1"),
        ({"is_negative": 3}, TypeError, "is_negative must be callable, got 3"),
    ],
)
def test_wrong_arguments_are_refused(keywords: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        persistent(upper, **{"path": "x", **keywords})


# In company.


async def test_around_groups_only_what_is_not_in_the_file_is_sent(path: Path) -> None:
    service = Service()
    for values in (range(4), range(8)):
        function = persistent(grouped(service.many, size=10, age=0.005), path, name="n")
        assert await outputs(ordered_wait(values, function, timeout=math.inf)) == [f"{value}!" for value in values]
    assert sorted(service.asked) == [*range(8)]
    assert (function.function.calls, function.function.sent) == (1, 4)


async def test_a_flush_waits_for_those_who_are_looking_into_the_file(path: Path) -> None:
    """They come to the group later, and with no age the group would wait for ever."""
    service = Service()
    function = persistent(single_flight(grouped(service.many, age=math.inf)), path, name="n")
    async with opened(function), trio.open_nursery() as nursery:
        for value in "ab":
            nursery.start_soon(function, value)
        while not function._pending:
            await trio.lowlevel.checkpoint()
        function.flush()
    assert sorted(service.asked) == ["a", "b"]


async def test_a_flush_with_nobody_looking_is_passed_on(path: Path) -> None:
    service = Service()
    function = persistent(grouped(service.many, age=math.inf), path, name="n")
    async with opened(function), trio.open_nursery() as nursery:
        nursery.start_soon(function, "a")
        while not function.function._open_group:
            await trio.lowlevel.checkpoint()
        function.flush()
    assert service.asked == ["a"]


def test_without_a_function_that_has_one_there_is_no_flush(path: Path) -> None:
    assert not hasattr(persistent(upper, path), "flush")


async def test_a_cache_in_memory_and_shared_flights_go_around_it(path: Path) -> None:
    service = Service()
    function = cached(single_flight(persistent(service, path, name="n")))
    assert await outputs(ordered_wait("abab" * 10, function, capacity=9, timeout=math.inf)) == ["a!", "b!"] * 20
    assert sorted(service.asked) == ["a", "b"]


# Real processes.


JOB = """
import sys
import trio
from trio_asyncio_io import unordered_wait
from trio_asyncio_io.policies import persistent

path, count, mark = sys.argv[1], int(sys.argv[2]), sys.argv[3]


async def pay(number):
    print("paid", number, flush=True)
    await trio.sleep(0.002)
    return f"{number} from {mark}"


async def main():
    async with unordered_wait(range(count), persistent(pay, path), capacity=20, timeout=60.0) as results:
        async for result in results:
            print("returned", result.split()[0], flush=True)


trio.run(main)
"""


def numbers(lines: list[str], word: str) -> set[int]:
    return {int(line.split()[1]) for line in lines if line.startswith(f"{word} ") and line.endswith("\n")}


def test_a_killed_job_pays_for_nothing_twice_that_had_returned(path: Path) -> None:
    """Nor for more than what was under way when it was killed."""
    returned: set[int] = set()
    command = [sys.executable, "-c", JOB, str(path), "400"]
    for kill_after in (30, 60, 90):
        with subprocess.Popen([*command, f"run-{kill_after}"], stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            lines = []
            while len(numbers(lines, "returned") - returned) < kill_after:
                lines.append(process.stdout.readline())
            process.send_signal(signal.SIGKILL)
            lines += process.stdout.readlines()
        assert process.returncode == -signal.SIGKILL
        assert numbers(lines, "paid") & returned == set()
        returned |= numbers(lines, "returned")
    last = subprocess.run([*command, "last"], capture_output=True, text=True, check=True)
    lines = last.stdout.splitlines(keepends=True)
    assert numbers(lines, "returned") == set(range(400))
    assert numbers(lines, "paid") & returned == set()
    assert len(numbers(lines, "paid")) <= 400 - len(returned)


def test_several_jobs_share_a_file_at_once(path: Path) -> None:
    command = [sys.executable, "-c", JOB, str(path), "300"]
    processes = [subprocess.Popen([*command, str(number)], stdout=subprocess.PIPE, text=True) for number in range(3)]
    for process in processes:
        out, _ = process.communicate(timeout=100)
        assert process.returncode == 0
        assert numbers(out.splitlines(keepends=True), "returned") == set(range(300))
    again = subprocess.run([*command, "again"], capture_output=True, text=True, check=True)
    assert "paid" not in again.stdout
