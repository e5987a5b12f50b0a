"""Charsets: which one a Content-Type names, and decoding a body to text."""

from __future__ import annotations

import codecs
import re
from encodings.aliases import aliases
from typing import Final

import trio

# The charset of a longer Content-Type is ignored
_MAX_CHARACTERS: Final = 1_000

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
_SLICE_BYTES: Final = 16 * 1024


def charset_of(content_type: str | None) -> str | None:
    """Return the charset that a Content-Type names, in lower case; None if it names none, or one not decoded here.

    This takes linear time; the standard library's parser takes quadratic time.
    """
    if content_type is None or len(content_type) > _MAX_CHARACTERS:
        return None
    for parameter in _PARAMETER.findall(content_type)[1:]:
        name, _, value = parameter.partition("=")
        if name.strip().lower() == "charset":
            found = _TOKEN.match(value.strip(" \t\"'"))
            label = found[0].lower() if found else ""
            return label if _key(label) in _LABELS else None
    return None


async def decode_text(body: bytes | bytearray, charset: str | None) -> str:
    """Return a body as text without surrogates. Bytes that are not valid become U+FFFD.

    **Cancellation** leaves nothing behind.

    Args:
        body: The complete body.
        charset: A result of `charset_of`. None: UTF-8.
    """
    codec = "utf_8" if charset is None else _LABELS[_key(charset)]
    if len(body) <= _SLICE_BYTES:
        return body.decode(codec, "replace")
    if codec in _WITHOUT_MARK and not body.startswith(_MARKS):
        codec = _WITHOUT_MARK[codec]
    decoder = codecs.getincrementaldecoder(codec)("replace")
    parts = []
    try:
        for start in range(0, len(body), _SLICE_BYTES):
            if start:
                await trio.lowlevel.checkpoint()
            parts.append(decoder.decode(body[start : start + _SLICE_BYTES]))
        parts.append(decoder.decode(b"", final=True))
    except UnicodeError:  # ISO-2022-JP raises it for some bodies despite "replace"
        return await decode_text(body, None)
    return "".join(parts)


def _key(label: str) -> str:
    return label.replace("-", "_")
