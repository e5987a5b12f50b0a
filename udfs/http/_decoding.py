"""From the bytes of a body to its text: the limit of a body, its content coding (gzip or deflate), and its charset.

A small coded body can decode to gigabytes, so the decoder does not produce its whole output in one step. The caller
counts the output of each step and stops at the limit. A charset is decoded in slices, between which other tasks run.
"""

from __future__ import annotations

import codecs
import re
import zlib
from collections.abc import Iterator
from encodings.aliases import aliases
from typing import Any, Final

import httpx
import trio

ACCEPT_ENCODING: Final = "gzip, deflate"

# The output of one step
STEP_BYTES: Final = 64 * 1024

# The input of one step. It is small because a gzip body can consist of thousands of tiny members, and zlib copies its
# unused input after each one
_SLICE_BYTES: Final = 8 * 1024

_GZIP: Final = 16  # added to zlib's window bits
_DEFLATED: Final = 8  # zlib's number of its compression method, in the first byte

# The names that IANA has registered. Most have no decoder here. "identity" is not a coding
_REGISTERED: Final = frozenset({"br", "compress", "dcb", "dcz", "deflate", "gzip", "zstd"})
_ALIASES: Final = {"x-compress": "compress", "x-gzip": "gzip"}  # RFC 9110, section 8.4.1

# A coding can make a small body larger: at most by its own size and this
_SMALL_BYTES: Final = 64 * 1024


class BodyTooLargeError(httpx.RequestError):
    """The body of a response is larger than `max_body_bytes`. The rest was not read."""


def body_too_large(limit: float) -> BodyTooLargeError:
    """Return the error for a body beyond this limit, without its request."""
    return BodyTooLargeError(
        f"the body is larger than the {limit:,} bytes (max_body_bytes) that are allowed: allow more, or request less"
    )


def received_limit(limit: float) -> float:
    """Return the upper limit of the bytes that may arrive for a body whose decoded size has this limit."""
    return 2 * limit + _SMALL_BYTES


class Decoder:
    """Decodes a body in gzip (RFC 1952), which may have several members, or in deflate.

    An empty body is valid in every coding: a response to HEAD has a Content-Encoding and no body.

    Args:
        coding: "gzip" or "deflate". Bodies in any other coding are refused unless they are empty.
    """

    def __init__(self, coding: str) -> None:
        self._coding = coding
        self._inflater: Any = None

    def decode(self, data: bytes) -> Iterator[bytes]:
        """Decode more of the body, lazily: each step runs when its output is requested.

        Yields:
            Decoded bytes, never empty: at most about `STEP_BYTES`.

        Raises:
            httpx.DecodingError: The data is not valid in this coding, or the coding cannot be decoded.
        """
        try:
            for start in range(0, len(data), _SLICE_BYTES):
                yield from self._decoded(data[start : start + _SLICE_BYTES])
        except zlib.error as error:
            raise httpx.DecodingError(str(error)) from error

    def finish(self) -> None:
        """Check that the body is complete.

        Raises:
            httpx.DecodingError: The body was cut off.
        """
        if self._inflater is not None and not self._inflater.eof:
            raise httpx.DecodingError(f"the body is cut off: the end of its {self._coding} data is missing")

    def _decoded(self, data: bytes) -> Iterator[bytes]:
        while data:
            if self._inflater is None or self._inflater.eof:
                self._inflater = zlib.decompressobj(self._window_bits(data))
            yield from _inflated(self._inflater, data)
            data = self._inflater.unused_data

    def _window_bits(self, data: bytes) -> int:
        """Return zlib's format for a member that begins with this data."""
        if self._coding == "gzip":
            return zlib.MAX_WBITS | _GZIP
        if self._coding != "deflate":
            raise httpx.DecodingError(f"the body has the content coding {self._coding!r}, which cannot be decoded here")
        if self._inflater is not None:
            raise zlib.error("data after the end of the deflate stream")
        # The zlib format (RFC 1950), or the bare deflate data that some servers send instead. No encoder begins the
        # latter with this number
        return zlib.MAX_WBITS if data[0] & 0x0F == _DEFLATED else -zlib.MAX_WBITS


