"""A service on loopback that counts its calls, for the tests with a real Spark."""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from functools import partial
from typing import Any

import trio

from tests.support import PATIENCE
from trio_asyncio_io import AsyncFunction


class Client:
    """Calls the service. Can be sent to a worker."""

    def __init__(self, port: int) -> None:
        self.port = port

    async def connect(self) -> trio.SocketStream:
        return await trio.open_tcp_stream("127.0.0.1", self.port)

    async def ask(self, question: object) -> str:
        """The answer, over a connection for this call."""
        async with await self.connect() as stream:
            return await self.ask_on(stream, question)

    async def ask_on(self, stream: trio.SocketStream, question: object) -> str:
        """The answer, over this connection."""
        await stream.send_all(f"{question}\n".encode())
        answer = b""
        while not answer.endswith(b"\n"):
            data = await stream.receive_some()
            if not data:
                raise ConnectionError("the service hung up")
            answer += data
        return answer.decode().rstrip("\n")


class Connected(AsyncFunction[int, str]):
    """Returns the answer and the id of the process. `open` runs once per process, and asks, too."""

    def __init__(self, client: Client) -> None:
        self.client = client

    async def open(self) -> None:
        await self.client.ask(f"opened in {os.getpid()}")

    async def invoke(self, number: int) -> str:  # type: ignore[override]
        return f"{await self.client.ask(number)} in {os.getpid()}"


def check_connected(rows: Collection[Any], count: int, calls: list[str]) -> None:
    """The numbers below the count have their answers from `Connected`, with one call each, and one for each process."""
    answers = [(row.id, *row.answer.split(" in ")) for row in rows]
    assert sorted((number, answer) for number, answer, _ in answers) == [(n, str(n)) for n in range(count)]
    opened = [f"opened in {process}" for process in {process for _, _, process in answers}]
    assert Counter(calls) == Counter([*map(str, range(count)), *opened])


class Service:
    """Answers each question with the question itself, or with `answer`, and counts the calls.

    Attributes:
        answer: async question -> answer. Runs in the loop of the service.
        calls: The questions, in order of arrival.
        running, peak_running: The number of calls that run now, and its maximum so far.
        connections, connected: The number of connections so far, and of those that are open now.
        hung_up: Questions whose connections were closed before the answer.
    """

    def __init__(self) -> None:
        self.answer: Callable[[str], Awaitable[str]] = _echo
        self.calls: list[str] = []
        self.running = self.peak_running = self.connections = self.connected = 0
        self.hung_up: list[str] = []
        self._changed = threading.Condition()
        self._news = trio.Event()
        self._thread = threading.Thread(target=trio.run, args=(self._main,), name="service")
        self._thread.start()
        self.wait_until(lambda: hasattr(self, "client"))

    def wait_until(self, predicate: Callable[[], bool]) -> None:
        """Return as soon as the predicate is true. Fail if it never is."""
        with self._changed:
            assert self._changed.wait_for(predicate, PATIENCE), vars(self)

    def hold(self) -> Callable[[], None]:
        """Leave all calls unanswered until the returned function is called."""
        released = trio.Event()

        async def hold(question: str) -> str:
            await released.wait()
            return question

        self.answer = hold
        return lambda: self._token.run_sync_soon(released.set)

    async def until(self, predicate: Callable[[], bool]) -> None:
        """Like `wait_until`, for an `answer`."""
        while not predicate():
            await self._news.wait()

    def stop(self) -> None:
        self._token.run_sync_soon(self._scope.cancel)
        self._thread.join(PATIENCE)

    async def _main(self) -> None:
        self._token = trio.lowlevel.current_trio_token()
        with trio.CancelScope() as self._scope:
            async with trio.open_nursery() as nursery:
                listeners = await nursery.start(partial(trio.serve_tcp, self._serve, 0, host="127.0.0.1"))
                self._change(client=Client(listeners[0].socket.getsockname()[1]))

    async def _serve(self, stream: trio.SocketStream) -> None:
        self._change(connections=self.connections + 1, connected=self.connected + 1)
        try:
            async for question in _questions(stream):
                self.calls.append(question)
                self._change(running=self.running + 1, peak_running=max(self.peak_running, self.running + 1))
                try:
                    answer = await self._answer(stream, question)
                finally:
                    # Before the answer is sent: its receiver may call again at once
                    self._change(running=self.running - 1)
                if answer is not None:
                    await stream.send_all(f"{answer}\n".encode())
        except trio.BrokenResourceError:
            pass
        finally:
            self._change(connected=self.connected - 1)

    async def _answer(self, stream: trio.SocketStream, question: str) -> str | None:
        """The answer, or None if the client hung up."""
        answer = None
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._watch, stream, question, nursery.cancel_scope)
            answer = await self.answer(question)
            nursery.cancel_scope.cancel()
        return answer

    async def _watch(self, stream: trio.SocketStream, question: str, answering: trio.CancelScope) -> None:
        try:
            await stream.receive_some()
        except trio.BrokenResourceError:
            pass
        self._change(hung_up=[*self.hung_up, question])
        answering.cancel()

    def _change(self, **values: Any) -> None:
        with self._changed:
            vars(self).update(values)
            self._changed.notify_all()
        self._news.set()
        self._news = trio.Event()

    client: Client


async def _echo(question: str) -> str:
    return question


async def _questions(stream: trio.SocketStream) -> AsyncIterator[str]:
    buffered = b""
    while data := await stream.receive_some():
        *lines, buffered = (buffered + data).split(b"\n")
        for line in lines:
            yield line.decode()
