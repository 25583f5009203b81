"""How the server speaks HTTP and WebSocket, on its unix socket and on the port of the web page alike."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from riseml.base.stream_messages import LONGEST_MESSAGE

_LONGEST_HEAD = 64 << 10  # bytes; the cursor of the logs of 1,000 experiments has up to 41,000
_LAST_ANSWERS = 1  # seconds that pending answers get when the listener closes


def configure_http(api: ASGIApp, connection: type[H11Protocol] = H11Protocol) -> uvicorn.Config:
    """Return how uvicorn serves `api`. No pings: a client that its user has stopped (Ctrl-Z) is not gone.

    Args:
        api: answers.
        connection: speaks HTTP on one connection. h11 limits the size of headers; httptools, which uvicorn takes where
            it is installed, does not.
    """
    return uvicorn.Config(
        api,
        http=connection,
        log_config=None,
        access_log=False,
        lifespan="off",
        server_header=False,
        timeout_graceful_shutdown=_LAST_ANSWERS,
        h11_max_incomplete_event_size=_LONGEST_HEAD,
        ws=cast(type[asyncio.Protocol], _make_stream_protocol),
        ws_max_size=LONGEST_MESSAGE,
        ws_ping_interval=None,
        ws_per_message_deflate=False,
    )


def _make_stream_protocol(**options: Any) -> asyncio.Protocol:
    """Return what speaks WebSocket on a connection that has asked for it; uvicorn calls this with its options.

    Its library is imported when the first stream is opened: an idle server, and one whose users follow no stream into a
    job, do without its 0.7 MiB.
    """
    from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

    return WebSocketsSansIOProtocol(**options)
