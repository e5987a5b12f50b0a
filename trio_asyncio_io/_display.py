"""The display: where a line of progress is shown, and how often. Needs rich."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from typing import Protocol, TextIO

from rich.console import Console
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

__all__ = ["Display", "display_on"]

_LEAST_BAR, _MOST_BAR = 10, 40


class Display(Protocol):
    """What shows a line.

    Attributes:
        interval: Seconds between two lines.
    """

    interval: float

    def show(self, line: str, done: int, total: int | None) -> None:
        """Show the line in place of the last one; `done` of `total` is for a bar."""

    def close(self, line: str) -> None:
        """Take the line away, restore the terminal and leave this one for good."""


def display_on(console: Console | None) -> Display:
    """A display on the console; None: on standard error."""
    if console is None:
        # A FORCE_COLOR wants colours; it does not make a terminal of a file
        console = Console(stderr=True, force_interactive=None if _is_terminal(sys.stderr) else False)
    is_live = find_spec("ipywidgets") is not None if console.is_jupyter else console.is_interactive
    return _LiveLine(console) if is_live else _Log(console)


class _LiveLine:
    """One line that changes in its place, in a terminal or a notebook."""

    interval = 0.25

    def __init__(self, console: Console) -> None:
        self._console = console
        # What is printed meanwhile goes above the line, but never to another place than without it
        self._live = Live(
            console=console,
            auto_refresh=False,
            transient=True,
            redirect_stdout=_is_terminal(sys.stdout),
            redirect_stderr=_is_terminal(sys.stderr),
        )
        self._live.start()

    def show(self, line: str, done: int, total: int | None) -> None:
        grid = Table.grid(padding=(0, 2, 0, 0))
        width = min(self._console.width - len(line) - 2, _MOST_BAR)
        if total and width >= _LEAST_BAR:
            grid.add_row(Text(line), ProgressBar(total, done, width=width))
        else:
            grid.add_row(Text(line))
        self._live.update(grid, refresh=True)

    def close(self, line: str) -> None:
        self._live.stop()
        _print(self._console, line)


class _Log:
    """A line now and then, in a file."""

    interval = 30.0

    def __init__(self, console: Console) -> None:
        self._console = console

    def show(self, line: str, done: int, total: int | None) -> None:  # noqa: ARG002 - a file has no bar
        _print(self._console, line)

    def close(self, line: str) -> None:
        _print(self._console, line)


def _print(console: Console, line: str) -> None:
    console.print(line, soft_wrap=True, highlight=False, markup=False, emoji=False)


def _is_terminal(stream: TextIO | None) -> bool:
    return stream is not None and stream.isatty()
