"""One request to a webhook: without redirects and proxies, with a limit for the answer and a deadline."""

from __future__ import annotations

import contextlib
import http.client
import socket
import ssl
import threading
from collections.abc import Mapping
from urllib.parse import urlsplit

DEADLINE = 15.0  # seconds that a request takes at most


class NotDelivered(Exception):
    """The address did not accept the message; the text says why, without the address."""


def post(url: str, body: bytes, headers: Mapping[str, str], deadline: float = DEADLINE) -> int:
    """Send a body, and return the status of the answer: 200 to 299.

    Raises:
        NotDelivered: the answer has another status, or none came in time.
    """
    parts = urlsplit(url)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    connection = _make_connection(parts.scheme, parts.hostname or "", parts.port, deadline)
    end = threading.Timer(deadline, _cut_request, [connection])  # a socket's own timeout restarts with each byte
    end.daemon = True
    try:
        connection.connect()  # it may take longer than the deadline, and the timer finds no socket until then
        end.start()
        connection.request("POST", target, body, dict(headers))
        status = connection.getresponse().status
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise NotDelivered(_describe_error(error)) from None
    finally:
        end.cancel()
        connection.close()
    if not 200 <= status <= 299:
        why = "a redirect, which is not followed" if 300 <= status <= 399 else f"status {status}"
        raise NotDelivered(f"it answered with {why}")
    return status


def _make_connection(scheme: str, host: str, port: int | None, deadline: float) -> http.client.HTTPConnection:
    """Return a connection that is not open yet. It names the port: without one, http.client takes the end of an IPv6
    address for it.
    """
    if scheme == "https":
        context = ssl.create_default_context()
        return http.client.HTTPSConnection(host, port or http.client.HTTPS_PORT, timeout=deadline, context=context)
    return http.client.HTTPConnection(host, port or http.client.HTTP_PORT, timeout=deadline)


def _cut_request(connection: http.client.HTTPConnection) -> None:
    """End a request whose time is over; the thread that waits for it gets an error."""
    open_socket: socket.socket | None = connection.sock
    if open_socket is not None:
        with contextlib.suppress(OSError):
            open_socket.shutdown(socket.SHUT_RDWR)


def _describe_error(error: Exception) -> str:
    """Return why there is no answer: the kind of an error, since its text may hold the address."""
    if isinstance(error, TimeoutError):
        return "no answer came in time"
    if isinstance(error, ssl.SSLError):
        return f"no secure connection: {error.reason or 'the certificate cannot be trusted'}"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return f"no answer that can be read ({type(error).__name__})"
