"""The SSL context of a transport, made at its first HTTPS request."""

from __future__ import annotations

import ssl

import httpx

__all__ = ["Certificate", "SslContext", "Verify"]

Verify = ssl.SSLContext | str | bool
Certificate = str | tuple[str, str] | tuple[str, str, str]


class SslContext:
    """Makes an `ssl.SSLContext` when it is needed, once: this takes about 100 ms.

    Args:
        verify, cert, trust_env: As for `httpx.create_ssl_context`.
    """

    def __init__(self, verify: Verify, cert: Certificate | None, *, trust_env: bool) -> None:
        self._verify = verify
        self._cert = cert
        self._trust_env = trust_env
        self._made: ssl.SSLContext | None = None

    def get(self) -> ssl.SSLContext:
        """Return the context.

        Raises:
            httpx.ConnectError: The certificates cannot be loaded.
        """
        if self._made is None:
            try:
                self._made = httpx.create_ssl_context(verify=self._verify, cert=self._cert, trust_env=self._trust_env)
            except OSError as error:
                raise httpx.ConnectError(f"cannot load the certificates for TLS: {error}") from error
        return self._made
