"""Files of a run: a trace as JSON in Chrome's Trace Event Format, the page of a report, and the parts of tasks."""

from __future__ import annotations

import errno
import json
import logging
import os
import re
import shutil
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias
from uuid import uuid4

from .run import Run

__all__ = ["FORMAT", "WRITER", "Parts", "Trace", "TraceError", "path_of_part", "read", "replace", "write"]

_log = logging.getLogger("trio_asyncio_io")

Trace: TypeAlias = dict[str, Any]

# In `otherData`: who has written the trace, and the version of its content
WRITER, FORMAT = "trio_asyncio_io", 1


class TraceError(ValueError):
    """A file is not a trace of this package, or traces do not fit together. The message says why, in one sentence."""


def read(path: str | PathLike[str]) -> Trace:
    """The trace in a file.

    Raises:
        TraceError: The file is not a trace that a `TraceRecorder` or `merge` has written.
        OSError: The file cannot be read.
    """
    content = Path(path).read_bytes()
    if not content.strip():
        raise TraceError(f"{path} is empty: the run that should have written it may have been killed")
    try:
        trace = _parsed(content)
    except ValueError as error:
        raise TraceError(f"{path} is not JSON: {error}") from error
    problem = _problem_of(trace)
    if problem:
        raise TraceError(f"{path} is not a trace of a TraceRecorder: {problem}")
    return trace  # type: ignore[no-any-return]


def write(trace: Trace, path: str | PathLike[str]) -> None:
    """Write a trace. Creates its directory, and replaces the file as a whole.

    Raises:
        OSError: The file cannot be written.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    replace(path, json.dumps(trace, ensure_ascii=False))


def _problem_of(trace: object) -> str:
    if not isinstance(trace, dict) or not isinstance(trace.get("traceEvents"), list):
        return "there is no list of traceEvents"
    about = trace.get("otherData")
    if not isinstance(about, dict) or about.get("writer") != WRITER:
        return "another program has written it"
    if about.get("format") != FORMAT:
        return f"its format is {about.get('format')!r}, and this release reads format {FORMAT}"
    return ""


class Parts:
    """The page of a report, and the directory of the parts that tasks write.

    Args:
        page: The path of the page, absolute.
    """

    def __init__(self, page: Path) -> None:
        self.page = page
        self.folder = page.with_name(f"{page.name}.parts")

    def create(self) -> None:
        """Create an empty directory for parts, in place of one that an earlier run has left behind.

        Raises:
            OSError: The page cannot be written.
        """
        try:
            if self.page.is_dir():
                raise IsADirectoryError(errno.EISDIR, "it is a directory")
            shutil.rmtree(self.folder, ignore_errors=True)
            self.folder.mkdir()
        except OSError as error:
            text = f"the report cannot be written ({error.strerror}): pass a path in a directory that exists"
            raise OSError(error.errno, text, str(self.page)) from None

    def read(self) -> list[Run]:
        """The parts that tasks have written."""
        found = (_read(part) for part in sorted(self.folder.glob("*.json")))
        return [part for part in found if part is not None]

    def remove(self) -> None:
        """Remove the directory of the parts."""
        shutil.rmtree(self.folder, ignore_errors=True)


def path_of_part(folder: Path, name: str) -> Path:
    """A new path for what the task of this name writes."""
    slug = re.sub(r"[^\w-]+", "-", name).strip("-")
    return folder / f"{slug[:100]}-{uuid4().hex[:8]}.json"


def replace(path: Path, text: str) -> None:
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


def _read(part: Path) -> Run | None:
    try:
        return Run.from_json(_parsed(part.read_bytes()))
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:  # of another version, for example
        _log.warning("a part of a report cannot be read: %s: %r", part, error)
        return None


def _parsed(content: bytes) -> Any:
    """The JSON value.

    Raises:
        ValueError: It is not JSON, not UTF-8, or too deeply nested for the parser.
    """
    try:
        return json.loads(content)
    except RecursionError:
        raise ValueError("it is too deeply nested") from None
