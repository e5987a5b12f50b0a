"""The source of a leased rate in a Redis: `TokenSource.grant` as a script, which the server runs on its own clock."""

from __future__ import annotations

from typing import Any

from .._extras import needs_extra
from .lease import OPEN_SECONDS, TIMEOUT
from .tokens import HORIZON, Grant, Request, pace_of

__all__ = ["RedisTokens"]

# Seconds for which a Redis remembers a rate after its last request
KEPT = 3600.0

# The server's run is the epoch. A key that is missing or of another run, or
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


class RedisTokens:
    """A client of the source, with redis-py. Its methods block, and can be called in any thread.

    Args:
        url: Of the server, as `redis.Redis.from_url` takes it.

    Raises:
        ValueError: The URL cannot be read. The error does not show it.
        ModuleNotFoundError: The extra `redis` is not installed.
    """

    def __init__(self, url: str) -> None:
        with needs_extra("ClusterRate with a Redis", "redis"):
            from redis import Redis  # noqa: PLC0415 - an optional package
            from redis.backoff import NoBackoff  # noqa: PLC0415
            from redis.retry import Retry  # noqa: PLC0415
        once = Retry(NoBackoff(), 0)
        try:
            self._redis = Redis.from_url(url, socket_timeout=TIMEOUT, socket_connect_timeout=OPEN_SECONDS, retry=once)
        except (TypeError, ValueError):
            raise ValueError(
                "by must be a URL that redis.Redis.from_url can read, such as "
                '"redis://user:password@host:6379/0", with special characters in the password percent-encoded'
            ) from None
        self._script: Any = self._redis.register_script(GRANT)

    def connect(self) -> None:
        """Open a connection, if there is none.

        Raises:
            redis.RedisError: The server cannot be reached.
        """
        self._redis.ping()

    def grant(self, request: Request) -> Grant:
        """Return the server's answer.

        Raises:
            redis.RedisError: There is none.
        """
        arguments = [pace_of(request.rate), HORIZON, request.count, request.lead, KEPT]
        epoch, now, start, count = self._script([f"cluster_rate:{request.name}"], arguments)
        text = epoch if isinstance(epoch, str) else epoch.decode()  # a URL may say decode_responses=True
        return Grant(text, float(now), float(start), int(count))

    def close(self) -> None:
        """Close the connections."""
        self._redis.close()
