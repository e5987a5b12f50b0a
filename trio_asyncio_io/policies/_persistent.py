"""The persistent cache: results in a file, which the next run finds again."""

from __future__ import annotations

import math
import os
import pickle
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from threading import Thread
from typing import Any, TypeVar

import trio

from .._core.checks import check_name, check_path
from .._core.describe import describe
from ._lifetime import Lifetime, is_none
from ._name import default_name
from ._policy import Policy, Wrapped
from ._provenance import from_cache
from ._stable_key import stable_key
from ._store import Find, Keep, Store
from ._trips import Trips

__all__ = ["persistent"]

R = TypeVar("R")

# A file that takes longer to close is on a disk that hangs; its results are in it already.
CLOSE_SECONDS = 10.0


class persistent(Policy[R]):  # noqa: N801 - used like a function
    """A function that keeps its results in a file: what was paid for once is not paid for again.

    A result is in the file before `invoke` returns it, so a job that was killed and is run again makes only the
    calls that had not returned. Any number of processes of one host may use a file at once; each sees what
    the others have kept. Exceptions are not kept. Concurrent first calls with one key are all made: put
    `single_flight` inside to share those of one process.

    The file is an SQLite database, used in a thread; what concurrent invocations read and write goes there
    together. It survives the end of the process, however it ends; a power cut may take the last seconds' results.
    Damaged bytes are never taken for a result. Results are pickled, so **trust the file as you trust your
    code**: whoever can write it can run what they like in your process.

    Args:
        function: An async callable or an `AsyncFunction`.
        path: The file, on a local disk; it is made unless it is there, its directory is not. On Spark each
            worker's host has its own. Two more files, that end in -wal and -shm, lie beside it.
        name: Separates functions that share a file, and versions of one function: give another one when
            old results are no longer right. None: the qualified name of your own function, or of its class, below
            all policies, adapters and recorders; for an object, with a digest of its attributes. What another
            function could share its name with needs one: a closure, a lambda, a `partial`, a bound method, an object
            with an attribute that is not of the types below.
        ttl: Seconds for which a result is good, above 0, on the wall clock; `math.inf`: for ever. What has
            expired is dropped when the file is opened.
        key: The arguments -> what identifies the call, as below. None: the arguments themselves. They
            must be, or contain as tuples, nothing but None, bool, int, float, str, bytes, Decimal, date, datetime,
            timedelta and UUID. Keys of different type differ, as 1, 1.0 and True do, and so do 0.0 and -0.0; NaN equals
            NaN.
        negative_ttl: Seconds for which a negative result is good, at least 0; 0: it is not kept. None: as long
            as any other.
        is_negative: result -> whether it is negative. Unless given: whether it is None.

    Attributes:
        hits: Calls answered from the file.
        misses: Calls made.

    Raises:
        TypeError, ValueError: An argument is out of its range; the function needs a name; a key is of another
            type, or a result cannot be pickled.
        CacheError: The file cannot be used: it is damaged, or another program's. At `open`, or when it is found.
        RuntimeError: It was not opened. An operator opens its function; by hand, `await` its `open` and `close`.
        trio.TooSlowError: From `close`: the file was not closed within ten seconds. A thread goes on closing it.

    Cancellation: nothing is kept of a call that is cancelled. A result that is there is kept all the same, which
    takes as long as the write: milliseconds, unless others hold the file (ten seconds then, at most).

    Example:
        lookup = persistent(grouped(fetch_many), "/var/cache/weather.sqlite", name="weather 2", ttl=86_400.0)
    """

    def __init__(
        self,
        function: Wrapped[R],
        path: str | os.PathLike[str],
        *,
        name: str | None = None,
        ttl: float = math.inf,
        key: Callable[..., Hashable] | None = None,
        negative_ttl: float | None = None,
        is_negative: Callable[[R], bool] = is_none,
    ) -> None:
        path = check_path("path", path)
        name = check_name("name", name) if name is not None else default_name(function)
        options = {"path": path, "name": name, "ttl": ttl, "negative_ttl": negative_ttl, "is_negative": is_negative}
        super().__init__(function, key=key, **options)
        self._lifetime = Lifetime(ttl, negative_ttl, is_negative)
        self._store = Store(path, name)
        self._trips: Trips[Find | Keep, bytes | None] | None = None
        self.hits = 0
        self.misses = 0

    async def _open(self) -> None:
        await trio.to_thread.run_sync(self._store.open, limiter=trio.CapacityLimiter(1))
        try:
            await super()._open()
        except BaseException:
            await self._close_store()
            raise
        self._trips = Trips(self._store.answer)

    async def _close(self) -> None:
        self._trips = None
        try:
            # First, so that it takes its seconds from those that the operator gives to `close`
            await self._close_store()
        finally:
            await super()._close()

    async def invoke(self, *arguments: Any) -> R:
        """The result in the file, or that of a new call, which is in the file then."""
        if self._trips is None:
            raise RuntimeError(f"{self} is not open: an operator opens it; by hand, `await` its open() and close()")
        key = stable_key(arguments if self._key is None else self._key(*arguments))
        found = await self._found(self._trips, key)
        if found is not None:
            self.hits += 1
            from_cache.set(True)
            return found[0]
        self.misses += 1
        result: R = await self._call(*arguments)
        if seconds := self._lifetime.of(result):
            order = Keep(key, _pickled(result), seconds)
            with trio.CancelScope(shield=True):  # it is paid for
                await self._trips.ask(order)
        return result

    async def _found(self, trips: Trips[Find | Keep, bytes | None], key: bytes) -> tuple[R] | None:
        with self._on_the_way():
            payload = await trips.ask(Find(key))
        return None if payload is None else _unpickled(payload)

    async def _close_store(self) -> None:
        # With a limiter of its own: Trio's default one may be held by threads that run on after their cancellation
        limiter = trio.CapacityLimiter(1)
        with trio.CancelScope(shield=True):
            await trio.to_thread.run_sync(_close_within, self._store, CLOSE_SECONDS, limiter=limiter)


def _close_within(store: Store, seconds: float) -> None:
    """Close the file, or leave that to a thread. By the wall clock: a disk does not know a virtual one."""
    outcome: Future[None] = Future()

    def close() -> None:
        try:
            store.close()
            outcome.set_result(None)
        except BaseException as error:  # noqa: BLE001 - it is raised below
            outcome.set_exception(error)

    Thread(target=close, name="trio_asyncio_io cache file", daemon=True).start()
    try:
        outcome.result(seconds)
    except TimeoutError:
        raise trio.TooSlowError(f"the cache file was not closed within {seconds:g} s") from None


def _pickled(result: object) -> bytes:
    try:
        return pickle.dumps(result, protocol=5)
    except Exception as error:
        raise TypeError(
            f"persistent cannot keep {describe(result)}: {error}. Let the function return plain values"
        ) from error


def _unpickled(payload: bytes) -> tuple[Any] | None:
    try:
        return (pickle.loads(payload),)  # noqa: S301 - the docstring says whom to trust
    except Exception:  # noqa: BLE001 - of a class that is gone, or has changed: no answer any more
        return None
