"""The sources of leases as a worker reaches them: a thread on the driver, or a Redis.

A Redis runs `TokenSource.grant` and `BudgetSource.grant` as scripts, on the server's clock.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, astuple
from math import inf
from typing import Any, TypeAlias

import trio

from .._extras import needs_extra
from .budgets import DEAD_SECONDS, FORGOTTEN_SECONDS, ROUNDING, BudgetGrant, BudgetRequest
from .cluster_limits import LeasedLimit, ServerAddress
from .lease import GRANT_SECONDS, OPEN_SECONDS
from .rates import HORIZON_SECONDS, TokenGrant, TokenRequest, pace_of
from .signed_lines import SignedLines


class GrantRefusedError(Exception):
    """The source cannot grant a request now.

    Args:
        refused: The reason.
        advice: A sentence about the cure.
    """

    def __init__(self, refused: str, advice: str) -> None:
        super().__init__(refused)
        self.advice = advice


class DriverSource:
    """The thread on the driver, and the connection to it. `open` comes first, and after any exception `aclose`.

    Both ends prove that they know the secret.

    Args:
        address: Where it listens.
    """

    def __init__(self, address: ServerAddress) -> None:
        self._address = address
        self._stream: trio.SocketStream | None = None

    async def open(self) -> None:
        """Connect.

        Raises:
            Exception: The source cannot be reached.
        """
        self._stream = await trio.open_tcp_stream(self._address.host, self._address.port)
        self._lines = SignedLines(self._stream, self._address.secret)
        await self._lines.connect()

    async def grant(self, request: TokenRequest | BudgetRequest) -> Any:
        """Return the source's answer: a `request.answer`.

        Raises:
            Exception: There is none.
        """
        await self._lines.send(asdict(request))
        answer = await self._lines.receive()
        if "refused" in answer:
            raise GrantRefusedError(**answer)
        return request.answer(**answer)

    async def aclose(self) -> None:
        """Close the connection, if there is one, without waiting for the other end."""
        if self._stream is not None:
            await trio.aclose_forcefully(self._stream)


# Seconds for which a Redis remembers a rate after its last request
KEPT_SECONDS = 3600.0

# The server's run is the epoch. A key that is missing or of another run, or that was written later than now, means that
# tokens may have been granted which the server does not remember
GRANT_TOKENS = """\
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

# The first arguments are the fields of the request, without the name. The key has, per process, a field with its lease,
# what it has spent, the number of its latest request, and when that was
GRANT_BUDGET = """\
local amount, holder, number = tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[3])
local spent, floor, need, want = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])
local rounding, hold, forgotten = tonumber(ARGV[8]), tonumber(ARGV[9]), tonumber(ARGV[10])
local time = redis.call('TIME')
local now = tonumber(time[1]) + tonumber(time[2]) / 1e6
local exact = '%.17g'
local function holding(text)
    local lease, spent, number, seen = string.match(text or '0 0 0 0', '(%S+) (%S+) (%S+) (%S+)')
    return tonumber(lease), tonumber(spent), tonumber(number), tonumber(seen)
end
local leased = tonumber(redis.call('HGET', KEYS[1], 'leased') or '0')
local lease, _, latest = holding(redis.call('HGET', KEYS[1], holder))
if number > latest then
    local others = leased - lease
    local available = amount * (1 + rounding) - others
    lease = math.max(floor, need <= available and math.min(want, available) or floor)
    leased = others + lease
    local fields = {exact:format(lease), exact:format(spent), number, exact:format(now)}
    redis.call('HSET', KEYS[1], 'leased', exact:format(leased), holder, table.concat(fields, ' '))
end
local held = 0
local all = redis.call('HGETALL', KEYS[1])
for position = 1, #all, 2 do
    if all[position] ~= 'leased' and all[position] ~= holder then
        local its_lease, its_spent, _, seen = holding(all[position + 1])
        if seen < now - forgotten then
            redis.call('HDEL', KEYS[1], all[position])
        elseif seen >= now - hold then
            held = held + math.max(0, its_lease - its_spent)
        end
    end
end
return {exact:format(lease), exact:format(amount - leased), exact:format(held)}
"""


class RedisSource:
    """A Redis, with the methods of `DriverSource`. redis-py sends the requests, in a thread of Trio's pool.

    Args:
        url: The URL of the server, as `redis.Redis.from_url` takes it.

    Raises:
        ValueError: The URL cannot be read. The error does not show it.
        ModuleNotFoundError: The extra `redis` is not installed.
    """

    # Not the limiter of the user's own threads, which may all be busy. Each of these threads ends after its time limit
    _limiter = trio.CapacityLimiter(inf)

    def __init__(self, url: str) -> None:
        with needs_extra("by= with the URL of a Redis", "redis"):
            from redis import Redis  # noqa: PLC0415 - an optional package
            from redis.backoff import NoBackoff  # noqa: PLC0415
            from redis.retry import Retry  # noqa: PLC0415
        once = Retry(NoBackoff(), 0)
        try:
            self._redis = Redis.from_url(
                url, socket_timeout=GRANT_SECONDS, socket_connect_timeout=OPEN_SECONDS, retry=once
            )
        except (TypeError, ValueError):
            raise ValueError(
                "by must be a URL that redis.Redis.from_url can read, such as "
                '"redis://user:password@host:6379/0", with special characters in the password percent-encoded'
            ) from None
        self._token_script: Any = self._redis.register_script(GRANT_TOKENS)
        self._budget_script: Any = self._redis.register_script(GRANT_BUDGET)

    async def open(self) -> None:
        """See `DriverSource`."""
        await self._in_thread(self._redis.ping)

    async def grant(self, request: TokenRequest | BudgetRequest) -> Any:
        """See `DriverSource`."""
        if isinstance(request, BudgetRequest):
            name, *sums = astuple(request)
            arguments = [*sums, ROUNDING, DEAD_SECONDS, FORGOTTEN_SECONDS]
            found = await self._in_thread(self._budget_script, [f"cluster_budget:{name}"], arguments)
            return BudgetGrant(*map(float, found))
        arguments = [pace_of(request.rate), HORIZON_SECONDS, request.count, request.lead, KEPT_SECONDS]
        epoch, now, start, count = await self._in_thread(
            self._token_script, [f"cluster_rate:{request.name}"], arguments
        )
        text = epoch if isinstance(epoch, str) else epoch.decode()  # a URL may say decode_responses=True
        return TokenGrant(text, float(now), float(start), int(count))

    async def aclose(self) -> None:
        """See `DriverSource`."""
        self._redis.close()

    async def _in_thread(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call it in a thread, which ends after its time limit even if the call is cancelled before."""
        return await trio.to_thread.run_sync(function, *arguments, abandon_on_cancel=True, limiter=self._limiter)


Source: TypeAlias = DriverSource | RedisSource


def source_of(leased: LeasedLimit) -> Source:
    """The source, not yet connected.

    Raises:
        ModuleNotFoundError: It is a Redis, and the extra `redis` is not installed.
    """
    return RedisSource(leased.limit.by) if leased.driver is None else DriverSource(leased.driver)
