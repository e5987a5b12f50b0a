"""The tokens of a Redis server, which any number of applications share."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import trio
from redis import Redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from .lease import TIMEOUT, Answer, Request
from .tokens import HORIZON, REMEMBERED, Grant, pace_of

__all__ = ["RedisTokens"]

# `TokenSource.grant`, on the server's clock. A key that is missing, or whose instants are too far ahead because that
# clock was set back, is that of a source that has forgotten what it granted. A field of each application has the number
# of its slots, and when it asked
GRANT = """\
local pace, settling, horizon = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local count, lead, is_back = tonumber(ARGV[4]), tonumber(ARGV[5]), ARGV[6] == '1'
local application, own, remembered = 'application:' .. ARGV[7], tonumber(ARGV[8]), tonumber(ARGV[9])
local time = redis.call('TIME')
local now = tonumber(time[1]) + tonumber(time[2]) / 1e6
local known = redis.call('HMGET', KEYS[1], 'next', 'opens')
local after, opens = tonumber(known[1]), tonumber(known[2])
if not after or after > math.max(now, opens) + horizon + 2 / pace or opens > now + settling + 1 then
    redis.call('DEL', KEYS[1])
    after, opens = now, now + settling
elseif is_back and now >= opens then
    opens = now + settling
end
local start = math.max(after, now + lead, opens)
count = math.max(0, math.min(count, math.floor((now + horizon - start) * pace) + 1))
redis.call('HSET', KEYS[1], 'next', string.format('%.6f', start + count / pace), 'opens', string.format('%.6f', opens))

redis.call('HSET', KEYS[1], application, string.format('%d %.6f', own, now))
local all = 0
local fields = redis.call('HGETALL', KEYS[1])
for index = 1, #fields, 2 do
    local slots, asked = string.match(fields[index + 1], '^(%d+) (%S+)$')
    if slots and now - asked > remembered then
        redis.call('HDEL', KEYS[1], fields[index])
    elseif slots then
        all = all + slots
    end
end
redis.call('PEXPIRE', KEYS[1], math.ceil(1000 * remembered + 2000 / pace))
return {string.format('%.6f', now), string.format('%.6f', start), count, string.format('%.6f', opens), all}
"""


@dataclass(unsafe_hash=True)
class RedisTokens:
    """Asks with redis-py, in a thread of Trio's pool.

    Args:
        url: Of the server, as `redis.Redis.from_url` takes it.
        name: The name of the rate. The key is "cluster_rate:" and the name.
        rate: Calls per second.
        settling: See `settling_of`.
        application: The one that asks.
        slots: The number of its tasks that can run at once.
    """

    url: str = field(repr=False)
    name: str
    rate: float
    settling: float
    application: str
    slots: int
    _script: Any = field(default=None, init=False, repr=False, compare=False)

    async def ask(self, request: Request) -> Answer:
        """Return the server's answer.

        Raises:
            Exception: There is no answer.

        Cancellation: the thread ends later, after the same time limit.
        """
        ahead = trio.current_time() - time.perf_counter()  # the thread's clock is not Trio's
        return await trio.to_thread.run_sync(self._ask, request, ahead, abandon_on_cancel=True)

    def _ask(self, request: Request, ahead: float) -> Answer:
        script = self._script = self._script or _connected(self.url).register_script(GRANT)
        limits = [pace_of(self.rate), self.settling, HORIZON]
        asked = [request.count, request.lead, int(request.is_back)]
        asker: list[Any] = [self.application, self.slots, REMEMBERED]
        sent = time.perf_counter() + ahead
        answer = script([f"cluster_rate:{self.name}"], [*limits, *asked, *asker])
        received = time.perf_counter() + ahead
        now, start, count, opens, slots = answer
        return Answer(Grant(float(now), float(start), int(count), float(opens), int(slots)), sent, received)


def _connected(url: str) -> Redis:
    retry = Retry(NoBackoff(), 1)  # on another connection: the server closes idle ones
    return Redis.from_url(url, socket_timeout=TIMEOUT, socket_connect_timeout=TIMEOUT, retry=retry)
