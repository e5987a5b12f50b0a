"""URLs in messages: without what may be a secret."""

from __future__ import annotations

_PATHS = ("/", "~", ".")


def without_user(url: str) -> str:
    """The URL with `***` for its user and password, and without its query, which may have a password, too.

    A password in which `/`, `?` or `@` is not percent-encoded is hidden as well, so an `@` in the path of a URL hides
    more. A path without a scheme stays as it is.
    """
    hidden, at, rest = url.rpartition("@")
    scheme, separator, _ = hidden.partition("://")
    if url.startswith(_PATHS):
        return url
    if at and ":" in hidden:
        return f"{scheme + separator if separator else ''}***@{rest.partition('?')[0]}"
    return url.partition("?")[0] if "://" in url else url
