"""The options of HTTP columns: checked on the driver, made into the settings of their tasks."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, fields
from typing import Any, Final, TypedDict

from trio_asyncio_io import ExponentialBackoff, Options, RetryStrategy

from .._packed_function import pack
from .._plan.session import share_of
from .._settings import Settings
from ._answer import RetryableError
from ._call import HttpCall
from ._request import check_header

__all__ = ["HttpArguments", "HttpOptions"]

_FIRST_BACKOFF: Final = 0.2
_LONGEST_BACKOFF: Final = 10.0
_LARGEST_BODY: Final = 512 * 1024 * 1024
_STATUSES: Final = range(100, 600)


class HttpArguments(TypedDict, total=False):
    """The keyword arguments that all HTTP columns share; `udfs.http_columns` says what they mean."""

    timeout: float
    capacity: int
    cluster_capacity: int | None
    buffer: int | None
    retries: int
    retry_statuses: Iterable[int]
    rate: float | None
    cache: float | None
    max_body_bytes: int
    follow_redirects: bool


@dataclass(frozen=True)
class HttpOptions:
    """Checked options.

    Args:
        headers: Sent with every request, or None.
        timeout, capacity, ...: As in `udfs.http_columns`.

    Raises:
        TypeError, ValueError: An option is out of its range; the message names it and its value, but never
            the value of a header.
    """

    headers: Mapping[str, str] | None = None
    _: KW_ONLY
    timeout: float = 30.0
    capacity: int = 100
    cluster_capacity: int | None = None
    buffer: int | None = None
    retries: int = 3
    retry_statuses: Iterable[int] = (429, 500, 502, 503, 504)
    rate: float | None = None
    cache: float | None = None
    max_body_bytes: int = 10 * 1024 * 1024
    follow_redirects: bool = False

    def __post_init__(self) -> None:
        for name, value in (self.headers or {}).items():
            check_header(name, value)
        object.__setattr__(self, "retry_statuses", _statuses(self.retry_statuses))
        _whole("retries", self.retries, 0, math.inf)
        _whole("max_body_bytes", self.max_body_bytes, 1, _LARGEST_BODY)
        _positive("rate", "calls per second", self.rate, allow_infinity=False)
        _positive("cache", "seconds", self.cache, allow_infinity=True)
        if not isinstance(self.follow_redirects, bool):
            raise TypeError(f"follow_redirects must be True or False, got {self.follow_redirects!r}")
        self.settings()  # which checks the rest
        if self.rate is not None and self.rate * self.timeout < 2:  # noqa: PLR2004 - half of the timeout
            raise ValueError(
                f"rate={self.rate} starts a call every {1 / self.rate:g} s, and waiting for its turn counts in the "
                f"timeout of {self.timeout:g} s: give a timeout of at least {2 / self.rate:g} s"
            )

    @classmethod
    def of(cls, headers: Mapping[str, str] | None, arguments: Mapping[str, Any]) -> HttpOptions:
        """The options that these keyword arguments are.

        Raises:
            TypeError: There is no option of a name; lists those that there are.
        """
        known = [each.name for each in fields(cls) if each.name != "headers"]
        for name in arguments:
            if name not in known:
                raise TypeError(f"there is no option {name!r}; there are {', '.join(known)}")
        return cls(headers, **arguments)

    def settings(self, session: Any = None) -> Settings:
        """The settings of the tasks.

        Args:
            session: Whose tasks share the `cluster_capacity`. None: nobody shares anything.
        """
        capacity = self.capacity
        if self.cluster_capacity is not None:
            capacity = 1 if session is None else share_of(self.cluster_capacity, session)
        options = Options(self.timeout, capacity=capacity, buffer=self.buffer, retry=self._retry())
        settings = Settings(pack(self._call()), options, buffer=self.buffer, on_error="column")
        return settings.with_capacity(int(min(options.capacity, self._most_at_once())))

    def _most_at_once(self) -> float:
        """More calls than this would wait for their turns for longer than their timeout has room for."""
        if self.rate is None:
            return math.inf
        turns = self.retries + 1
        return max(1.0, self.rate * self.timeout / (turns + 1))

    def _retry(self) -> RetryStrategy:
        return ExponentialBackoff(self.retries, _FIRST_BACKOFF, _LONGEST_BACKOFF, retry_on=RetryableError)

    def _call(self) -> HttpCall:
        return HttpCall(
            timeout=self.timeout,
            headers=tuple(sorted((self.headers or {}).items())),
            retry_statuses=tuple(self.retry_statuses),
            rate=self.rate,
            cache=self.cache,
            max_body_bytes=self.max_body_bytes,
            follow_redirects=self.follow_redirects,
        )


def _statuses(statuses: object) -> tuple[int, ...]:
    wanted = "retry_statuses must be HTTP statuses such as (429, 503)"
    if not isinstance(statuses, Iterable) or isinstance(statuses, str | bytes):
        raise TypeError(f"{wanted}, got {statuses!r}")
    listed = tuple(statuses)
    if not all(isinstance(each, int) and each in _STATUSES for each in listed):
        raise ValueError(f"{wanted}, got {listed!r}")
    return tuple(sorted({int(each) for each in listed}))


def _whole(name: str, value: object, least: int, most: float) -> None:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} must be a whole number, got {value!r}")
    if not least <= value <= most:
        raise ValueError(f"{name} must be at least {least} and at most {most:,}, got {value}")


def _positive(name: str, unit: str, value: object, *, allow_infinity: bool) -> None:
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{name} must be {unit} as a number, or None, got {value!r}")
    if not 0 < value < math.inf and not (allow_infinity and value == math.inf):
        raise ValueError(f"{name} must be {unit} above 0{'' if allow_infinity else ' and finite'}, got {value}")
