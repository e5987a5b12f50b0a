"""`transient`: errors that a retry may avoid."""

from __future__ import annotations

import errno
import os
import pickle
import socket
import ssl
import urllib.error
from email.message import Message
from http import HTTPStatus
from types import SimpleNamespace
from typing import Any

import asyncpg
import httpx
import pytest
import redis.exceptions
import trio

from trio_asyncio_io import AttemptTimeoutError, ElementTimeoutError, FixedDelay, transient
from trio_asyncio_io._core.reading import outcome_of

REQUEST = httpx.Request("GET", "http://service/")


class RefusedError(Exception):
    def __init__(self, **attributes: Any) -> None:
        super().__init__("refused")
        vars(self).update(attributes)


def status_error(status: int) -> httpx.HTTPStatusError:
    return httpx.HTTPStatusError("refused", request=REQUEST, response=httpx.Response(status, request=REQUEST))


def caused(error: Exception, cause: BaseException) -> Exception:
    error.__cause__ = cause
    return error


def of_package(package: str, *names: str) -> Exception:
    """An exception with the class hierarchy of the named package; the last name is its class."""
    kind: type[Exception] = Exception
    for name in names:
        kind = type(name, (kind,), {"__module__": f"{package}.exceptions"})
    return kind("failed")


def of_requests(code: int) -> Exception:
    """The error of requests if the resolver fails with this code: urllib3's error is its argument, not its cause."""
    resolving = caused(of_package("urllib3", "NameResolutionError"), socket.gaierror(code, "failed"))
    retries = of_package("urllib3", "MaxRetryError")
    vars(retries)["reason"] = resolving
    error = of_package("requests", "ConnectionError")
    error.args = (retries,)
    return error


@pytest.mark.parametrize(
    "error",
    [
        TimeoutError(),
        trio.TooSlowError(),
        AttemptTimeoutError("late", 1.0),
        ElementTimeoutError("late", 1.0),
        httpx.ConnectTimeout("late"),
        httpx.ReadTimeout("late"),
        httpx.WriteTimeout("late"),
        httpx.PoolTimeout("late"),
    ],
    ids=repr,
)
def test_timeouts_are_transient(error: Exception) -> None:
    assert transient(error)


@pytest.mark.parametrize(
    "error",
    [
        ConnectionError("gone"),
        ConnectionRefusedError(),
        ConnectionResetError(errno.ECONNRESET, "reset"),
        BrokenPipeError(),
        OSError(errno.EHOSTUNREACH, os.strerror(errno.EHOSTUNREACH)),
        OSError(errno.ENETUNREACH, os.strerror(errno.ENETUNREACH)),
        socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution"),
        ssl.SSLEOFError(8, "EOF occurred in violation of protocol"),
        trio.BrokenResourceError("reset"),
        httpx.ConnectError("refused"),
        httpx.ReadError("reset"),
        httpx.WriteError("reset"),
        httpx.CloseError("reset"),
        caused(httpx.ConnectError("failed"), socket.gaierror(socket.EAI_AGAIN, "Temporary failure")),
        caused(httpx.ConnectError("failed"), ssl.SSLError(1, "internal error")),
        httpx.RemoteProtocolError("closed early"),
        redis.exceptions.ConnectionError("gone"),
        redis.exceptions.TimeoutError("late"),
        asyncpg.ConnectionDoesNotExistError("gone"),
        of_package("aiohttp", "ServerDisconnectedError"),
        of_package("requests", "ConnectionError", "ConnectTimeout"),
        of_requests(socket.EAI_AGAIN),
        of_package("botocore", "ConnectionError", "EndpointConnectionError"),
        of_package("openai", "APIConnectionError", "APITimeoutError"),
        urllib.error.URLError(ConnectionRefusedError(errno.ECONNREFUSED, "refused")),
        caused(OSError("all attempts to connect to service:80 failed"), ExceptionGroup("", [ConnectionRefusedError()])),
        OSError("Multiple exceptions: [Errno 111] Connect call failed ('::1', 1), [Errno 111] Connect call failed"),
    ],
    ids=repr,
)
def test_connection_errors_are_transient(error: Exception) -> None:
    assert transient(error)


async def test_an_address_that_refuses_connections_is_transient() -> None:
    with socket.socket() as unused:  # bound but not listening
        unused.bind(("127.0.0.1", 0))
        with pytest.raises(OSError, match="all attempts to connect") as caught:
            await trio.open_tcp_stream("127.0.0.1", unused.getsockname()[1])
    assert transient(caught.value)


@pytest.mark.parametrize("status", [408, 429, 500, 501, 502, 503, 504, 505, 599])
def test_statuses_408_429_and_5xx_are_transient(status: int) -> None:
    assert transient(status_error(status))


@pytest.mark.parametrize("status", [200, 301, 400, 401, 403, 404, 409, 410, 422, 451])
def test_other_statuses_are_not_transient(status: int) -> None:
    assert not transient(status_error(status))


@pytest.mark.parametrize("status", [503, HTTPStatus.SERVICE_UNAVAILABLE])
@pytest.mark.parametrize(
    "attributes",
    [
        lambda status: {"response": SimpleNamespace(status_code=status)},
        lambda status: {"response": SimpleNamespace(status=status)},
        lambda status: {"response": {"ResponseMetadata": {"HTTPStatusCode": status}}},
        lambda status: {"status_code": status},
        lambda status: {"status": status},
        lambda status: {"code": status},
        lambda status: {"code": "unavailable", "status_code": status},
        lambda status: {"response": None, "status": status},
    ],
    ids=["httpx", "response.status", "botocore", "openai", "aiohttp", "urllib", "a text as code", "no response"],
)
def test_the_status_is_read_from_the_exceptions_of_all_libraries(attributes: Any, status: int) -> None:
    assert transient(RefusedError(**attributes(status)))
    assert not transient(RefusedError(**attributes(404)))


