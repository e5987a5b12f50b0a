"""StackClient: httpx.AsyncClient, on the transport of this package."""

from __future__ import annotations
import httpx


class StackClient(httpx.AsyncClient):
    """`httpx.AsyncClient`."""
