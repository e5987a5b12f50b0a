"""The Trio loop of a Python worker, in a thread of its own, and the functions that are open in it.

The tasks of a process share the loop and the opened functions, whether they run at once or one after another. These
outlive the tasks, so the next task or micro-batch reuses open connections.
"""

from __future__ import annotations

import logging
import os
import socket
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import Future
from contextlib import asynccontextmanager, suppress
from functools import partial
from math import inf
from types import FrameType
from typing import Any, ClassVar
from weakref import WeakValueDictionary

import trio

from trio_asyncio_io import lingering, shared
from trio_asyncio_io.blocking import BlockedLoop

from .._sent.function import PackedFunction
from .._tracebacks import is_user_frame

# Spark ends a worker process that has been idle for a minute. Functions are closed before that.
IDLE_SECONDS = 45.0

# Python's default of 5 ms would delay the loop while Spark's thread converts Arrow data.
SWITCH_SECONDS = 0.0005

# A host whose name server does not answer keeps a thread for about ten seconds, even if its call is cancelled
RESOLVER_THREADS = 200

logger = logging.getLogger("udfs")


class Runtime:
    """The loop of this process. `Runtime.current()` starts it, and it runs until the process ends.

    Do not start it at import: Spark's daemon forks workers, and a fork does not copy threads.

    Raises:
        RuntimeError: The loop cannot start.
    """

    _of_process: ClassVar[dict[int, Runtime]] = {}
    _starting = threading.Lock()

    def __init__(self) -> None:
        self._started = Future[None]()
        self._functions: WeakValueDictionary[str, shared[Any]] = WeakValueDictionary()  # in use or idle, by digest
        self._unpacking = trio.CapacityLimiter(inf)  # not that of the functions themselves
        self._death_watch: set[Callable[[BaseException], None]] = set()
        try:
            threading.Thread(target=self._run, name="udfs-trio", daemon=True).start()
            self._started.result()
        except Exception as error:
            raise RuntimeError(
                f"this worker cannot start the loop that makes the calls ({type(error).__name__}: {error}): raise the "
                "worker's limit that the error names, such as that of open files"
            ) from error

    @classmethod
    def current(cls) -> Runtime:
        """The runtime of this process. Starts it if necessary."""
        with cls._starting:
            runtime = cls._of_process.get(os.getpid())
            if runtime is None:
                runtime = cls._of_process[os.getpid()] = cls()
            return runtime

    def start(self, work: Callable[[], Awaitable[None]], on_death: Callable[[BaseException], None]) -> None:
        """Run `work` in the loop.

        Args:
            work: An async callable that does not raise.
            on_death: Called in the loop's thread with the exception that ends the loop, if that happens before the end
                of `work`.
        """

        async def watched() -> None:
            await work()
            self._death_watch.discard(on_death)

        self._death_watch.add(on_death)
        self._token.run_sync_soon(lambda: self._nursery.start_soon(watched))

    def soon(self, call: Callable[[], object]) -> None:
        """Schedule a call in the loop, from any thread. After the death of the loop, this has no effect."""
        try:
            self._token.run_sync_soon(call)
        except trio.RunFinishedError:
            pass

    @asynccontextmanager
    async def opened(self, packed: PackedFunction, open_timeout: float) -> AsyncIterator[Any]:
        """The instance of the function that all tasks of the process share. It stays open for a while after the block.

        Args:
            packed: The function.
            open_timeout: The time limit of its `open`, in seconds.

        Raises:
            TimeoutError: `open` exceeded its time limit.
        """
        resource = self._functions.get(packed.digest)
        if resource is None:
            # In a thread, because that imports the modules of the function, which may take seconds
            unpacked = await trio.to_thread.run_sync(packed.unpack, limiter=self._unpacking)
            made = shared(
                f"{packed.name} {packed.digest[:8]}", partial(_opened, unpacked, packed.name), open_timeout=open_timeout
            )
            resource = self._functions.setdefault(packed.digest, made)  # another task may have been faster
        function = await resource.__aenter__()
        try:
            yield function
        finally:
            with lingering(IDLE_SECONDS):  # not in the block, where each row would pay for a context variable
                await resource.__aexit__()

    def _run(self) -> None:
        sys.setswitchinterval(SWITCH_SECONDS)
        try:
            trio.run(self._main, instruments=[BlockedWorker()])
        except BaseException as error:  # noqa: BLE001 - each waiting task gets the exception
            if not self._started.done():
                self._started.set_exception(error)
                return
            self._of_process.pop(os.getpid(), None)
            for on_death in list(self._death_watch):
                on_death(error)

    async def _main(self) -> None:
        self._token = trio.lowlevel.current_trio_token()
        trio.socket.set_custom_hostname_resolver(Resolver())
        async with trio.open_nursery() as self._nursery:
            self._started.set_result(None)
            await trio.sleep_forever()


@asynccontextmanager
async def _opened(function: Any, name: str) -> AsyncIterator[Any]:
    """The function, open during the block."""
    if hasattr(function, "open"):
        try:
            await function.open()
        except Exception as error:
            with suppress(Exception):  # the exception may be frozen
                error.add_note(f"raised by open() of {name}, before its first call")
            raise
    try:
        yield function
    finally:
        if hasattr(function, "close"):
            await function.close()


class Resolver(trio.abc.HostnameResolver):
    """Resolves names as Trio does, in threads of its own: Trio's may all be in use, for example by functions."""

    def __init__(self) -> None:
        self._threads = trio.CapacityLimiter(RESOLVER_THREADS)

    async def getaddrinfo(self, *arguments: Any, **options: Any) -> Any:
        """See `socket.getaddrinfo`."""
        return await self._in_thread(partial(socket.getaddrinfo, *arguments, **options))

    async def getnameinfo(self, *arguments: Any, **options: Any) -> Any:
        """See `socket.getnameinfo`."""
        return await self._in_thread(partial(socket.getnameinfo, *arguments, **options))

    async def _in_thread(self, look_up: Callable[[], Any]) -> Any:
        return await trio.to_thread.run_sync(look_up, abandon_on_cancel=True, limiter=self._threads)


class BlockedWorker(BlockedLoop):
    """Logs a warning when a function blocks the loop of this worker.

    Runs where: the hooks in the loop's thread, once per scheduler pass; the sampling in a daemon thread, which does not
    poll while the loop is idle.
    """

    def __init__(self) -> None:
        super().__init__(logger=logger)

    def is_user_frame(self, frame: FrameType) -> bool:
        """Whether the code belongs neither to this project nor to the libraries that it runs on."""
        return is_user_frame(frame)
