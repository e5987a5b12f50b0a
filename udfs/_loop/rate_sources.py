"""A worker's connection to the source of a leased rate: the driver or a Redis."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from math import inf
from typing import Any, Protocol, TypeVar

import trio

from .._extras import needs_extra
from .._rate.cluster_rate import LeasedRate, TokenAddress
from .._rate.lease import OPEN_SECONDS, TIMEOUT
from .._rate.signed_lines import SignedLines
from .._rate.tokens import HORIZON, Grant, Request, pace_of

__all__ = ["DriverSource", "RedisSource", "Source", "source_of"]

# `TokenSource.grant`, on the server's clock. The server's run is the epoch. A key that is missing or of another run, or
# that was written later than now, means that tokens may have been granted which the server does not remember
GRANT = """\
local pace, horizon = tonumber(ARGV[1]), tonumber(ARGV[2])
local count, lead, kept = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local time = redis.call('TIME')
local now = tonumber(time[1]) + tonumber(time[2]) / 1e6
local run = string.match(redis.call('INFO', 'server'), 'run_id:(%w+)')
local known = redis.call('HMGET', KEYS[1], 'run', 'at', 'next')
local earliest = tonumber(known[3])
if known[1] ~= run or now < tonumber(known[2]) then
    earliest = now + horizon + 1 / pace
end
local start = math.max(earliest, now + lead)
count = math.max(0, math.min(count, math.floor((now + horizon - start) * pace) + 1))
local exact = '%.17g'
redis.call('HSET', KEYS[1], 'run', run, 'at', exact:format(now), 'next', exact:format(start + count / pace))
redis.call('PEXPIRE', KEYS[1], math.ceil(1000 * (kept + 1 / pace)))
return {run, exact:format(now), exact:format(start), count}
"""

T = TypeVar("T")

# Seconds for which a Redis remembers a rate after its last request
KEPT = 3600.0


class Source(Protocol):
    """A source, and the connection to it. `open` comes first, and after any exception `aclose`."""

    async def open(self) -> None:
        """Connect.

        Raises:
            Exception: The source cannot be reached.
        """
        ...

    async def grant(self, request: Request) -> Grant:
        """Return the source's answer.

        Raises:
            Exception: There is none.
        """
        ...

    async def aclose(self) -> None:
        """Close the connection, if there is one, without waiting for the other end."""
        ...


def source_of(rate: LeasedRate) -> Source:
    """The source of a rate, not yet connected.

    Raises:
        ModuleNotFoundError: It is a Redis, and the extra `redis` is not installed.
    """
    return RedisSource(rate.rate.by) if rate.driver is None else DriverSource(rate.driver)


class DriverSource:
    """The thread on the driver. Both ends prove that they know the secret.

    Args:
        address: Where it listens.
    """

    def __init__(self, address: TokenAddress) -> None:
        self._address = address
        self._stream: trio.SocketStream | None = None

    async def open(self) -> None:
        """See `Source`."""
        self._stream = await trio.open_tcp_stream(self._address.host, self._address.port)
        self._lines = SignedLines(self._stream, self._address.secret)
        await self._lines.connect()

    async def grant(self, request: Request) -> Grant:
        """See `Source`."""
        await self._lines.send(asdict(request))
        return Grant(**await self._lines.receive())

    async def aclose(self) -> None:
        """See `Source`."""
        if self._stream is not None:
            await trio.aclose_forcefully(self._stream)


class RedisSource:
    """A Redis, with redis-py in a thread of Trio's pool.

    Args:
        url: Of the server, as `redis.Redis.from_url` takes it.

    Raises:
        ValueError: The URL cannot be read. The error does not show it.
        ModuleNotFoundError: The extra `redis` is not installed.
    """

    # Not the limiter of the user's own threads, which may all be busy. Each of these threads ends after its time limit
    _limiter = trio.CapacityLimiter(inf)

    def __init__(self, url: str) -> None:
        with needs_extra("ClusterRate with a Redis", "redis"):
            from redis import Redis  # noqa: PLC0415 - an optional package
            from redis.backoff import NoBackoff  # noqa: PLC0415
            from redis.retry import Retry  # noqa: PLC0415
        limits = {"socket_timeout": TIMEOUT, "socket_connect_timeout": OPEN_SECONDS, "retry": Retry(NoBackoff(), 0)}
        try:
            self._redis = Redis.from_url(url, **limits)
        except (TypeError, ValueError):
            raise ValueError(
                "by must be a URL that redis.Redis.from_url can read, such as "
                '"redis://user:password@host:6379/0", with special characters in the password percent-encoded'
            ) from None
        self._script: Any = self._redis.register_script(GRANT)

    async def open(self) -> None:
        """See `Source`."""
        await self._in_thread(self._redis.ping)

    async def grant(self, request: Request) -> Grant:
        """See `Source`."""
        return await self._in_thread(self._grant, request)

    async def aclose(self) -> None:
        """See `Source`."""
        self._redis.close()

    def _grant(self, request: Request) -> Grant:
        arguments = [pace_of(request.rate), HORIZON, request.count, request.lead, KEPT]
        epoch, now, start, count = self._script([f"cluster_rate:{request.name}"], arguments)
        text = epoch if isinstance(epoch, str) else epoch.decode()  # a URL may say decode_responses=True
        return Grant(text, float(now), float(start), int(count))

    async def _in_thread(self, function: Callable[..., T], *arguments: Any) -> T:
        """Call it in a thread, which ends after its time limit even if the call is cancelled before."""
        return await trio.to_thread.run_sync(function, *arguments, abandon_on_cancel=True, limiter=self._limiter)
