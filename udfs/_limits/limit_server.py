"""A thread on the driver that grants tokens, and leases budgets, to the processes of its application, over TCP."""

from __future__ import annotations

import atexit
import os
import secrets
import socket
import sqlite3
import threading
import time
import weakref
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import trio

from .budgets import FORGOTTEN_SECONDS, BudgetRequest, BudgetSource, check_file, grant_from_file
from .cluster_limits import ClusterBudget, ClusterRate
from .rates import TokenRequest, TokenSource
from .signed_lines import SignedLines

POLL_SECONDS = 0.2
LOGIN_SECONDS = 5.0
IDLE_SECONDS = 30.0  # more than that of a worker, so that only connections to dead machines are closed here
MAX_CLIENTS = 800  # Linux allows a process 1,024 files by default, and the driver has others
MAX_STRANGERS = 64
MAX_NAMES = 1_000  # of rates that are remembered

# Budgets without a name that are remembered in any case. A query that builds one for each micro-batch leaves it behind
MAX_UNNAMED = 1_000

OTHER_AMOUNT = "change it in the next application, with the same name and path; a budget with another name adds to it"


@dataclass(slots=True, kw_only=True)
class _Budget:
    """A budget that is leased.

    Args:
        amount, path: See `ClusterBudget`; the path is absolute.
        given: The user's object, as long as it is alive.
        used: The latest instant at which a query was built with it, or a lease was requested.
        is_named: Whether the user has given it a name. It is then kept until the application ends.
        source: Its leases.
    """

    amount: float
    path: str | None
    given: weakref.ref[ClusterBudget]
    used: float
    is_named: bool
    source: BudgetSource = field(default_factory=BudgetSource)

    def is_unused(self, now: float) -> bool:
        """Whether nobody can use it in a new query, and nothing has used it for as long as leases are kept."""
        return self.given() is None and self.used < now - FORGOTTEN_SECONDS


