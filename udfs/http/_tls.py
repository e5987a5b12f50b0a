"""TLS: `SslContext`, which loads certificates, and `TlsStream`, an `ssl.SSLObject` between two buffers."""

from __future__ import annotations

import os
import ssl
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import httpx
import trio

from ._socket import Socket

Verify = ssl.SSLContext | str | os.PathLike[str] | bool
Certificate = str | tuple[str, str] | tuple[str, str, str]

_HEADER = 5  # bytes before each TLS record: its type, its version (2) and its length (2)
_RECORD = 16 * 1024  # bytes: the largest content of a record, and of one read
_CHUNK = 4 * _RECORD  # bytes that are encrypted and sent at a time

_NOTHING = memoryview(b"")


def load_verify(verify: Verify) -> ssl.SSLContext | bool:
    """Return `verify`, with a context in place of a path.

    Raises:
        TypeError, ValueError: It is not one of these, or no certificates can be loaded from the path.
    """
    rule = "verify must be True, False, the path of a file or directory of certificates, or an ssl.SSLContext"
    if isinstance(verify, bool | ssl.SSLContext):
        return verify
    if not isinstance(verify, str | os.PathLike):
        raise TypeError(f"{rule}, got {verify!r}")
    path = os.fspath(verify)
    try:
        if Path(path).is_dir():
            return ssl.create_default_context(capath=path)
        return ssl.create_default_context(cafile=path)
    except OSError as error:
        raise ValueError(f"{rule}, got {path!r}, which cannot be loaded: {error}") from error


@dataclass
class SslContext:
    """An `ssl.SSLContext` that is made at its first use, which takes about 100 ms.

    Attributes:
        verify: A result of `load_verify`.
        cert, trust_env: As for `StackTransport`.
    """

    verify: ssl.SSLContext | bool
    cert: Certificate | None
    trust_env: bool

    @cached_property
    def made(self) -> ssl.SSLContext:
        """The context.

        Raises:
            httpx.LocalProtocolError: The certificates cannot be loaded. No retry avoids that.
        """
        try:
            return httpx.create_ssl_context(verify=self.verify, cert=self.cert, trust_env=self.trust_env)
        except OSError as error:
            raise httpx.LocalProtocolError(
                f"cannot load the certificates for TLS: {error}. "
                "Check cert=, and with trust_env=True SSL_CERT_FILE and SSL_CERT_DIR"
            ) from error


