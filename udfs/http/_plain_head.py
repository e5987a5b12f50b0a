"""Plain heads of responses: a regular expression is enough to parse them."""

from __future__ import annotations

import re
from typing import Final

from ._response_head import ResponseHead

__all__ = ["plain_head"]

# Each byte matches in one way only, so that a match takes linear time
_PLAIN: Final = re.compile(
    rb"HTTP/1\.1 ([2-5][0-9][0-9]) ((?:[!-~](?:[ -~]*[!-~])?)?)\r\n"
    rb"((?:[-!#$%&'*+.^_`|~0-9a-zA-Z]+:[\t -~]*\r\n)+)\r\n"
)
_LENGTH: Final = re.compile(rb"[0-9]{1,15}")

# Headers that change where the response ends, or what may follow it
_FRAMING: Final = frozenset({b"connection", b"proxy-connection", b"transfer-encoding", b"upgrade"})


def plain_head(data: bytes) -> ResponseHead | None:
    """Parse a whole head if it is plain: a final one in ASCII, with one Content-Length and default framing.

    Of a plain head, llhttp and this function have the same view. Returns None for every other head, and for every one
    that llhttp refuses.
    """
    found = _PLAIN.fullmatch(data)
    if found is None:
        return None
    status, reason, lines = found.groups()
    fields, lengths = [], []
    for line in lines[:-2].split(b"\r\n"):
        name, _, value = line.partition(b":")
        lowered, value = name.lower(), value.strip(b" \t")
        fields.append((name, lowered, value))
        if lowered == b"content-length":
            lengths.append(value if not line.endswith(b"\t") else b"")  # older llhttp refuses a tab behind the digits
    names = frozenset([name for _, name, _ in fields])
    if len(lengths) != 1 or _LENGTH.fullmatch(lengths[0]) is None or not names.isdisjoint(_FRAMING):
        return None
    length = int(lengths[0])
    return ResponseHead(b"HTTP/1.1", int(status), reason, fields, names, length, is_chunked=False, keeps_alive=True)
