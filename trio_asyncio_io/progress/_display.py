"""Shows the progress line in a terminal, a notebook or a log. Needs rich."""

from __future__ import annotations

import sys
from html import escape
from typing import Protocol, TextIO

from rich.console import Console
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

__all__ = ["Display", "display_on"]

_MIN_BAR_WIDTH, _MAX_BAR_WIDTH = 10, 40


class Display(Protocol):
    """Shows one line, which changes.

    Attributes:
        interval: Seconds between two updates.
    """

    interval: float

    def show(self, line: str, done: int, total: int | None) -> None:
        """Replace the line, and draw a bar for `done` out of `total`."""

    def close(self, line: str) -> None:
        """Restore the terminal and leave this line there."""


def display_on(console: Console | None) -> Display:
    """Start a display on the console; None: on standard error."""
    if console is None:
        # Without this, FORCE_COLOR would make rich treat a file as a terminal
        console = Console(stderr=True, force_interactive=None if _is_terminal(sys.stderr) else False)
    if console.is_jupyter:
        return _NotebookLine()
    return _LiveLine(console) if console.is_interactive else _Log(console)


class _NotebookLine:
    """A line that is updated in place, as one output of a notebook's cell. Needs no widgets."""

    interval = 0.5

    def __init__(self) -> None:
        from IPython.display import DisplayHandle  # noqa: PLC0415 - only a notebook has it

        self._output = DisplayHandle()
        self._output.display(_shown("starting"), raw=True)

    def show(self, line: str, done: int, total: int | None) -> None:
        bar = f'<progress max="{total}" value="{done}"></progress> ' if total else ""
        self._output.update(_shown(line, bar), raw=True)

    def close(self, line: str) -> None:
        self._output.update(_shown(line), raw=True)


def _shown(line: str, bar: str = "") -> dict[str, str]:
    """What a notebook shows: the line, after a bar if it can show HTML."""
    html = f'<div>{bar}<span style="white-space:pre-wrap">{escape(line)}</span></div>'
    return {"text/plain": line, "text/html": html}


class _LiveLine:
    """A line that is updated in place, in a terminal."""

    interval = 0.25

    def __init__(self, console: Console) -> None:
        self._console = console
        # A redirected stream is printed above the line. A stream to a file must still go to the file
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
        width = min(self._console.width - len(line) - 2, _MAX_BAR_WIDTH)
        if total and width >= _MIN_BAR_WIDTH:
            grid.add_row(Text(line), ProgressBar(total, done, width=width))
        else:
            grid.add_row(Text(line))
        self._live.update(grid, refresh=True)

    def close(self, line: str) -> None:
        self._live.stop()
        _print(self._console, line)


class _Log:
    """A new line for each update, in a file."""

    interval = 30.0

    def __init__(self, console: Console) -> None:
        self._console = console

    def show(self, line: str, done: int, total: int | None) -> None:  # noqa: ARG002 - a log has no bar
        _print(self._console, line)

    def close(self, line: str) -> None:
        _print(self._console, line)


def _print(console: Console, line: str) -> None:
    console.print(line, soft_wrap=True, highlight=False, markup=False, emoji=False)


def _is_terminal(stream: TextIO | None) -> bool:
    return stream is not None and stream.isatty()
