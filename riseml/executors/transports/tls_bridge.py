"""A TLS connection as a plain socket: one thread copies between both.

asyncio takes no socket that has TLS already, and an SSL object must not be read and written by two threads at once.
"""

from __future__ import annotations

import logging
import select
import socket
import ssl
import threading

_CHUNK = 65536  # bytes

log = logging.getLogger(__name__)


def bridge_tls(secure: ssl.SSLSocket) -> socket.socket:
    """Return a plain socket that carries what `secure` carries, and ends as it ends. The bridge closes `secure`."""
    caller_end, bridge_end = socket.socketpair()
    for end in (secure, bridge_end):
        end.settimeout(0.0)
    threading.Thread(target=_TlsBridge(secure, bridge_end).run, name="tls-bridge", daemon=True).start()
    return caller_end


class _TlsBridge:
    """Copies both ways, with a buffer of one piece for each."""

    def __init__(self, secure: ssl.SSLSocket, plain: socket.socket) -> None:
        self._secure = secure
        self._plain = plain
        self._to_secure = self._to_plain = b""
        self._secure_ended = self._plain_ended = False  # this side sends nothing more
        self._shut_secure = self._shut_plain = False  # the end of the other side was passed on to this side

    def run(self) -> None:
        """Copy until both directions have ended, or one side is gone."""
        try:
            while not (self._shut_secure and self._shut_plain) and self._wait():
                self._copy_once()
        except OSError as error:  # ssl.SSLError is one
            log.debug("a connection over TLS ended: %s", error)
        finally:
            self._secure.close()
            self._plain.close()

    def _wait(self) -> bool:
        """Wait until there is something to copy; False when the plain side is gone."""
        poll = select.poll()
        reads_secure = not self._secure_ended and not self._to_plain
        reads_plain = not self._plain_ended and not self._to_secure
        poll.register(self._secure, reads_secure * select.POLLIN | bool(self._to_secure) * select.POLLOUT)
        poll.register(self._plain, reads_plain * select.POLLIN | bool(self._to_plain) * select.POLLOUT)
        has_more = reads_secure and self._secure.pending() > 0
        events = dict(poll.poll(0 if has_more else None))
        hangup = events.get(self._plain.fileno(), 0) & (select.POLLHUP | select.POLLERR)
        return not hangup or bool(events[self._plain.fileno()] & select.POLLIN)

    def _copy_once(self) -> None:
        if not self._to_plain and not self._secure_ended:
            self._to_plain, self._secure_ended = self._receive_bytes(self._secure)
        if not self._to_secure and not self._plain_ended:
            self._to_secure, self._plain_ended = self._receive_bytes(self._plain)
        self._to_plain = self._send_bytes(self._plain, self._to_plain)
        self._to_secure = self._send_bytes(self._secure, self._to_secure)
        if self._secure_ended and not self._to_plain and not self._shut_plain:
            self._plain.shutdown(socket.SHUT_WR)
            self._shut_plain = True
        if self._plain_ended and not self._to_secure and not self._shut_secure:
            self._say_end()

    def _say_end(self) -> None:
        """Send the end of TLS (close_notify). The other side may go on sending."""
        self._shut_secure = True
        try:
            self._secure.unwrap()
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            return  # close_notify is sent; the other side answers by ending its own direction

    @staticmethod
    def _receive_bytes(source: socket.socket) -> tuple[bytes, bool]:
        """Return what is there now, and whether nothing follows it."""
        try:
            data = source.recv(_CHUNK)
        except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
            return b"", False
        return data, not data

    @staticmethod
    def _send_bytes(target: socket.socket, data: bytes) -> bytes:
        """Send what the other side takes now; return the rest."""
        if not data:
            return b""
        try:
            return data[target.send(data) :]
        except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
            return data
