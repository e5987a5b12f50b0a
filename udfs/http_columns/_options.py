"""HttpOptions: the options of HTTP columns, checked on the driver, and the settings of the tasks."""

from __future__ import annotations

import math
import os
import ssl
from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass, field, fields, replace
from operator import attrgetter
from typing import Any, Final, Literal, TypedDict

from trio_asyncio_io import ExponentialBackoff, RetryStrategy
from trio_asyncio_io.gates import Auto, Gate, PerKey
from trio_asyncio_io.integration import check_bool, check_int, check_number

from .._limits.cluster_limits import ClusterBudget, ClusterRate, as_cluster_rates
from .._plan.arguments import UDFArguments, for_session, make_settings
from .._sent.function import dumped
from .._sent.settings import Settings
from ._call import HttpCall
from ._headers import CommonHeaders, HeaderSource, checked, is_function
from ._hosts import host_rules
from ._outcome import HostCapacity, RetryableError
from ._requests import TextPairs

_FIRST_BACKOFF: Final = 0.2
_LONGEST_BACKOFF: Final = 10.0
_MAX_BODY_BYTES: Final = 512 * 1024 * 1024
_STATUSES: Final = range(100, 600)


class HttpArguments(TypedDict, total=False):
    """The keyword arguments of all HTTP columns; `http_request` describes them."""

    timeout: float
    capacity: int | Auto | Literal["auto"]
    cluster_capacity: int | None
    cluster_rate: float | ClusterRate | None
    cluster_budget: ClusterBudget | None
    buffer: int | None
    buffer_bytes: int
    retries: int
    retry_statuses: Iterable[int]
    rate: float | None
    per_host: Gate | Sequence[Gate] | None
    cache: float | None
    max_body_bytes: int
    follow_redirects: bool
    allowed_hosts: Iterable[str] | None
    only_public: bool
    verify: bool | str | os.PathLike[str]
    trust_env: bool


