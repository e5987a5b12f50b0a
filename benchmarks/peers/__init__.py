"""Alternatives that run in this process, one file each."""

from __future__ import annotations

from .._backends import ASYNCIO
from .._contenders import Contender
from .with_aiometer import amap
from .with_aiostream import mapped
from .with_asyncio import gather
from .with_streamable import streamed

__all__ = ["PEERS"]

PEERS = (
    Contender("asyncio by hand", gather, backend=ASYNCIO, has_stream=False),
    Contender("aiometer (no timeout, no order)", amap, package="aiometer"),
    Contender("aiostream (no timeout)", mapped(ordered=True), backend=ASYNCIO, package="aiostream"),
    Contender("aiostream, unordered (no timeout)", mapped(ordered=False), backend=ASYNCIO, package="aiostream"),
    Contender("streamable (no timeout)", streamed(as_completed=False), backend=ASYNCIO, package="streamable"),
    Contender(
        "streamable, as completed (no timeout)", streamed(as_completed=True), backend=ASYNCIO, package="streamable"
    ),
)