class TlsStream:
    """A TLS connection. It decrypts everything that has arrived, so data after the end of a response is noticed.

    Invariant: after each read from the socket, every complete record is decrypted. At most the beginning of a record is
    left. OpenSSL does not show that, so this class counts the bytes of the records as well.

    Session tickets and key updates are answered and are not data, and so is renegotiation, except while data is being
    sent. One task may send while another receives: all encrypted data leaves through one buffer, in order.

    Args:
        socket: The connected socket. This stream closes it.
        context: How to verify the server.
        server_name: The name that the certificate must have. It is also sent to the server (SNI) unless it is an
            address.

    Attributes:
        has_clean_end: Whether the server has ended the stream with a `close_notify`. Without one, anybody may have cut
            the connection.
    """

    def __init__(self, socket: Socket, context: ssl.SSLContext, server_name: str) -> None:
        context.set_alpn_protocols(["http/1.1"])  # for each connection: another client may share the context
        self._socket = socket
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname=server_name)
        self.has_clean_end = False
        self._has_ended = False
        self._failure: ssl.SSLError | None = None
        self._received: list[bytes] = []
        self._unencrypted = _NOTHING
        self._header = b""  # what has arrived of the next record's header
        self._missing = 0  # bytes that are missing of the record whose header has arrived

    @property
    def is_open(self) -> bool:
        """Whether this side has not closed it."""
        return self._socket.is_open

    async def handshake(self) -> None:
        """Make the connection ready for data.

        Raises:
            ssl.SSLError: The two sides do not agree, or the certificate is not valid for the server's name.
            trio.BrokenResourceError: The server closed the connection.
        """
        try:
            while not self._is_agreed():
                await self.drain()
                data = await self._socket.receive_some()
                if not data:
                    raise trio.BrokenResourceError(
                        "the server closed the connection in the TLS handshake: "
                        "if the port is one for http://, write http:// in the URL"
                    )
                self._count(data)
                self._incoming.write(data)
            await self.drain()
        except ssl.SSLError:
            self._flush()  # the alert that gives the server the reason
            raise
        self._decrypt()  # data may have come with the end of the handshake

    def send_now(self, data: bytes) -> bool:
        """Send what the kernel takes, without waiting. Returns whether that was everything; if not, call `drain`.

        Raises:
            trio.BrokenResourceError: The other side has closed the connection.
            trio.ClosedResourceError: This side has closed it.
        """
        is_next = not self._outgoing.pending and self._socket.flush_now()
        self._unencrypted = memoryview(data)
        if is_next and len(data) <= _RECORD:  # one record, as almost always
            self._encrypt()
            return self._socket.send_now(self._outgoing.read())
        return self._flush_now()

    async def drain(self) -> None:
        """Wait until all data is sent. Raises the same errors as `send_now`."""
        while not self._flush_now():
            await self._socket.wait_writable()

    async def receive_some(self) -> bytes:
        """Wait for data and return all that has arrived; `b""` at the end.

        Raises:
            trio.BrokenResourceError: The connection broke, or the data is not valid TLS.
            trio.ClosedResourceError: This side has closed it.
        """
        while not self._received:
            if self._failure is not None:
                raise trio.BrokenResourceError(str(self._failure)) from self._failure
            if self._has_ended:
                return b""
            self._feed(await self._socket.receive_some())
        data = self._received[0] if len(self._received) == 1 else b"".join(self._received)
        self._received.clear()
        return data

    def is_silent(self) -> bool:
        """Whether the connection is open, and neither data, nor a part of a record, nor the end has arrived."""
        try:
            if not self._socket.is_silent():
                self._feed(self._socket.receive_now())
        except (BlockingIOError, trio.BrokenResourceError, trio.ClosedResourceError):
            return False
        has_data = self._received or self._header or self._missing or self._outgoing.pending
        return not (has_data or self._has_ended or self._failure)

    def close(self) -> None:
        """Send a `close_notify` if the kernel takes it immediately, and close the socket. Idempotent."""
        if self.is_open:
            try:
                self._tls.unwrap()
            except (OSError, ValueError):
                pass  # usually because the server's `close_notify` is missing; this client does not wait for it
            self._flush()
        self._socket.close()

    def _is_agreed(self) -> bool:
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            return False
        return True

    def _flush_now(self) -> bool:
        """Encrypt and send what the kernel takes. Returns whether that was everything."""
        while self._socket.flush_now():
            if self._unencrypted and not self._outgoing.pending:
                self._encrypt()
            if not self._outgoing.pending:
                return True
            self._socket.send_now(self._outgoing.read())
        return False

    def _encrypt(self) -> None:
        try:
            self._unencrypted = self._unencrypted[self._tls.write(self._unencrypted[:_CHUNK]) :]
        except ssl.SSLError as error:
            raise trio.BrokenResourceError(str(error)) from error

    def _flush(self) -> None:
        """Send TLS's own messages if the kernel takes them; otherwise they leave with the next data."""
        try:
            if self._outgoing.pending and self._socket.flush_now():
                self._socket.send_now(self._outgoing.read())
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass  # the next read or write fails as well

    def _feed(self, data: bytes) -> None:
        if not data:
            self._has_ended = True
            return
        self._count(data)
        self._incoming.write(data)
        self._decrypt()

    def _decrypt(self) -> None:
        """Decrypt all complete records. After the end, and after a failure, nothing is read."""
        try:
            while (self._incoming.pending or self._tls.pending()) and not self._has_ended:
                part = self._tls.read(min(self._incoming.pending, _RECORD) or _RECORD)
                if part:
                    self._received.append(part)
                else:
                    self._has_ended = self.has_clean_end = True
        except ssl.SSLWantReadError:
            pass  # the record is not complete, or it was a message of TLS itself
        except ssl.SSLError as error:
            self._failure = error
        self._flush()

    def _count(self, data: bytes) -> None:
        """Follow the record headers, to find how much of the last record is missing."""
        is_at_start = not self._missing and not self._header
        if is_at_start and int.from_bytes(data[3:_HEADER]) == len(data) - _HEADER:
            return  # one whole record, as almost always
        data = self._header + data
        start = self._missing
        while start + _HEADER <= len(data):
            start += _HEADER + int.from_bytes(data[start + 3 : start + _HEADER])
        self._header = data[start:]
        self._missing = max(0, start - len(data))
