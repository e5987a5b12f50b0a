"""Content codings: what is decoded, what is refused, and the size of a step."""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Callable
from itertools import islice
from random import Random

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from udfs.http._decoding import ACCEPT_ENCODING, STEP_BYTES, decoder_for


def bare_deflate(data: bytes) -> bytes:
    return zlib.compress(data, wbits=-zlib.MAX_WBITS)


ENCODERS: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "gzip": ("gzip", gzip.compress),
    "deflate in zlib's format": ("deflate", zlib.compress),
    "bare deflate": ("deflate", bare_deflate),
}

every_coding = pytest.mark.parametrize(("coding", "encode"), ENCODERS.values(), ids=ENCODERS)


def decoded(coding: str, *pieces: bytes) -> bytes:
    decoder = decoder_for([coding])
    assert decoder is not None
    parts = [part for piece in pieces for part in decoder.decode(piece)]
    decoder.finish()
    return b"".join(parts)


def bytes_of(data: bytes) -> list[bytes]:
    return [data[at : at + 1] for at in range(len(data))]


@every_coding
def test_a_body_is_decoded_at_once_or_byte_by_byte(coding: str, encode: Callable[[bytes], bytes]) -> None:
    for data in (b"weather, " * 40_000, os.urandom(20_000), b"x", b""):
        encoded = encode(data)
        assert decoded(coding, encoded) == data
        assert decoded(coding, *bytes_of(encoded)) == data


@every_coding
def test_a_body_cut_off_at_any_byte_is_an_error(coding: str, encode: Callable[[bytes], bytes]) -> None:
    encoded = encode(b"weather" + os.urandom(20))
    for end in range(1, len(encoded)):
        with pytest.raises(httpx.DecodingError):
            decoded(coding, encoded[:end])


@every_coding
def test_data_after_the_end_is_an_error(coding: str, encode: Callable[[bytes], bytes]) -> None:
    encoded = encode(b"weather")
    for surplus in (b"\0", b"\x1f", b"garbage", Random(0).randbytes(10_000)):
        for pieces in [encoded + surplus], [encoded, surplus], bytes_of(encoded + surplus):
            with pytest.raises(httpx.DecodingError):
                decoded(coding, *pieces)


@pytest.mark.parametrize("coding", ["gzip", "deflate"])
def test_an_empty_body_is_complete_and_text_is_an_error(coding: str) -> None:
    assert decoded(coding) == b""
    with pytest.raises(httpx.DecodingError):
        decoded(coding, b"this is text, and nothing else")


def test_all_members_are_decoded() -> None:
    parts = [b"%d," % number for number in range(5_000)]
    members = [gzip.compress(part) for part in parts]
    assert decoded("gzip", b"".join(members)) == b"".join(parts)
    assert decoded("gzip", *members) == b"".join(parts)
    assert decoded("gzip", *bytes_of(b"".join(members[:50]))) == b"".join(parts[:50])


@given(st.lists(st.sampled_from([0, 1, *range(STEP_BYTES - 2, STEP_BYTES + 3), 2 * STEP_BYTES]), max_size=4))
@settings(deadline=None)
def test_members_whose_end_is_near_a_step_are_decoded_as_by_gzip(sizes: list[int]) -> None:
    encoded = b"".join(gzip.compress(bytes([number]) * size) for number, size in enumerate(sizes))
    decoder = decoder_for(["gzip"])
    assert decoder is not None
    parts = list(islice(decoder.decode(encoded), 16))  # four members have at most 12 steps
    decoder.finish()
    assert b"".join(parts) == gzip.decompress(encoded)


def test_a_wrong_checksum_is_an_error() -> None:
    encoded = bytearray(gzip.compress(b"weather"))
    encoded[-5] ^= 1
    with pytest.raises(httpx.DecodingError):
        decoded("gzip", bytes(encoded))


@every_coding
def test_a_bomb_is_decoded_lazily_in_small_steps(coding: str, encode: Callable[[bytes], bytes]) -> None:
    """16 MiB in one piece of input."""
    decoder = decoder_for([coding])
    assert decoder is not None
    parts = list(islice(decoder.decode(encode(bytes(16 * 1024 * 1024))), 4))
    assert max(map(len, parts)) <= STEP_BYTES


@pytest.mark.parametrize("codings", [["gzip", "gzip"], ["deflate", " GZIP"], ["gzip", "identity", "br"]])
def test_several_codings_are_refused(codings: list[str]) -> None:
    decoder = decoder_for(codings)
    assert decoder is not None
    with pytest.raises(httpx.DecodingError, match=r", .* cannot be decoded here"):
        list(decoder.decode(gzip.compress(gzip.compress(b"weather"))))


@pytest.mark.parametrize("coding", ["compress", "X-Compress", "br", "zstd"])
def test_a_coding_without_a_decoder_is_refused_unless_the_body_is_empty(coding: str) -> None:
    decoder = decoder_for([coding])
    assert decoder is not None
    decoder.finish()
    with pytest.raises(httpx.DecodingError, match="cannot be decoded here"):
        list(decoder.decode(b"x"))


@pytest.mark.parametrize("codings", [[], [""], ["identity"], ["rot13"], ["utf-8", "none"]])
def test_names_that_are_not_registered_are_ignored(codings: list[str]) -> None:
    assert decoder_for(codings) is None


@pytest.mark.parametrize("codings", [["gzip"], [" GZip "], ["x-gzip"], ["identity", "gzip", ""], ["rot13", "gzip"]])
def test_names_are_compared_as_in_rfc_9110(codings: list[str]) -> None:
    decoder = decoder_for(codings)
    assert decoder is not None
    assert b"".join(decoder.decode(gzip.compress(b"weather"))) == b"weather"


def test_every_coding_that_can_be_decoded_is_accepted() -> None:
    assert ACCEPT_ENCODING == "gzip, deflate"
