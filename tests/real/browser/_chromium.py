"""Chromium without a window, controlled over a pipe by the DevTools protocol, which needs no further package."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
)


def program() -> str | None:
    """The path of Chromium; None if it is not on PATH."""
    return next(filter(None, map(shutil.which, PROGRAMS)), None)


# In CI, a browser that is missing is a failure: the fixture or the test starts it
NEEDS_CHROMIUM = pytest.mark.skipif(
    program() is None and "CI" not in os.environ,
    reason="no Chromium on PATH: install the package chromium to run this",
)


class Chromium:
    """One page of a running Chromium.

    Attributes:
        requests: The URLs that the page has requested.
        problems: Exceptions of scripts, and errors in the log of the page.
    """

    def __init__(self, commands: int, replies: int) -> None:
        self._commands = commands
        self._replies = os.fdopen(replies, "rb")
        self._unread = b""
        self._number = 0
        self._session: str | None = None
        self._is_loaded = False  # the event may come before the reply to the command
        self.requests: list[str] = []
        self.problems: list[str] = []

    def open(self) -> None:
        """Open an empty page."""
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Runtime", "Log"):
            self.send(f"{domain}.enable")

    def show(self, page: Path, *, width: int, scheme: str, query: str = "") -> None:
        """Load a page and wait until it is loaded."""
        self.requests.clear()
        self.problems.clear()
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        self.send("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self._is_loaded = False
        self.send("Page.navigate", url=page.as_uri() + query)
        while not self._is_loaded:
            self._receive()

    def evaluate(self, script: str) -> Any:
        """The value of a JavaScript expression in the page."""
        reply = self.send("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in reply, reply
        return reply["result"].get("value")

    def send(self, method: str, **arguments: Any) -> dict[str, Any]:
        """Send a command and wait for its result."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": arguments}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        while (reply := self._receive()).get("id") != self._number:
            pass
        assert "error" not in reply, (method, reply)
        return reply["result"]

    def _receive(self) -> dict[str, Any]:
        while b"\0" not in self._unread:
            read = self._replies.read1(1 << 16)
            assert read, "Chromium has ended"
            self._unread += read
        message, _, self._unread = self._unread.partition(b"\0")
        found: dict[str, Any] = json.loads(message)
        self._note(found.get("method"), found.get("params", {}))
        return found

    def _note(self, method: str | None, arguments: dict[str, Any]) -> None:
        if method == "Network.requestWillBeSent":
            self.requests.append(arguments["request"]["url"])
        elif method == "Page.loadEventFired":
            self._is_loaded = True
        elif method == "Runtime.exceptionThrown":
            self.problems.append(json.dumps(arguments["exceptionDetails"]))
        elif method == "Log.entryAdded":
            self.problems.append(arguments["entry"]["text"])


@contextmanager
def chromium(executable: str, profile: Path) -> Iterator[Chromium]:
    """Start Chromium, and end it afterwards. It reads commands from descriptor 3 and writes replies to 4."""
    read_commands, commands = os.pipe()
    replies, write_replies = os.pipe()
    redirect = f'exec "$0" "$@" 3<&{read_commands} 4>&{write_replies}'
    process = subprocess.Popen(
        ["/bin/bash", "-c", redirect, executable, *OPTIONS, f"--user-data-dir={profile}", "about:blank"],
        pass_fds=(read_commands, write_replies),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(read_commands)
    os.close(write_replies)
    page = Chromium(commands, replies)
    try:
        page.open()
        yield page
        page._session = None
        page.send("Browser.close")
        process.wait(60)
    finally:
        process.kill()
        process.wait()
        os.close(commands)
        page._replies.close()
