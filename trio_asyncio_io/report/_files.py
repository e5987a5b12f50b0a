"""The files of a report: the page, and the parts of it that the tasks of a Spark query write."""

from __future__ import annotations

import errno
import json
import logging
import os
import re
import shutil
from pathlib import Path
from uuid import uuid4

from ._run import Run

__all__ = ["Files", "replace"]

_log = logging.getLogger("trio_asyncio_io")


class Files:
    """The page and the directory of its parts.

    Args:
        page: The path of the page, absolute.
    """

    def __init__(self, page: Path) -> None:
        self.page = page

    @property
    def parts(self) -> Path:
        """The directory of the parts."""
        return self.page.with_name(f"{self.page.name}.parts")

    def create(self) -> None:
        """Create an empty directory for parts, in place of one that an earlier run has left behind.

        Raises:
            OSError: The page cannot be written.
        """
        try:
            if self.page.is_dir():
                raise IsADirectoryError(errno.EISDIR, "it is a directory")
            shutil.rmtree(self.parts, ignore_errors=True)
            self.parts.mkdir()
        except OSError as error:
            text = f"the report cannot be written ({error.strerror}): pass a path in a directory that exists"
            raise OSError(error.errno, text, str(self.page)) from None

    def path_of_part(self, name: str) -> Path:
        """A new path for the part of a task."""
        slug = re.sub(r"[^\w-]+", "-", name).strip("-")
        return self.parts / f"{slug[:100]}-{uuid4().hex[:8]}.json"

    def read_parts(self) -> list[Run]:
        """The parts that tasks have written."""
        found = (_read(part) for part in sorted(self.parts.glob("*.json")))
        return [part for part in found if part is not None]

    def remove_parts(self) -> None:
        """Remove the directory of the parts."""
        shutil.rmtree(self.parts, ignore_errors=True)


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
        return Run.from_json(json.loads(part.read_text("utf-8")))
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:  # of another version, for example
        _log.warning("a part of a report cannot be read: %s: %r", part, error)
        return None