def aws_error(code: object, status: int) -> Exception:
    """An error as botocore raises it; see its `ClientError`."""
    metadata = {"HTTPStatusCode": status, "HTTPHeaders": {}}
    return RefusedError(response={"Error": {"Code": code, "Message": "slow down"}, "ResponseMetadata": metadata})


@pytest.mark.parametrize(
    ("code", "status", "outcome"),
    [
        ("ThrottlingException", 400, "throttled"),
        ("ProvisionedThroughputExceededException", 400, "throttled"),
        ("TooManyRequestsException", 400, "throttled"),
        ("RequestLimitExceeded", 503, "throttled"),
        ("SlowDown", 503, "throttled"),
        ("RequestTimeout", 400, "overload"),
        ("InternalError", 500, "overload"),
        ("ValidationException", 400, "error"),
        ("AccessDenied", 403, "error"),
        (["ThrottlingException"], 400, "error"),
    ],
)
def test_the_codes_of_aws_decide_before_the_status(code: object, status: int, outcome: str) -> None:
    assert transient(aws_error(code, status)) is (outcome != "error")
    assert outcome_of(aws_error(code, status)).kind == outcome


def test_a_throttling_code_outside_a_botocore_error_means_nothing() -> None:
    assert not transient(RefusedError(response={"Error": "ThrottlingException"}))
    assert not transient(RefusedError(code="ThrottlingException"))


def test_the_status_of_a_urllib_error_decides_although_it_is_an_oserror() -> None:
    codes = [404, 503]
    errors = [urllib.error.HTTPError("http://service/", code, "refused", Message(), None) for code in codes]
    assert [transient(error) for error in errors] == [False, True]


def test_a_status_of_4xx_is_not_transient_even_as_a_connection_error() -> None:
    class RefusedConnectionError(ConnectionError):
        status = 401

    assert not transient(RefusedConnectionError())


@pytest.mark.parametrize("seconds", [0, 0.0, 2.5, "3"])
def test_an_error_with_retry_after_is_transient(seconds: Any) -> None:
    assert transient(RefusedError(retry_after=seconds))
    assert not transient(RefusedError(retry_after=None))


@pytest.mark.parametrize(
    "error",
    [
        Exception("any"),
        ValueError("bad"),
        KeyError("x"),
        OSError("no number"),
        FileNotFoundError(errno.ENOENT, "no such file"),
        PermissionError(errno.EACCES, "denied"),
        socket.gaierror(socket.EAI_NONAME, "Name or service not known"),
        ssl.SSLError(1, "wrong version number"),
        ssl.SSLCertVerificationError(1, "certificate verify failed"),
        caused(httpx.ConnectError("failed"), ssl.SSLCertVerificationError(1, "certificate verify failed")),
        urllib.error.URLError(ssl.SSLCertVerificationError(1, "certificate verify failed")),
        caused(httpx.ConnectError("failed"), socket.gaierror(socket.EAI_NONAME, "Name or service not known")),
        caused(of_package("openai", "APIConnectionError"), socket.gaierror(socket.EAI_NODATA, "No address")),
        urllib.error.URLError("unknown url type"),
        httpx.UnsupportedProtocol("ftp"),
        httpx.ProxyError("407"),
        httpx.LocalProtocolError("bad header"),
        httpx.TooManyRedirects("20"),
        httpx.DecodingError("gzip"),
        httpx.InvalidURL("http://["),
        redis.exceptions.AuthenticationError("wrong password"),
        of_package("requests", "ConnectionError", "SSLError"),
        of_requests(socket.EAI_NONAME),
        of_package("some_library", "ConnectionError"),
        RefusedError(status=True),
        RefusedError(status="503"),
        RefusedError(code=1006),
        trio.ClosedResourceError(),
        KeyboardInterrupt(),
    ],
    ids=repr,
)
def test_all_other_errors_are_not_transient(error: BaseException) -> None:
    assert not transient(error)


def test_a_group_is_transient_if_all_its_exceptions_are() -> None:
    inner = ExceptionGroup("inner", [TimeoutError(), ConnectionError()])
    assert transient(ExceptionGroup("outer", [inner, status_error(503)]))
    assert not transient(ExceptionGroup("outer", [inner, status_error(404)]))
    assert not transient(BaseExceptionGroup("outer", [inner, KeyboardInterrupt()]))


class HostileError(ConnectionError):
    """Its properties raise; its type is transient."""

    @property
    def response(self) -> Any:
        raise RuntimeError("no response was received")

    retry_after = status_code = status = code = response


class HostileNumberError(OSError):
    @property
    def errno(self) -> Any:  # type: ignore[override]
        raise RuntimeError("no number")


class HostileTextError(OSError):
    def __str__(self) -> str:
        raise RuntimeError("no text")


class OpaqueError(ConnectionError):
    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError(name)


def endless() -> OSError:
    first, second = OSError("first"), OSError("second")
    first.__cause__, second.__cause__ = second, first
    return first


def test_properties_that_raise_are_ignored() -> None:
    assert transient(HostileError())


@pytest.mark.parametrize(
    "error", [HostileNumberError("x"), HostileTextError("x"), OSError([], "x"), endless()], ids=type
)
def test_transient_never_raises(error: Exception) -> None:
    assert not transient(error)


def test_transient_does_not_raise_even_if_every_attribute_does() -> None:
    assert not transient(OpaqueError("x"))


def test_transient_pickles_as_part_of_a_strategy() -> None:
    strategy = FixedDelay(3, 0.5, retry_on=transient)
    assert pickle.loads(pickle.dumps(strategy)) == strategy
