"""Shows the progress line in a terminal, a notebook or a log. Needs rich."""

from __future__ import annotations

import sys
from typing import TextIO

from rich.console import Console
from rich.live import Live
from rich.text import Text


class Display:
    """Shows one line, which changes. This one adds a new line for each update, for a file.

    Attributes:
        interval: Seconds between two updates.
    """

    interval = 30.0

    def __init__(self, console: Console) -> None:
        self._console = console

    def show(self, line: str) -> None:
        """Replace the line."""
        self._console.print(line, soft_wrap=True, highlight=False, markup=False, emoji=False)

    def close(self, line: str) -> None:
        """Restore the terminal, and leave this line there."""
        self.show(line)


def display_on(console: Console | None) -> Display:
    """Start a display on the console; None: on standard error."""
    if console is None:
        # Without this, FORCE_COLOR would make rich treat a file as a terminal
        console = Console(stderr=True, force_interactive=None if _is_terminal(sys.stderr) else False)
    if console.is_jupyter:
        return _NotebookLine(console)
    return _LiveLine(console) if console.is_interactive else Display(console)


class _NotebookLine(Display):
    """A line that is updated in place, as one output of a notebook's cell. Needs no widgets."""

    interval = 0.5

    def __init__(self, console: Console) -> None:
        from IPython.display import DisplayHandle  # noqa: PLC0415 - only a notebook has it

        super().__init__(console)
        self._output = DisplayHandle()
        self._output.display({"text/plain": "starting"}, raw=True)

    def show(self, line: str) -> None:
        self._output.update({"text/plain": line}, raw=True)


class _LiveLine(Display):
    """A line that is updated in place, in a terminal."""

    interval = 0.25

    def __init__(self, console: Console) -> None:
        super().__init__(console)
        # A redirected stream is printed above the line. A stream to a file must still go to the file
        self._live = Live(
            console=console,
            auto_refresh=False,
            transient=True,
            redirect_stdout=_is_terminal(sys.stdout),
            redirect_stderr=_is_terminal(sys.stderr),
        )
        self._live.start()

    def show(self, line: str) -> None:
        self._live.update(Text(line), refresh=True)

    def close(self, line: str) -> None:
        self._live.stop()
        super().show(line)


def _is_terminal(stream: TextIO | None) -> bool:
    return stream is not None and stream.isatty()
