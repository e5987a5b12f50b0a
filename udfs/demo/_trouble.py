"""Simulated trouble: responses of a service that fails, limits its clients or is slow. Nothing is random."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final, NamedTuple

__all__ = ["TROUBLES", "Response", "Trouble"]

TROUBLES: Final = ("flaky", "busy", "slow")

_RETRY_AFTER_SECONDS: Final = 1
_LONGEST_SECONDS: Final = 3600.0


class Response(NamedTuple):
    """A response, and the seconds to wait before it is sent."""

    status: HTTPStatus
    body: Mapping[str, Any]
    headers: Sequence[tuple[bytes, bytes]] = ()
    seconds: float = 0.0


class Trouble:
    """The responses of `/flaky/{key}`, `/busy/{key}` and `/slow/{seconds}`. Keys are independent of each other.

    * `flaky`: 503 for the first request with a key, 200 for the second, alternating from then on.
    * `busy`: 429 with `Retry-After: 1` for the first request with a key, and for further ones within that second. The
      next request gets a 200, and the key starts over.
    * `slow`: 200 after the given seconds.

    Args:
        clock: Returns seconds, from any origin.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._failed: set[str] = set()
        self._free_at: dict[str, float] = {}

    def response(self, kind: str, key: str) -> Response:
        """The response to one request. `kind` is one of `TROUBLES`."""
        if kind == "slow":
            return _slow(key)
        return self._flaky(key) if kind == "flaky" else self._busy(key)

    def _flaky(self, key: str) -> Response:
        if key in self._failed:
            self._failed.remove(key)
            return Response(HTTPStatus.OK, {"key": key})
        self._failed.add(key)
        return Response(HTTPStatus.SERVICE_UNAVAILABLE, {"error": f"/flaky/{key} fails every other time: try again"})

    def _busy(self, key: str) -> Response:
        now = self._clock()
        free_at = self._free_at.setdefault(key, now + _RETRY_AFTER_SECONDS)
        if now >= free_at:
            del self._free_at[key]
            return Response(HTTPStatus.OK, {"key": key})
        seconds = math.ceil(free_at - now)
        error = {"error": f"too many requests for /busy/{key}: try again in {seconds} s"}
        return Response(HTTPStatus.TOO_MANY_REQUESTS, error, [(b"retry-after", b"%d" % seconds)])


def _slow(text: str) -> Response:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds <= _LONGEST_SECONDS:
        error = {"error": f"seconds must be 0 to {_LONGEST_SECONDS:.0f}, as in /slow/2.5; got {text!r}"}
        return Response(HTTPStatus.BAD_REQUEST, error)
    return Response(HTTPStatus.OK, {"seconds": seconds}, seconds=seconds)
