"""The limit of a body, and its content coding: gzip, deflate, brotli or zstandard, decoded in bounded steps.

A small coded body can decode to gigabytes, so no decoder here produces its whole output in one step. The caller counts
the output of each step and stops at the limit.
"""

from __future__ import annotations

import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, Final

import httpx

try:
    import brotli
except ImportError:
    try:
        import brotlicffi as brotli  # pyright: ignore[reportMissingImports] - tests install brotli
    except ImportError:
        brotli = None
try:
    import zstandard
except ImportError:
    zstandard = None  # type: ignore[assignment]

__all__ = [
    "ACCEPT_ENCODING",
    "STEP_BYTES",
    "BodyTooLargeError",
    "Decoder",
    "body_too_large",
    "declared_bytes",
    "decoder_for",
    "received_limit",
    "too_large_text",
]

# The output of one step of zlib and brotli
STEP_BYTES: Final = 64 * 1024

# The input of one step. It is small because a gzip body can consist of thousands of tiny members, and zlib copies its
# unused input after each one
_SLICE_BYTES: Final = 8 * 1024
# zstandard has no limit for its output. Four bytes can decode to a block of 128 KiB, so these decode to at most 8 MiB
_ZSTANDARD_SLICE_BYTES: Final = 256
_ZSTANDARD_WINDOW_BYTES: Final = 8 * 1024 * 1024  # the limit of RFC 9659

_GZIP: Final = 16  # added to zlib's window bits
_DEFLATED: Final = 8  # zlib's number of its compression method, in the first byte

# The names that IANA has registered. Some have no decoder here, or only with a package. "identity" is not a coding
_REGISTERED: Final = frozenset({"br", "compress", "dcb", "dcz", "deflate", "gzip", "zstd"})
_ALIASES: Final = {"x-compress": "compress", "x-gzip": "gzip"}  # RFC 9110, section 8.4.1

_BODILESS: Final = (204, 304)  # statuses whose responses end with their head

# A coding can make a small body larger: at most by its own size and this
_SMALL_BYTES: Final = 64 * 1024


class BodyTooLargeError(httpx.RequestError):
    """The body of a response is larger than `max_body_bytes`. The rest was not read."""


def body_too_large(limit: float) -> BodyTooLargeError:
    """Return the error for a body beyond this limit, without its request."""
    return BodyTooLargeError(too_large_text(limit))


def too_large_text(limit: float) -> str:
    """Return what is wrong with a body beyond this limit, and what to do."""
    return f"the body is larger than the {limit:,} bytes (max_body_bytes) that are allowed: allow more, or request less"


def received_limit(limit: float) -> float:
    """Return the upper limit of the bytes that may arrive for a body whose decoded size has this limit."""
    return 2 * limit + _SMALL_BYTES


def declared_bytes(response: Any) -> int:
    """Return the bytes of the body that a response declares, of httpx or httpx2; 0 if it declares none or has no body.

    Args:
        response: Its request must be known.
    """
    length = response.headers.get("Content-Length", "")
    has_body = response.request.method != "HEAD" and response.status_code not in _BODILESS
    return int(length) if has_body and length.isdecimal() else 0


class Decoder(ABC):
    """Decodes a body with one content coding.

    An empty body is valid in every coding: a response to HEAD has a Content-Encoding and no body.

    Args:
        name: The coding, for errors.
        error: What the library raises for data that is not valid.
        slice_bytes: The input of one step.
    """

    def __init__(self, name: str, error: type[Exception] = zlib.error, slice_bytes: int = _SLICE_BYTES) -> None:
        self._name = name
        self._error = error
        self._slice_bytes = slice_bytes

    def decode(self, data: bytes) -> Iterator[bytes]:
        """Decode more of the body, lazily: each step runs when its output is requested.

        Yields:
            Decoded bytes, never empty: at most about `STEP_BYTES`, or 8 MiB for zstandard.

        Raises:
            httpx.DecodingError: The data is not valid in this coding.
        """
        try:
            for start in range(0, len(data), self._slice_bytes):
                yield from self._decoded(data[start : start + self._slice_bytes])
        except self._error as error:
            raise httpx.DecodingError(str(error)) from error

    def finish(self) -> None:
        """Check that the body is complete.

        Raises:
            httpx.DecodingError: The body was cut off.
        """
        if not self._is_complete():
            raise httpx.DecodingError(f"the body is cut off: the end of its {self._name} data is missing")

    @abstractmethod
    def _decoded(self, data: bytes, /) -> Iterator[bytes]: ...

    @abstractmethod
    def _is_complete(self) -> bool: ...