class LimitServer:
    """Listens until it is closed or its application is over.

    A client must know the secret. One that has not yet proved it is a stranger. It has `LOGIN_SECONDS` to do so, and if
    there are more than `MAX_STRANGERS`, the oldest one is disconnected.

    A thread that has died is replaced when the next port is requested. The new one has the same secret and ports, so
    tasks that run continue. It remembers no rate, so its source begins as after any loss of memory. Budgets are kept.
    If more than `MAX_UNNAMED` have no name, the unused ones among them are forgotten.

    Args:
        host: The address to listen on.
        is_over: Whether the application is over. Called in the thread, several times a second.

    Attributes:
        secret: For clients.
    """

    def __init__(self, host: str, is_over: Callable[[], bool]) -> None:
        self.secret = secrets.token_hex(32)
        self._host = host
        self._is_over = is_over
        self._ports: set[int] = set()
        self._thread: threading.Thread | None = None
        self._rates: dict[str, float] = {}
        self._budgets: dict[str | None, _Budget] = {}
        atexit.register(self.close)

    def listen(self, port: int | None = None) -> int:
        """Listen on this port too, and return its number.

        Args:
            port: None: one that the server listens on already, or any free one.

        Raises:
            OSError: It cannot listen on this port of its address.
            RuntimeError: Its thread cannot start.
        """
        if not self.is_running:
            self._start()
        wanted = next(iter(self._ports), 0) if port is None else port
        if wanted in self._ports:
            return wanted
        listener = _listening(self._host, wanted)
        listening: int = listener.getsockname()[1]
        self._trio_token.run_sync_soon(self._accept, listener)
        self._ports.add(listening)
        return listening

    def add(self, given: ClusterRate | ClusterBudget) -> None:
        """Lease this limit too.

        Raises:
            OSError: The file of a budget cannot be used.
            ValueError: Its name has another rate, or another amount or file.
        """
        if isinstance(given, ClusterRate):
            self._add_rate(given)
        else:
            self._add_budget(given)

    def _add_rate(self, given: ClusterRate) -> None:
        rate = self._rates.pop(given.name, given.rate)
        self._rates[given.name] = rate
        if rate != given.rate:
            raise ValueError(
                f"the cluster_rate named {given.name!r} is {rate:g} calls per second in this session, got "
                f"{given.rate:g}: give the other rate another name"
            )
        if len(self._rates) > MAX_NAMES:
            del self._rates[next(iter(self._rates))]

    def _add_budget(self, given: ClusterBudget) -> None:
        path = None if given.path is None else os.path.abspath(Path(given.path).expanduser())  # noqa: PTH100 - a text
        if path is not None:
            check_file(path)
        now = time.monotonic()
        new = _Budget(amount=given.amount, path=path, given=weakref.ref(given), used=now, is_named=given.is_named)
        known = self._budgets.setdefault(given.name, new)
        if (known.amount, known.path) != (new.amount, new.path):
            remedy = OTHER_AMOUNT if path is not None and path == known.path else "give the other budget another name"
            raise ValueError(
                f"the cluster_budget named {given.name!r} has amount={known.amount:g} and path={known.path!r} in this "
                f"session, got amount={new.amount:g} and path={new.path!r}: {remedy}"
            )
        known.given, known.used = new.given, now
        self._forget_unnamed(now)

    def _forget_unnamed(self, now: float) -> None:
        unnamed = [name for name, each in self._budgets.items() if not each.is_named]
        for name in unnamed[: max(0, len(unnamed) - MAX_UNNAMED)]:
            if self._budgets[name].is_unused(now):
                del self._budgets[name]

    @property
    def is_running(self) -> bool:
        """Whether its thread is alive."""
        return self._thread is not None and self._thread.is_alive()

    def close(self) -> None:
        """End the thread. Wait until it has ended."""
        atexit.unregister(self.close)
        if self._thread is not None:
            with suppress(trio.RunFinishedError):
                self._trio_token.run_sync_soon(self._nursery.cancel_scope.cancel)
            self._thread.join()

    def _start(self) -> None:
        started = Future[None]()
        thread = threading.Thread(target=self._run, args=(started,), name="udfs-limits", daemon=True)
        try:
            thread.start()
            started.result()
        except Exception as error:
            raise RuntimeError(
                f"the driver cannot start the thread that leases its limits ({type(error).__name__}: {error}): free "
                "what the error names, such as open files, and build the query again"
            ) from error
        self._thread = thread
        ports, self._ports = self._ports, set()
        for port in ports:
            with suppress(OSError):  # another program has taken it meanwhile
                self.listen(port)

    def _run(self, started: Future[None]) -> None:
        try:
            trio.run(self._main, started)
        except BaseException as error:
            if started.done():
                raise
            started.set_exception(error)

    async def _main(self, started: Future[None]) -> None:
        self._trio_token = trio.lowlevel.current_trio_token()
        self._token_source = TokenSource(secrets.token_hex(8), time.monotonic())
        self._threads = defaultdict[str, trio.CapacityLimiter](lambda: trio.CapacityLimiter(1))
        self._strangers: dict[trio.CancelScope, None] = {}
        self._clients = 0
        async with trio.open_nursery() as self._nursery:
            started.set_result(None)
            while not self._is_over():  # noqa: ASYNC110 - Spark sets no event
                await trio.sleep(POLL_SECONDS)
            self._nursery.cancel_scope.cancel()

    def _accept(self, listener: socket.socket) -> None:
        opened = trio.SocketListener(trio.socket.from_stdlib_socket(listener))
        self._nursery.start_soon(trio.serve_listeners, self._serve, [opened])

    async def _serve(self, stream: trio.SocketStream) -> None:
        with suppress(Exception):  # the client is gone, or is none of ours
            lines = SignedLines(stream, self.secret)
            request = await self._first_request(lines)
            if self._clients >= MAX_CLIENTS:
                await lines.send(
                    {
                        "refused": f"the driver is connected to {MAX_CLIENTS} worker processes, its upper limit",
                        "advice": 'Run fewer tasks at once, or lease from a Redis: by="redis://host:6379/0"',
                    }
                )
                return
            self._clients += 1
            try:
                while True:
                    await lines.send(await self._grant(request))
                    with trio.fail_after(IDLE_SECONDS):
                        request = _request(await lines.receive())
            finally:
                self._clients -= 1

    async def _grant(self, request: TokenRequest | BudgetRequest) -> dict[str, Any]:
        """The fields of a grant, or those of a `GrantRefusedError`."""
        now = time.monotonic()
        if isinstance(request, TokenRequest):
            return asdict(self._token_source.grant(now, request))
        budget = self._budgets.get(request.name)
        if budget is None:
            return {
                "refused": f"the driver has forgotten the budget {request.name!r}, which nothing used for "
                f"{FORGOTTEN_SECONDS / 3600:g} h",
                "advice": "Build the query again, or give the ClusterBudget a name: named budgets are kept",
            }
        budget.used = now
        if budget.path is None:
            return asdict(budget.source.grant(now, request))
        try:
            # One thread for each file, because a thread may wait long for a locked one
            arguments = budget.source, budget.path, now, request
            thread = self._threads[budget.path]
            return asdict(await trio.to_thread.run_sync(grant_from_file, *arguments, limiter=thread))
        except sqlite3.Error as error:
            return {
                "refused": f"the driver cannot use path={budget.path!r} ({error})",
                "advice": "Check that this file and its folder exist and can be written, and the space on their disk",
            }

    async def _first_request(self, lines: SignedLines) -> TokenRequest | BudgetRequest:
        """The first request, which proves that the client knows the secret.

        Raises:
            trio.TooSlowError: It has not come in time, or there are too many strangers.
        """
        with trio.fail_after(LOGIN_SECONDS) as scope:
            self._strangers[scope] = None
            if len(self._strangers) > MAX_STRANGERS:
                oldest = next(iter(self._strangers))
                del self._strangers[oldest]
                oldest.cancel()
            try:
                await lines.accept()
                return _request(await lines.receive())
            finally:
                self._strangers.pop(scope, None)


def _request(values: dict[str, Any]) -> TokenRequest | BudgetRequest:
    return BudgetRequest(**values) if "holder" in values else TokenRequest(**values)


def _listening(host: str, port: int) -> socket.socket:
    """A socket that listens. Not with Trio, because the caller's thread may run Trio already."""
    family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    return socket.create_server(address[:2], family=family)