@dataclass(frozen=True)
class HttpOptions:
    """Checked options.

    Args:
        headers: Sent with every request: a mapping, or a function that returns one; or None.
        timeout, capacity, ...: As for `http_request`.

    Raises:
        TypeError, ValueError: An option is out of its range. The message names it and its value, but never the value
            of a header.
    """

    headers: CommonHeaders | None = field(default=None, repr=False)
    _: KW_ONLY
    timeout: float = 30.0
    capacity: int | Auto | Literal["auto"] = "auto"
    cluster_capacity: int | None = None
    cluster_rate: float | ClusterRate | None = None
    cluster_budget: ClusterBudget | None = None
    buffer: int | None = None
    buffer_bytes: int = 64 * 1024 * 1024
    retries: int = 3
    retry_statuses: Iterable[int] = (429, 500, 502, 503, 504)
    rate: float | None = None
    per_host: Gate | Sequence[Gate] | None = None
    cache: float | None = None
    max_body_bytes: int = 10 * 1024 * 1024
    follow_redirects: bool = False
    allowed_hosts: Iterable[str] | None = None
    only_public: bool = False
    verify: bool | str | os.PathLike[str] = True
    trust_env: bool = False
    _settings: Settings = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "headers", _headers(self.headers))
        object.__setattr__(self, "retry_statuses", _statuses(self.retry_statuses))
        check_int("retries", self.retries, at_least=0)
        check_int("max_body_bytes", self.max_body_bytes, at_least=1, at_most=_MAX_BODY_BYTES)
        if self.rate is not None:
            legal, noun = "calls per second above 0 and finite", "calls per second as a number, or None"
            check_number("rate", self.rate, legal, lambda number: 0 < number < math.inf, noun=noun)
        if self.cache is not None:
            check_number("cache", self.cache, "seconds above 0", lambda s: s > 0, noun="seconds as a number, or None")
        for name in ("follow_redirects", "only_public", "trust_env"):
            check_bool(name, getattr(self, name))
        object.__setattr__(self, "verify", _verify(self.verify))
        if self.only_public and self.trust_env:
            raise ValueError(
                "only_public and trust_env do not fit together, because a proxy resolves the hosts itself: "
                "leave one out, and give certificates as verify="
            )
        object.__setattr__(self, "allowed_hosts", host_rules(self.allowed_hosts))
        if any(rate.weight is not None for rate in as_cluster_rates(self.cluster_rate)):
            raise ValueError("cluster_rate must have no weight in an HTTP column: omit weight=")
        if getattr(self.cluster_budget, "weight", None) is not None:
            raise ValueError(
                "cluster_budget must have no weight in an HTTP column: omit weight=, each attempt weighs 1"
            )
        _check_gates(self.per_host)
        object.__setattr__(self, "_settings", make_settings(self._call(), self.timeout, self._arguments()))
        if self.rate is not None and self.rate * self.timeout < 2:  # noqa: PLR2004 - half of the timeout
            raise ValueError(
                f"rate={self.rate} starts a call every {1 / self.rate:g} s, and the wait for its start counts towards "
                f"the timeout of {self.timeout:g} s: give a timeout of at least {2 / self.rate:g} s"
            )

    def settings(self, session: Any = None) -> Settings:
        """Return the settings of the tasks.

        Args:
            session: The session whose tasks share the `cluster_capacity`, the `cluster_rate` and the `cluster_budget`.
                None: the capacity is 1 if it is shared, and there is no such rate or budget.
        """
        settings = self._settings
        if session is not None:
            settings = for_session(settings, self.cluster_capacity, self.cluster_rate, self.cluster_budget, session)
        return self._with_gates(settings, int(min(settings.options.capacity, self._useful_capacity())))

    def _with_gates(self, settings: Settings, most: int) -> Settings:
        """Return the settings with this capacity, and the gates of each host."""
        auto = self._auto or Auto(most, most)
        others = (self.per_host,) if isinstance(self.per_host, Gate) else self.per_host or ()
        gate = PerKey((HostCapacity.of(auto.up_to(most)), *others), key=attrgetter("origin"))
        return replace(settings, options=replace(settings.options, capacity=most, buffer=settings.buffer, gate=gate))

    @property
    def _auto(self) -> Auto | None:
        """The gate that finds the capacity of a host, or None if the capacity is a number."""
        if isinstance(self.capacity, Auto):
            return self.capacity
        return Auto() if self.capacity == "auto" and self.cluster_capacity is None else None

    def _arguments(self) -> UDFArguments:
        return {
            **self._capacity(),
            "cluster_capacity": self.cluster_capacity,
            "cluster_budget": self.cluster_budget,
            "buffer": self.buffer,
            "buffer_bytes": self.buffer_bytes,
            "retry": self._retry(),
            "on_error": "column",
            "skip_nulls": True,
        }

    def _capacity(self) -> UDFArguments:
        """The capacity as a number, unless the cluster has one."""
        if self._auto is not None:
            return {"capacity": self._auto.most}
        return {} if self.capacity == "auto" else {"capacity": self.capacity}

    def _useful_capacity(self) -> float:
        """Return the capacity above which the rate would let calls wait for longer than their timeout allows.

        With this capacity, each attempt waits for an equal share of the timeout, and one share is left for the calls.
        """
        if self.rate is None:
            return math.inf
        attempts = self.retries + 1
        return max(1.0, self.rate * self.timeout / (attempts + 1))

    def _retry(self) -> RetryStrategy:
        return ExponentialBackoff(self.retries, _FIRST_BACKOFF, _LONGEST_BACKOFF, retry_on=RetryableError)

    def _call(self) -> HttpCall:
        return HttpCall(**{each.name: getattr(self, each.name) for each in fields(HttpCall)})


def _headers(given: Any) -> TextPairs | HeaderSource:
    if not is_function(given):
        return checked(given or {})
    dumped(given, "headers")
    return HeaderSource(given)


def _verify(given: Any) -> bool | str:
    if isinstance(given, bool):
        return given
    if isinstance(given, str | os.PathLike):
        return os.fspath(given)
    advice = "" if not isinstance(given, ssl.SSLContext) else ", which cannot be sent to the workers: give a path"
    raise TypeError(
        "verify must be True, False or the path of a file or directory of certificates on the workers, got "
        f"{given!r}{advice}"
    )


def _statuses(statuses: object) -> tuple[int, ...]:
    rule = "retry_statuses must be HTTP statuses such as (429, 503)"
    if not isinstance(statuses, Iterable) or isinstance(statuses, str | bytes):
        raise TypeError(f"{rule}, got {statuses!r}")
    listed = tuple(statuses)
    if not all(isinstance(status, int) and status in _STATUSES for status in listed):
        raise ValueError(f"{rule}, got {listed!r}")
    return tuple(sorted({int(status) for status in listed}))


def _check_gates(gates: object) -> None:
    is_list = isinstance(gates, Sequence) and gates and all(isinstance(each, Gate) for each in gates)
    if not (gates is None or isinstance(gates, Gate) or is_list):
        raise TypeError(f"per_host must be a Gate, a list of gates or None, got {gates!r}")
    dumped(gates, "per_host")