def decoder_for(codings: list[str]) -> Decoder | None:
    """Return the decoder for a body, or None if it is not coded.

    Args:
        codings: The elements of Content-Encoding. Names that are not registered are ignored, as in httpx. Several
            registered ones are a coding that cannot be decoded.
    """
    lowered = [coding.strip().lower() for coding in codings]
    names = [name for coding in lowered if (name := _ALIASES.get(coding, coding)) in _REGISTERED]
    return Decoder(", ".join(names)) if names else None


def _inflated(inflater: Any, data: bytes) -> Iterator[bytes]:
    part = inflater.decompress(data, STEP_BYTES)
    while part:
        yield part
        # After the end of a member zlib leaves what follows in `unconsumed_tail` as well as in `unused_data`
        part = b"" if inflater.eof else inflater.decompress(inflater.unconsumed_tail, STEP_BYTES)


# The charset of a body.

# A longer Content-Type is not searched for a charset
_MAX_CONTENT_TYPE: Final = 1_000

# One parameter. A semicolon within quotes does not end it. A quote that is not closed extends to the end
_PARAMETER: Final = re.compile(r'(?:[^;"]|"(?:[^"\\]|\\.)*"?)+')
_TOKEN: Final = re.compile(r"[-\w.]+", re.ASCII)

# Python's text codecs that take linear time for every body. Not included: punycode and idna, which are quadratic,
# unicode_escape, and UTF-7, which can yield half of a surrogate pair
_CODECS: Final = frozenset(
    [
        *("ascii", "latin_1", "utf_8", "utf_8_sig"),
        *("utf_16", "utf_16_be", "utf_16_le", "utf_32", "utf_32_be", "utf_32_le"),
        *("big5", "big5hkscs", "cp932", "cp949", "cp950", "euc_jp", "euc_kr", "gb18030", "gb2312", "gbk"),
        *("iso2022_jp", "shift_jis"),
        *("cp437", "cp850", "cp852", "cp855", "cp857", "cp858", "cp866", "cp874"),
        *("koi8_r", "koi8_u", "mac_cyrillic", "mac_roman", "tis_620"),
        *(f"iso8859_{part}" for part in (*range(2, 12), *range(13, 17))),
        *(f"cp{page}" for page in range(1250, 1259)),
    ]
)
_LABELS: Final = {**{codec: codec for codec in _CODECS}, **{a: c for a, c in aliases.items() if c in _CODECS}}

# The incremental decoders of these codecs require a byte order mark
_WITHOUT_MARK: Final = {"utf_16": "utf_16_le", "utf_32": "utf_32_le"}
_MARKS: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)

# Other tasks run between two slices. A byte that is not valid in its charset can take a microsecond
_TEXT_SLICE_BYTES: Final = 16 * 1024


def charset_of(content_type: str | None) -> str | None:
    """Return the charset that a Content-Type names, in lower case; None if it names none, or one not decoded here.

    This takes linear time; the standard library's parser takes quadratic time.
    """
    if content_type is None or len(content_type) > _MAX_CONTENT_TYPE:
        return None
    for parameter in _PARAMETER.findall(content_type)[1:]:
        name, _, value = parameter.partition("=")
        if name.strip().lower() == "charset":
            found = _TOKEN.match(value.strip(" \t\"'"))
            label = found[0].lower() if found else ""
            return label if _label_key(label) in _LABELS else None
    return None


async def decode_text(body: bytes | bytearray, charset: str | None) -> str:
    """Return a body as text without surrogates. Bytes that are not valid become U+FFFD.

    **Cancellation** leaves nothing behind.

    Args:
        body: The complete body.
        charset: A result of `charset_of`. None: UTF-8.
    """
    codec = "utf_8" if charset is None else _LABELS[_label_key(charset)]
    if len(body) <= _TEXT_SLICE_BYTES:
        return body.decode(codec, "replace")
    if codec in _WITHOUT_MARK and not body.startswith(_MARKS):
        codec = _WITHOUT_MARK[codec]
    decoder = codecs.getincrementaldecoder(codec)("replace")
    parts = []
    try:
        for start in range(0, len(body), _TEXT_SLICE_BYTES):
            if start:
                await trio.lowlevel.checkpoint()
            parts.append(decoder.decode(body[start : start + _TEXT_SLICE_BYTES]))
        parts.append(decoder.decode(b"", final=True))
    except UnicodeError:  # ISO-2022-JP raises it for some bodies despite "replace"
        return await decode_text(body, None)
    return "".join(parts)


def _label_key(label: str) -> str:
    return label.replace("-", "_")
