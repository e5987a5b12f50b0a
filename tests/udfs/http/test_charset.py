"""Charsets: which are decoded, and that no server can choose a slow one."""

from __future__ import annotations

import codecs

import pytest
import trio

from udfs.http import _charset
from udfs.http._charset import charset_of, decode_text

CODECS = sorted(_charset._CODECS)
PAIRS = b"".join(bytes((first, second)) for first in range(256) for second in range(256))


@pytest.mark.parametrize(
    ("content_type", "charset"),
    [
        (None, None),
        ("", None),
        ("text/plain", None),
        ("charset=latin-1", None),
        ("text/plain; charset=latin-1", "latin-1"),
        ("text/plain;CHARSET=ISO-8859-1", "iso-8859-1"),
        ('text/plain; charset="utf-8"', "utf-8"),
        ("text/plain; charset='utf-8'", "utf-8"),
        ("text/plain ; a=b ; charset = utf-8 ; c=d", "utf-8"),
        ("text/plain; charset=Shift_JIS, text/html", "shift_jis"),
        ('text/plain; a="; charset=latin-1"; charset=utf-8', "utf-8"),
        (r'text/plain; a="\"; charset=latin-1"; charset=utf-8', "utf-8"),
        ('text/plain; a="; charset=latin-1', None),
        ("text/plain; charset=utf-8; charset=latin-1", "utf-8"),
        ("text/plain; charset", None),
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
def test_a_codec_that_is_not_a_charset_or_is_not_safe_is_not_used(name: str) -> None:
    assert charset_of(f"text/plain; charset={name}") is None


@pytest.mark.parametrize("name", ["utf--8", "utf-8-", "!utf-8", "u" * 500])
def test_python_is_not_asked_for_names_of_the_servers_own_making(name: str) -> None:
    """It would remember each of them for the life of the process."""
    assert charset_of(f"text/plain; charset={name}") is None


@pytest.mark.parametrize("filler", [";", '"', '";', "\\", '"\\', "=", " ", "a;", ';a="'])
def test_a_content_type_that_is_too_long_names_no_charset(filler: str) -> None:
    assert charset_of(f"text/plain; charset=latin-1; a={filler * 90_000}") is None


@pytest.mark.parametrize("label", sorted(_charset._LABELS))
def test_python_knows_every_label(label: str) -> None:
    assert charset_of(f"text/plain; charset={label}") == label
    assert "é".encode(label, "ignore") is not None
    assert codecs.lookup(label).name == codecs.lookup(_charset._LABELS[label]).name


@pytest.mark.parametrize("codec", CODECS)
async def test_text_is_what_python_decodes_and_has_no_surrogates(codec: str) -> None:
    for body in (PAIRS, PAIRS[::-1], "Zürich こんにちは".encode(codec, "replace") * 5_000):
        text = await decode_text(body, codec)
        if codec != "iso2022_jp":
            assert text == body.decode(codec, "replace")
        text.encode()


async def test_iso_2022_jp_is_decoded_and_what_it_cannot_be_is_utf_8() -> None:
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
