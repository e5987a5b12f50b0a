"""The files of reports and traces: written as a whole, or made of the parts that tasks write."""

from __future__ import annotations

import errno
import json
import logging
import os
import re
import shutil
from pathlib import Path
from uuid import uuid4

from .run import Run

_log = logging.getLogger("trio_asyncio_io")


def create_folder(folder: Path, page: Path) -> None:
    """Create an empty directory for the parts of a page, in place of one that an earlier run has left behind.

    Raises:
        OSError: The page cannot be written.
    """
    try:
        if page.is_dir():
            raise IsADirectoryError(errno.EISDIR, "it is a directory")
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
    except OSError as error:
        text = f"the report cannot be written ({error.strerror}): pass a path in a directory that exists"
        raise OSError(error.errno, text, str(page)) from None


def take_parts(folder: Path) -> list[Run]:
    """The parts that tasks have written. Removes the directory."""
    found = [_read(part) for part in sorted(folder.glob("*.json"))]
    shutil.rmtree(folder, ignore_errors=True)
    return [part for part in found if part is not None]


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
        return Run.from_json(json.loads(part.read_bytes()))
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:  # of another version, for example
        _log.warning("a part of a report cannot be read: %s: %r", part, error)
        return None
