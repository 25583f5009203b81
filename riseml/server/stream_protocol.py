"""The WebSockets of the server, whose library is imported when the first one is opened.

An idle server and one whose users follow no stream into a job do without its 0.7 MiB.
"""

from __future__ import annotations

import asyncio
from typing import Any


def make_stream_protocol(**options: Any) -> asyncio.Protocol:
    """Return what speaks WebSocket on a connection that has asked for it; uvicorn calls this with its options."""
    from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

    return WebSocketsSansIOProtocol(**options)
