"""Default names: that of the user's own function, and an error if two functions could share it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial, update_wrapper, wraps
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.support import stable_id
from trio_asyncio_io import AsyncFunction, ordered_wait
from trio_asyncio_io.adapters import from_asyncio, from_callback, from_future, in_thread
from trio_asyncio_io.gates import RateLimit
from trio_asyncio_io.policies import cached, gated, persistent, single_flight
from trio_asyncio_io.policies._persistent.policy import default_name
from trio_asyncio_io.testing import Recorder, Scripted


async def country(ip: str) -> str:
    return f"country of {ip}"


async def weather(ip: str) -> str:
    return f"weather of {ip}"


def blocking_country(ip: str) -> str:
    return f"country of {ip}"


def blocking_weather(ip: str) -> str:
    return f"weather of {ip}"


def future(function: Callable[[str], str]) -> Callable[[str], Future[str]]:
    def submit(ip: str) -> Future[str]:
        done: Future[str] = Future()
        done.set_result(function(ip))
        return done

    return submit


class Lookup(AsyncFunction[str, str]):
    """Has attributes that change while it runs, and that do not belong to its name."""

    default = "country"

    def __init__(self) -> None:
        self.calls = 0
        self.seen: list[str] = []
        self.client = None

    async def invoke(self, ip: str) -> str:
        return f"{self.default} of {ip}"

    async def look_up(self, ip: str) -> str:
        return await self.invoke(ip)

    @staticmethod
    async def static(ip: str) -> str:
        return ip

    @classmethod
    async def of_class(cls, ip: str) -> str:
        return ip


@single_flight
async def decorated(ip: str) -> str:
    return ip


def with_prefix(prefix: str) -> Any:
    def decorate(function: Any) -> Any:
        @wraps(function)
        async def prefixed(ip: str) -> Any:
            return await function(prefix + ip)

        return prefixed

    return decorate


class Decorator:
    def __init__(self, function: Any) -> None:
        self._function = function
        update_wrapper(self, function)

    async def __call__(self, ip: str) -> Any:
        return await self._function(ip)


HERE = f"{__name__}."


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (country, HERE + "country"),
        (Lookup.static, HERE + "Lookup.static"),
        (decorated, HERE + "decorated"),
        (from_asyncio(country), HERE + "country"),
        (in_thread(blocking_country), HERE + "blocking_country"),
        (from_future(blocking_country), HERE + "blocking_country"),
        (from_callback(blocking_country), HERE + "blocking_country"),
        (Recorder(country), HERE + "country"),
        (cached(Recorder(single_flight(gated(from_asyncio(country), RateLimit(5.0))))), HERE + "country"),
    ],
    ids=stable_id,
)
def test_the_name_is_that_of_the_users_own_function(function: Any, name: str) -> None:
    assert default_name(function) == name


@dataclass(frozen=True)
class Configured:
    prefix: str

    async def invoke(self, ip: str) -> str:
        return self.prefix + ip


class Pair(NamedTuple):
    prefix: str

    async def invoke(self, ip: str) -> str:
        return self.prefix + ip


class CallableObject:
    async def __call__(self, ip: str) -> str:
        return ip


def configured_later(default: str) -> Lookup:
    lookup = Lookup()
    lookup.default = default
    return lookup


def class_made_at_run_time(prefix: str) -> Any:
    async def invoke(self: Any, ip: str) -> str:
        return prefix + ip

    return type("Lookup", (), {"invoke": invoke, "__module__": __name__})


FUNCTIONS_OF_ONE_NAME: dict[str, Callable[[str], Any]] = {
    "lambda": lambda prefix: lambda ip: country(prefix + ip),
    "closure with the name of another function": lambda prefix: with_prefix(prefix)(country),
    "partial": lambda prefix: partial(decorated.function, prefix),
    "partial with the name of another function": lambda prefix: update_wrapper(partial(country, prefix), country),
    "bound method": lambda prefix: configured_later(prefix).look_up,
    "method of a class": lambda _: Lookup.of_class,
    "named tuple": Pair,
    "object": Configured,
    "object of a class made at run time": lambda prefix: class_made_at_run_time(prefix)(),
    "callable object": lambda _: CallableObject(),
    "scripted function": lambda _: Scripted(),
    "object with the name of another function": lambda prefix: Decorator(with_prefix(prefix)(country)),
    "method of a built-in type": lambda prefix: prefix.upper,
    "built-in function": lambda _: len,
}


@pytest.mark.parametrize("make", FUNCTIONS_OF_ONE_NAME.values(), ids=list(FUNCTIONS_OF_ONE_NAME))
@pytest.mark.parametrize("wrap", [cached, Recorder, lambda function: Recorder(cached(function))], ids=range(3))
def test_a_function_that_could_share_its_name_with_another_needs_one(make: Any, wrap: Any) -> None:
    for prefix in ("eu", "us"):
        with pytest.raises(TypeError, match=r"^name must be given for .*Pass name="):
            default_name(wrap(make(prefix)))


@pytest.mark.parametrize("function", [future(blocking_country), lambda ip: ip], ids=["closure", "lambda"])
@pytest.mark.parametrize("adapter", [in_thread, from_future, from_callback])
def test_a_function_without_a_name_does_not_get_that_of_its_adapter(adapter: Any, function: Any) -> None:
    with pytest.raises(TypeError, match=r"^name must be given for <function "):
        default_name(adapter(function))


@pytest.mark.parametrize(
    ("wrap", "functions"),
    [
        (from_asyncio, (country, weather)),
        (Recorder, (country, weather)),
        (in_thread, (blocking_country, blocking_weather)),
        (lambda function: cached(Recorder(function)), (country, weather)),
    ],
    ids=["from_asyncio", "Recorder", "in_thread", "cached"],
)
async def test_two_functions_in_one_file_do_not_share_results(wrap: Any, functions: Any, tmp_path: Path) -> None:
    for _ in range(2):
        for function, result in zip(functions, ("country of a", "weather of a"), strict=True):
            stored = persistent(wrap(function), tmp_path / "cache.sqlite")
            async with ordered_wait(["a"], stored, timeout=float("inf")) as results:
                assert [output async for output in results] == [result]
    assert stored.hits == 1


@pytest.mark.processes
def test_a_decorated_function_of_a_script_has_a_name_before_its_module_is_complete(tmp_path: Path) -> None:
    script = tmp_path / "job.py"
    script.write_text(
        "from functools import partial\n"
        "from trio_asyncio_io.policies import persistent\n"
        "@partial(persistent, path='cache.sqlite')\n"
        "async def fetch(value): ...\n"
        "print(fetch._options['name'])\n"
    )
    out = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True)
    assert out.stdout == "__main__.fetch\n"
