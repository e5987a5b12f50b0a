"""No repr and no message shows a secret that an object holds: a captured value, a header, a password in a URL."""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import httpx
import pyarrow as pa
import pytest
from pyspark.sql.types import StringType

from tests.docs.public import PUBLIC
from tests.udfs.http.proxying import proxying
from tests.udfs.http.serving import ok, serving
from trio_asyncio_io import AsyncFunction, AsyncWaitOperator, FixedDelay
from trio_asyncio_io.adapters import from_asyncio, from_callback, from_future, in_thread
from trio_asyncio_io.gates import Budget, PerKey, RateLimit
from trio_asyncio_io.policies import cached, gated, hedged, persistent, single_flight
from udfs import ClusterBudget, ClusterRate, Memo, async_pandas_udf
from udfs._limits.cluster_limits import LeasedLimit, ServerAddress
from udfs._memo.directory import Directory
from udfs._memo.merge import merge
from udfs._plan.arguments import make_settings
from udfs._sent.function import pack
from udfs._sent.settings import MemoSettings
from udfs._urls import without_user
from udfs.http import StackTransport, client
from udfs.http.httpx2 import StackTransport as Httpx2Transport
from udfs.http.httpx2 import client as httpx2_client
from udfs.http_columns._columns import _udf
from udfs.http_columns._options import HttpOptions

SECRET = "sk-SECRET"
REDIS = f"redis://user:{SECRET}@host:6379/0"
BUCKET = f"s3://KEY:{SECRET}@bucket/memo"


async def ask(question: str, token: str = "") -> str:
    return SECRET + token + question


class Ask(AsyncFunction[str, str]):
    def __init__(self) -> None:
        self.token = SECRET

    async def invoke(self, question: str) -> str:
        return question


@dataclass
class Client:
    """Its generated repr shows the token."""

    token: str = SECRET

    async def __call__(self, question: str) -> str:
        return self.token + question

    async def ask(self, question: str) -> str:
        return await self(question)

    def weigh(self, question: str) -> float:
        return len(self.token + question)


@dataclass
class AskAs(AsyncFunction[str, str]):
    token: str = SECRET

    async def invoke(self, question: str) -> str:
        return self.token + question


def headers() -> dict[str, str]:
    return {"authorization": SECRET}


bound = partial(ask, token=SECRET)

# How to make an object of each public class that can hold a secret
MADE: dict[str, Callable[[], Any]] = {
    "udfs.AsyncPandasUDF": lambda: async_pandas_udf(ask, "string", timeout=1.0),
    "udfs.ClusterRate": lambda: ClusterRate(1.0, by=REDIS),
    "udfs.ClusterBudget": lambda: ClusterBudget(1.0, by=REDIS, name="b"),
    "udfs.Memo": lambda: Memo(BUCKET, max_age=60.0),
    "udfs.http.StackTransport": StackTransport,
    "udfs.http.httpx2.StackTransport": Httpx2Transport,
    "trio_asyncio_io.AsyncWaitOperator": lambda: AsyncWaitOperator(bound, mode="ordered", timeout=1.0),
    "trio_asyncio_io.adapters.from_asyncio": lambda: from_asyncio(bound),
    "trio_asyncio_io.adapters.from_callback": lambda: from_callback(partial(print, SECRET)),
    "trio_asyncio_io.adapters.from_future": lambda: from_future(partial(print, SECRET)),
    "trio_asyncio_io.adapters.in_thread": lambda: in_thread(partial(print, SECRET)),
    "trio_asyncio_io.policies.cached": lambda: cached(bound),
    "trio_asyncio_io.policies.gated": lambda: gated(bound, RateLimit(1.0)),
    "trio_asyncio_io.policies.hedged": lambda: hedged(bound, after=1.0),
    "trio_asyncio_io.policies.persistent": lambda: persistent(bound, "answers.sqlite", name="ask"),
    "trio_asyncio_io.policies.single_flight": lambda: single_flight(bound),
}

# Objects of this package that errors and logs may show
INNER: dict[str, Callable[[], Any]] = {
    "a packed function": lambda: pack(ask),
    "a packed AsyncFunction": lambda: pack(Ask()),
    "an object with a policy": lambda: hedged(Client(), after=1.0),
    "an AsyncFunction with a policy": lambda: cached(AskAs()),
    "a method with a policy": lambda: single_flight(Client().ask),
    "a method in threads": lambda: in_thread(Client().weigh),
    "gates with a method as key": lambda: PerKey(Budget(1.0, weight=Client().weigh), key=Client().weigh),
    "a retry strategy": lambda: FixedDelay(1, 1.0, retry_on=Client().weigh, retry_after=partial(print, SECRET)),
    "settings": lambda: make_settings(bound, 1.0, {}),
    "a column UDF with a policy": lambda: async_pandas_udf(cached(ask), StringType(), timeout=1.0),
    "options of a column": lambda: HttpOptions({"authorization": SECRET}),
    "options with a function": lambda: HttpOptions(headers),
    "an HTTP call": HttpOptions({"authorization": SECRET}).settings().function.unpack,
    "an HTTP column": lambda: _udf("http_get", HttpOptions({"authorization": SECRET}).settings()),
    "a task with a memo": lambda: MemoSettings(BUCKET, pa.schema([]), StringType(), "1", 1.0, 1.0, 1.0, 1, False),
    "a lease": lambda: LeasedLimit(ClusterRate(1.0, by=REDIS, name="r")),
    "an address": lambda: ServerAddress("host", 1, SECRET),
    "a client": lambda: client(headers={"a": SECRET}, proxy=f"http://u:{SECRET}@127.0.0.1:1"),
    "a client of httpx2": lambda: httpx2_client(headers={"a": SECRET}, proxy=f"http://u:{SECRET}@127.0.0.1:1"),
}


