"""Location: where a memo is, as a path or a URI, and the file system for it."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote_to_bytes, urlsplit

import pyarrow as pa
from pyarrow import fs

from .._urls import without_user

_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://")
_SCHEME_OF_HADOOP: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/")


def absolute(path: str) -> str:
    """The path with its scheme, or an absolute local path, because workers have another working directory and home.

    Raises:
        ValueError: It has a scheme that only Hadoop understands, such as "dbfs:/data", or is the URI of a file on
            another host.
    """
    if path[:5].lower() == "file:":
        path = _path_of(path)
    elif _SCHEME.match(path):
        return path.rstrip("/")
    elif hadoop := _SCHEME_OF_HADOOP.match(path):
        raise ValueError(
            f"memo must be a local path or a URI with {hadoop[1]}://, got {without_user(path)!r}, which only "
            "Hadoop can write: use the path where the file system is mounted, such as /dbfs/data"
        )
    return str(Path(path).expanduser().absolute())


def _path_of(uri: str) -> str:
    """The path of a `file:` URI (RFC 8089)."""
    _, host, path, *_ = urlsplit(uri)
    host = host.rpartition("@")[2]  # a user could be a secret
    if host.lower() not in {"", "localhost"} or not path.startswith("/") or "?" in uri or "#" in uri:
        raise ValueError(
            f"memo must be a path or a URI such as file:///data/my%20memo, got {without_user(uri)!r}: write three "
            "slashes before a path on this machine, ? as %3F, and # as %23; mount the file system of another host"
        )
    return os.fsdecode(unquote_to_bytes(path))


def file_system(path: str) -> tuple[Any, str]:
    """The file system of an absolute path, and the path in it.

    Raises:
        ValueError: None is installed for its scheme.
    """
    scheme = _SCHEME.match(path)
    if scheme is None:
        return fs.LocalFileSystem(), path
    if scheme[1] in {"s3a", "s3n"}:  # Hadoop's names
        path = "s3" + path.removeprefix(scheme[1])
    with suppress(pa.ArrowInvalid):  # the context of another error would show the URI, which may have a password
        found: tuple[Any, str] = fs.FileSystem.from_uri(path)
        return found
    return _fsspec(path, scheme[1])


def _fsspec(path: str, scheme: str) -> tuple[Any, str]:
    try:
        found, root = import_module("fsspec.core").url_to_fs(path)
    except (ImportError, ValueError) as error:
        raise ValueError(
            f"memo cannot write {scheme}:// ({error}): use a local path that all workers share, s3://, gs://, hdfs://, "
            "or install an fsspec package for this scheme"
        ) from error
    return fs.PyFileSystem(fs.FSSpecHandler(found)), root
