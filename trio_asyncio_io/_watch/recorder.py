"""The recorder: an observer that collects a run and writes it to a file, and how such a file is written."""

from __future__ import annotations

import logging
import os
import re
from abc import abstractmethod
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from uuid import uuid4

import trio

from .._core.elements import value_of
from .._core.observer import Observer
from .._core.options import Options
from .._values.checks import check_bool, check_path
from .._values.describe import describe, printable

_log = logging.getLogger("trio_asyncio_io")


class Recorder(Observer):
    """The common part of `Report` and `TraceRecorder`: a context manager that writes its file at the end of the block.

    Args:
        path: The file to write, or None.
        name: The name of the operator, or the heading.
        values: Whether to describe values of elements.
        create_copy: Creates a recorder like this one, for a path.

    Attributes:
        path: The path, with the home directory in place of a `~`.
        zero: The instant at which the run started.
        value_of: Returns what the user's function gets of an element.
    """

    def __init__(
        self, path: str | os.PathLike[str] | None, name: str, *, values: bool, create_copy: Callable[..., Self]
    ) -> None:
        self.path = None if path is None else Path(check_path("path", path))
        self.zero = 0.0
        self.value_of: Callable[[Any], Any] = value_of
        self._name = printable(name)
        self._values = check_bool("values", values)
        self._create_copy = create_copy

    def __reduce__(self) -> tuple[Callable[..., Self], tuple[Path | None]]:
        # What was recorded stays here. On another machine, a relative path would be below another directory
        return self._create_copy, (self.path and self.path.absolute(),)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            self._finish(error)
        except OSError as problem:
            if error is None:
                raise
            _log.warning("%s was not written: %s", self.path, problem)

    @abstractmethod
    def _finish(self, error: BaseException | None) -> None:
        """Write the file, at the end of a block that this exception has ended; None: it has completed.

        Raises:
            OSError: The file cannot be written.
        """

    def describe(self, element: Any) -> str | None:
        """A description of the element's value. None if values are not recorded."""
        if not self._values:
            return None
        value = self.value_of(element)
        return printable(describe(value).strip("'") if isinstance(value, str) else describe(value))

    def run_started(self, options: Options) -> None:
        self.zero = trio.current_time()


def path_of_part(folder: Path, name: str) -> Path:
    """A new path for what the task of this name writes."""
    slug = re.sub(r"[^\w-]+", "-", name).strip("-")
    return folder / f"{slug[:100]}-{uuid4().hex[:8]}.json"


def replace_file(path: Path, text: str) -> None:
    """Write a file as a whole, or leave what is there.

    Raises:
        OSError: The file cannot be written.
    """
    partial_file = path.with_name(f".{uuid4().hex}")
    try:
        partial_file.write_text(text, encoding="utf-8", errors="backslashreplace")
        os.replace(partial_file, path)  # noqa: PTH105 - as in its documentation: atomic
    finally:
        partial_file.unlink(missing_ok=True)
