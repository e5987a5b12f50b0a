"""Runs pytest with one module replaced: `python -m tests.mutation MODULE SOURCE ARGUMENTS...`.

The module is imported from the file SOURCE, and from nowhere else, so the tree stays as it is.
"""

from __future__ import annotations

import resource
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

import pytest

MEMORY = 8 * 2**30  # a mutant may never stop to allocate


class Loader(SourceFileLoader):
    """Loads a module from other source, without bytecode files."""

    def __init__(self, name: str, path: str, source: Path) -> None:
        super().__init__(name, path)
        self._source = source

    def get_code(self, fullname: str) -> CodeType:
        return compile(self._source.read_bytes(), self.path, "exec", dont_inherit=True)


class Finder(MetaPathFinder):
    """Finds one module.

    Args:
        path: Of the module, relative to the working directory.
        source: The file with its source.
    """

    def __init__(self, path: Path, source: Path) -> None:
        self._name = ".".join(path.with_suffix("").parts)
        self._path = str(path.resolve())
        self._source = source

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name != self._name:
            return None
        return spec_from_file_location(name, self._path, loader=Loader(name, self._path, self._source))


def main(module: str, source: str, *arguments: str) -> Any:
    """Run pytest, and return its exit status."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    sys.meta_path.insert(0, Finder(Path(module), Path(source)))
    return pytest.main(list(arguments))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
