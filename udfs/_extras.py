"""Names the extra to install if a package is missing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

_OURS = ("trio_asyncio_io", "udfs")


@contextmanager
def needs_extra(user: str, extra: str) -> Iterator[None]:
    """Import modules that need the packages of an extra.

    Args:
        user: What needs them, for the error message.
        extra: The name of the extra, or several, separated by commas.

    Raises:
        ModuleNotFoundError: A package is not installed. The message says what to install.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith(_OURS):
            raise
        message = f"{user} needs {error.name}: in a clone, pip install '.[{extra}]'"
        raise ModuleNotFoundError(message, name=error.name) from None
