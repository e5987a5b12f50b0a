"""Trouble: answers of a service that fails, limits its callers, or takes its time; the same in each run."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final, NamedTuple

__all__ = ["TROUBLES", "Answer", "Trouble"]

TROUBLES: Final = ("flaky", "busy", "slow")

_RETRY_AFTER_SECONDS: Final = 1
_LONGEST_SECONDS: Final = 3600.0


class Answer(NamedTuple):
    """An answer, and the seconds that pass before it."""

    status: HTTPStatus
    body: Mapping[str, Any]
    headers: Sequence[tuple[bytes, bytes]] = ()
    seconds: float = 0.0


class Trouble:
    """The answers of `/flaky/{key}`, `/busy/{key}` and `/slow/{seconds}`; each key has a history of its own.

    * `flaky`: 503 for the first call of a key, 200 for the second, and so on in turn.
    * `busy`: 429 for the first call of a key, with `Retry-After: 1`, and for each call before that second has passed.
      The next call is a 200, and the key starts anew.
    * `slow`: 200 after the given seconds.

    Args:
        clock: Seconds, from any origin.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._failed: set[str] = set()
        self._free_at: dict[str, float] = {}

    def answer(self, kind: str, key: str) -> Answer:
        """The answer to one request; `kind` is one of `TROUBLES`."""
        if kind == "slow":
            return _slow(key)
        return self._flaky(key) if kind == "flaky" else self._busy(key)

    def _flaky(self, key: str) -> Answer:
        if key in self._failed:
            self._failed.remove(key)
            return Answer(HTTPStatus.OK, {"key": key})
        self._failed.add(key)
        return Answer(HTTPStatus.SERVICE_UNAVAILABLE, {"error": f"/flaky/{key} fails at every other call: try again"})

    def _busy(self, key: str) -> Answer:
        now = self._clock()
        free_at = self._free_at.setdefault(key, now + _RETRY_AFTER_SECONDS)
        if now >= free_at:
            del self._free_at[key]
            return Answer(HTTPStatus.OK, {"key": key})
        seconds = math.ceil(free_at - now)
        error = {"error": f"too many requests for /busy/{key}: come back in {seconds} s"}
        return Answer(HTTPStatus.TOO_MANY_REQUESTS, error, [(b"retry-after", b"%d" % seconds)])


def _slow(text: str) -> Answer:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds <= _LONGEST_SECONDS:
        error = {"error": f"/slow takes seconds from 0 to {_LONGEST_SECONDS:.0f}, such as /slow/2.5; got {text!r}"}
        return Answer(HTTPStatus.BAD_REQUEST, error)
    return Answer(HTTPStatus.OK, {"seconds": seconds}, seconds=seconds)