class _MembersDecoder(Decoder):
    """Decodes a body of one or more members, each of them a complete stream: gzip (RFC 1952), zstandard (RFC 8878).

    Args:
        name: The coding.
        new_member: Makes the library's decoder of a member.
        step: Decodes data with it.
        options: As for `Decoder`.
    """

    def __init__(
        self, name: str, new_member: Callable[[], Any], step: Callable[[Any, bytes], Iterator[bytes]], *options: Any
    ) -> None:
        super().__init__(name, *options)
        self._new_member = new_member
        self._step = step
        self._member: Any = None

    def _decoded(self, data: bytes) -> Iterator[bytes]:
        while data:
            if self._member is None:
                self._member = self._new_member()
            yield from self._step(self._member, data)
            data = b""
            if self._member.eof:
                data, self._member = self._member.unused_data, None

    def _is_complete(self) -> bool:
        return self._member is None


def _gzip() -> Decoder:
    return _MembersDecoder("gzip", lambda: zlib.decompressobj(zlib.MAX_WBITS | _GZIP), _inflated)


def _zstandard() -> Decoder:
    library: Any = zstandard
    frames = library.ZstdDecompressor(max_window_size=_ZSTANDARD_WINDOW_BYTES)
    return _MembersDecoder("zstd", frames.decompressobj, _decompressed, library.ZstdError, _ZSTANDARD_SLICE_BYTES)


class _DeflateDecoder(Decoder):
    """The zlib format, or the bare deflate data that some servers send instead."""

    def __init__(self) -> None:
        super().__init__("deflate")
        self._head = b""
        self._inflater: Any = None

    def _decoded(self, data: bytes) -> Iterator[bytes]:
        if self._inflater is None:
            self._head += data
            if len(self._head) < 2:  # noqa: PLR2004 - zlib's header has two bytes
                return
            data = self._head
            self._inflater = zlib.decompressobj(zlib.MAX_WBITS if _has_zlib_header(data) else -zlib.MAX_WBITS)
        yield from _inflated(self._inflater, data)
        if self._inflater.unused_data:
            raise zlib.error("data after the end of the deflate stream")

    def _is_complete(self) -> bool:
        return not self._head or (self._inflater is not None and self._inflater.eof)


class _BrotliDecoder(Decoder):
    """A brotli stream (RFC 7932)."""

    def __init__(self) -> None:
        library: Any = brotli
        super().__init__("br", library.error)
        self._stream = library.Decompressor()
        self._has_begun = False

    def _decoded(self, data: bytes) -> Iterator[bytes]:
        self._has_begun = True
        part = self._stream.process(data, output_buffer_limit=STEP_BYTES)
        while part:
            yield part
            part = b"" if self._stream.is_finished() else self._stream.process(b"", output_buffer_limit=STEP_BYTES)

    def _is_complete(self) -> bool:
        return not self._has_begun or bool(self._stream.is_finished())


class _RefusedCoding(Decoder):
    """Refuses every body that is not empty."""

    def __init__(self, problem: str) -> None:
        super().__init__("")
        self._problem = problem

    def _decoded(self, _: bytes) -> Iterator[bytes]:
        raise httpx.DecodingError(self._problem)

    def _is_complete(self) -> bool:
        return True


_DECODERS: Final[dict[str, Callable[[], Decoder]]] = {"gzip": _gzip, "deflate": _DeflateDecoder}
if brotli is not None and hasattr(brotli.Decompressor, "can_accept_more_data"):  # since 1.2, which introduced the limit
    _DECODERS["br"] = _BrotliDecoder
if zstandard is not None:
    _DECODERS["zstd"] = _zstandard

# In the order of httpx
ACCEPT_ENCODING: Final = ", ".join(_DECODERS)


def decoder_for(codings: list[str]) -> Decoder | None:
    """Return the decoder for a body.

    Args:
        codings: The elements of Content-Encoding.

    Returns:
        A decoder, or None if the body is not coded. The decoder refuses all data if the body has several codings, or
        one that cannot be decoded. Names that are not registered are ignored, as in httpx.
    """
    lowered = [coding.strip().lower() for coding in codings]
    names = [name for coding in lowered if (name := _ALIASES.get(coding, coding)) in _REGISTERED]
    if not names:
        return None
    if len(names) > 1:
        return _RefusedCoding(f"the body has {len(names)} content codings; at most one is supported")
    [name] = names
    if name not in _DECODERS:
        return _RefusedCoding(f"the body has the content coding {name!r}, which cannot be decoded here")
    return _DECODERS[name]()


def _inflated(inflater: Any, data: bytes) -> Iterator[bytes]:
    part = inflater.decompress(data, STEP_BYTES)
    while part:
        yield part
        # After the end of a member zlib leaves what follows in `unconsumed_tail` as well as in `unused_data`
        part = b"" if inflater.eof else inflater.decompress(inflater.unconsumed_tail, STEP_BYTES)


def _decompressed(member: Any, data: bytes) -> Iterator[bytes]:
    if part := member.decompress(data):
        yield part


def _has_zlib_header(data: bytes) -> bool:
    """Whether data starts with zlib's header (RFC 1950, section 2.2). No encoder writes bare deflate data like that."""
    return data[0] & 0x0F == _DEFLATED and int.from_bytes(data[:2]) % 31 == 0
