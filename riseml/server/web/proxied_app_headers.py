"""Which headers pass between a browser and the program of a job, at the address of a proxied app. Pure.

A program gets no cookie and no header that names the page. A browser gets only headers that describe the content, and
none that has an effect beyond this answer: no cookie, no redirect to another host, no service worker, no report to
another address.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import urljoin, urlsplit

RawHeaders = list[tuple[bytes, bytes]]

SAFE_HEADERS = {
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Origin-Agent-Cluster": "?1",
    "Permissions-Policy": "camera=(), display-capture=(), geolocation=(), microphone=(), serial=(), usb=()",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-DNS-Prefetch-Control": "off",
    "X-Frame-Options": "SAMEORIGIN",
}
"""Headers of every answer of a proxied app's host, whatever the program says."""

PROGRAM_POLICY = (
    "default-src 'self' 'unsafe-inline' 'unsafe-eval' data: blob:; object-src 'none'; base-uri 'self';"
    " form-action 'self'; frame-ancestors 'self'"
)
"""An additional Content-Security-Policy for the program's answers: it restricts the program to its own host."""

_NOT_ASKED = frozenset(
    {
        *(b"host", b"cookie", b"authorization", b"origin", b"referer", b"forwarded", b"via", b"expect"),
        *(b"connection", b"keep-alive", b"te", b"trailer", b"transfer-encoding", b"upgrade", b"content-length"),
        *(b"proxy-connection", b"proxy-authorization", b"service-worker"),
    }
)
_NOT_ASKED_BEGINNINGS = (b"sec-", b"x-riseml-", b"x-forwarded-")
_ANSWERED = frozenset(
    {
        *(b"content-type", b"content-length", b"content-encoding", b"content-language", b"content-disposition"),
        *(b"content-range", b"accept-ranges", b"cache-control", b"etag", b"expires", b"last-modified", b"age"),
        *(b"retry-after", b"content-security-policy", b"vary"),
    }
)
_OWN_PATH = re.compile(
    r"/(?![/\\])[!-\[\]-~]*", re.ASCII
)  # printable, without a backslash: browsers read it as a slash
_LONGEST_VALUE = 8192  # bytes


def choose_asked(headers: Iterable[tuple[bytes, bytes]]) -> RawHeaders:
    """Return the headers of a browser's request that its program gets; all names in lower case."""
    return [
        (name, value)
        for name, value in headers
        if name not in _NOT_ASKED and not name.startswith(_NOT_ASKED_BEGINNINGS)
    ]


def choose_answered(headers: Iterable[tuple[bytes, bytes]]) -> RawHeaders:
    """Return the headers of a program's answer that the browser gets; all names in lower case."""
    return [(name, value) for name, value in headers if name in _ANSWERED and len(value) <= _LONGEST_VALUE]


def find_own_place(location: bytes, requested_path: str, place: str) -> str | None:
    """Return where a redirect leads on the same host, as a path; None: it leads elsewhere.

    Args:
        location: what the program says.
        requested_path: the path of the request.
        place: the host and the port of the program as the request named them, `127.0.0.1:6006`.
    """
    try:
        target = urljoin(f"http://{place}{requested_path}", location.decode("ascii"))
        parts = urlsplit(target)
    except ValueError:
        return None
    if parts.scheme != "http" or parts.netloc != place:
        return None
    path = target.removeprefix(f"http://{place}") or "/"
    return path if _OWN_PATH.fullmatch(path) else None
