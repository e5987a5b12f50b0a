"""Charsets: which are decoded, and that no server can choose a slow one."""

from __future__ import annotations

import codecs

import pytest
import trio

from udfs.http import _decoding
from udfs.http._decoding import charset_of, decode_text

PAIRS = b"".join(bytes((first, second)) for first in range(256) for second in range(256))


@pytest.mark.parametrize(
    ("content_type", "charset"),
    [
        (None, None),
        ("text/plain", None),
        ("charset=latin-1", None),
        ("text/plain; charset=latin-1", "latin-1"),
        ("text/plain;CHARSET=ISO-8859-1", "iso-8859-1"),
        ('text/plain; charset="utf-8"', "utf-8"),
        ("text/plain ; a=b ; charset = utf-8 ; c=d", "utf-8"),
        ("text/plain; charset=Shift_JIS, text/html", "shift_jis"),
        ('text/plain; a="; charset=latin-1"; charset=utf-8', "utf-8"),
        (r'text/plain; a="\"; charset=latin-1"; charset=utf-8', "utf-8"),
        ('text/plain; a="; charset=latin-1', None),
        ("text/plain; charset=utf-8; charset=latin-1", "utf-8"),
        ("text/plain; charset=", None),
        ("text/plain; charset=klingon", None),
        ("text/plain; charset=wärm", None),
    ],
)
def test_the_charset_is_a_parameter_of_the_content_type(content_type: str | None, charset: str | None) -> None:
    assert charset_of(content_type) == charset


@pytest.mark.parametrize(
    "name", ["punycode", "idna", "unicode_escape", "raw_unicode_escape", "utf-7", "hex", "bz2", "zip", "rot13", "mbcs"]
)
def test_an_unsafe_codec_is_not_used(name: str) -> None:
    assert charset_of(f"text/plain; charset={name}") is None


@pytest.mark.parametrize("name", ["utf--8", "utf-8-", "!utf-8", "u" * 500])
def test_names_that_a_server_made_up_are_not_looked_up(name: str) -> None:
    """Python would cache each of them for the life of the process."""
    assert charset_of(f"text/plain; charset={name}") is None


@pytest.mark.parametrize("filler", [";", '"', '";', "\\", '"\\', "=", " ", "a;", ';a="'])
def test_the_charset_of_a_very_long_content_type_is_ignored(filler: str) -> None:
    assert charset_of(f"text/plain; charset=latin-1; a={filler * 90_000}") is None


def test_every_label_names_a_codec_of_python() -> None:
    for label, codec in _decoding._LABELS.items():
        assert charset_of(f"text/plain; charset={label}") == label
        assert codecs.lookup(label).name == codecs.lookup(codec).name


@pytest.mark.parametrize("body", [PAIRS, PAIRS[::-1], None], ids=["pairs", "pairs reversed", "text"])
async def test_every_codec_decodes_as_in_python_and_without_surrogates(body: bytes | None) -> None:
    for codec in _decoding._CODECS:
        encoded = "Zürich こんにちは".encode(codec, "replace") * 5_000 if body is None else body
        text = await decode_text(encoded, codec)
        if codec != "iso2022_jp":
            assert text == encoded.decode(codec, "replace"), codec
        text.encode()


async def test_a_body_that_iso_2022_jp_cannot_decode_is_decoded_as_utf_8() -> None:
    text = "こんにちは" * 10_000
    assert await decode_text(text.encode("iso2022_jp"), "iso-2022-jp") == text
    assert await decode_text(b"\x1b" * 20_000, "iso-2022-jp") == "\x1b" * 20_000


@pytest.mark.parametrize("codec", ["utf-16", "utf-32"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("order", ["le", "be"])
async def test_a_byte_order_mark_is_optional_and_little_endian_the_default(codec: str, mark: str, order: str) -> None:
    body = (mark + "Zürich").encode(f"{codec}-{order}")
    assert (await decode_text(body, codec) == "Zürich") == (bool(mark) or order == "le")


async def test_other_tasks_run_while_a_large_body_is_decoded() -> None:
    with trio.CancelScope() as scope:
        scope.cancel()
        assert await decode_text(b"small", None) == "small"
        await decode_text(b"\x81" * 100_000, "cp1252")
    assert scope.cancelled_caught