@pytest.mark.parametrize("make", [*MADE.values(), *INNER.values()], ids=[*MADE, *INNER])
def test_a_repr_shows_no_secret(make: Callable[[], Any]) -> None:
    made = make()
    assert "SECRET" not in repr(made) + str(made) + f"{[made]}"


def _may_hold_a_secret(public: Any) -> bool:
    """Whether the constructor of a class takes a function, a URL, a path or headers."""
    if not inspect.isclass(public) or issubclass(public, Exception):
        return False
    try:
        parameters = inspect.signature(public).parameters
    except ValueError:  # a TypedDict, which is a dict
        return False
    return bool({"function", "by", "path", "url", "headers", "cookies", "proxy", "verify"} & parameters.keys())


# Classes whose path is one of this machine
HARMLESS = {
    "trio_asyncio_io.checkpoints.SQLiteStore",
    "trio_asyncio_io.report.Report",
    "trio_asyncio_io.testing.Recorder",
    "trio_asyncio_io.trace.TraceRecorder",
}


def test_each_public_class_that_may_hold_a_secret_is_tried() -> None:
    assert {name for name, public in PUBLIC.items() if _may_hold_a_secret(public)} - MADE.keys() == HARMLESS


def test_a_column_udf_shows_its_name_and_type() -> None:
    assert repr(async_pandas_udf(ask, "string", timeout=1.0)) == "<async_pandas_udf ask -> string>"
    assert repr(async_pandas_udf(ask, StringType(), timeout=1.0)) == "<async_pandas_udf ask -> string>"


def test_a_memo_shows_its_place_and_what_was_given() -> None:
    assert repr(Memo(BUCKET, max_age=60.0)) == "Memo('s3://***@bucket/memo', max_age=60.0)"
    assert repr(Memo("/data/a@b")) == "Memo('/data/a@b')"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("redis://host:6379/0", "redis://host:6379/0"),
        ("redis://user:SECRET@host:6379/0", "redis://***@host:6379/0"),
        ("redis://:SECRET@host", "redis://***@host"),
        ("https://SECRET@host/path", "https://***@host/path"),
        ("redis://user:SEC/RET@host", "redis://***@host"),
        ("redis://user:SEC?RET@host", "redis://***@host"),
        ("redis://user:SEC@RET@host", "redis://***@host"),
        ("redis://host/0?password=SECRET", "redis://host/0"),
        ("redis://user:x@host/0?password=SECRET", "redis://***@host/0"),
        ("redis:/user:SECRET@host", "***@host"),
        ("/data/a:b@c?d", "/data/a:b@c?d"),
        ("memo@home", "memo@home"),
    ],
)
def test_a_url_is_shown_without_its_user_and_its_query(url: str, shown: str) -> None:
    assert without_user(url) == shown


# Messages


def full_text(error: BaseException) -> str:
    """What Python prints of an error, with its causes and contexts."""
    return "".join(traceback.format_exception(error))


@pytest.mark.parametrize(
    "fail",
    [
        lambda: AsyncWaitOperator(ask, mode="ordered", timeout=1.0, gate=Client()),  # type: ignore[arg-type]
        lambda: Memo(f"dbfs:/user:{SECRET}@host/memo"),
        lambda: Memo(f"file://user:{SECRET}@host/memo"),
        lambda: Memo(f"file:user:{SECRET}@host/memo"),
        lambda: Directory(f"nowhere://user:{SECRET}@host/memo", pa.schema([])),
        lambda: Directory(f"s4://user:{SECRET} @host/memo", pa.schema([])),
        lambda: ClusterRate(1.0, by=f"http://user:{SECRET}@host"),
        lambda: ClusterRate(1.0, by=f"redis:/user:{SECRET}@host"),
        lambda: ClusterRate(1.0, by=REDIS, port=1),
        lambda: ClusterRate(1.0, by=REDIS, weight=len),
        lambda: ClusterBudget(1.0, by=f"http://user:{SECRET}@host"),
        lambda: HttpOptions({"authorization": f"{SECRET}\n"}),
        lambda: HttpOptions({f"{SECRET}:": "a"}),
    ],
)
def test_a_refused_argument_shows_no_secret(fail: Callable[[], Any]) -> None:
    with pytest.raises((TypeError, ValueError)) as caught:
        fail()
    assert "sk-" not in full_text(caught.value)  # the lines of this file in the traceback name the variable `SECRET`


def test_a_memo_whose_files_cannot_be_merged_logs_no_secret(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def unreachable(_: Directory) -> None:
        raise OSError("no route to host")

    directory = Directory(f"{BUCKET}?region=eu-west-1", pa.schema([]))
    monkeypatch.setattr("udfs._memo.merge._settled", unreachable)
    merge(directory)
    assert "the memo s3://***@bucket/memo could not be merged: no route to host" in caplog.text
    assert "SECRET" not in caplog.text + str(vars(directory))


async def test_a_url_that_cannot_be_requested_shows_no_secret() -> None:
    async with client() as http:
        with pytest.raises(httpx.UnsupportedProtocol) as caught:
            await http.get(f"ftp://u:{SECRET}@host/?key={SECRET}")
    assert "SECRET" not in str(caught.value) + repr(caught.value)


async def test_a_proxy_that_refuses_shows_no_secret() -> None:
    async with serving(ok) as server, proxying() as proxy:
        proxy.status = "407 Proxy Authentication Required"
        async with client(proxy=proxy.url.replace("//", f"//u:{SECRET}@")) as http:
            with pytest.raises(httpx.ProxyError) as caught:
                await http.get(server.url.replace("http:", "https:"))
        assert "SECRET" not in str(caught.value) + repr(caught.value)
