"""A connection between a gang's supervisor and one of its roles: one JSON object per line, and heartbeats.

A network partition does not end a connection. So both sides send a line every `BEAT` seconds, and each counts the other
as gone after `SILENCE` seconds without a line.

Python 3.6 or newer, standard library only. It never imports riseml: nodes do not have it.
"""

import hashlib
import hmac
import json
import socket
import time
from typing import Any

BEAT = 5.0  # seconds between two lines over the connection
SILENCE = 60.0  # seconds without a line after which the other side counts as gone
_SUSPENDED = 20.0  # if more seconds pass between two heartbeats, this process was suspended
_READ_SIZE = 1 << 16
_LONGEST_LINE = 1 << 20  # bytes


def prove(token: str, side: str, *texts: str) -> str:
    """Return the proof that one side of a connection knows the token of the gang: an HMAC over its side and the texts.

    The token itself is never sent: it opens the doors of all roles (`role_door`).
    """
    return hmac.new(token.encode(), "\n".join((side, *texts)).encode(), hashlib.sha256).hexdigest()


def is_proven(proof: object, token: str, side: str, *texts: str) -> bool:
    """Return True when `proof` is the proof of that side. Any program on the network may have sent `proof`."""
    return hmac.compare_digest(prove(token, side, *texts).encode(), str(proof).encode("utf-8", "replace"))


def read_line(door: socket.socket) -> bytes:
    """Return the next line, without reading any byte after it.

    Raises:
        OSError: the connection ends before it, or it is too long.
    """
    line = bytearray()
    while not line.endswith(b"\n"):
        data = door.recv(1) if len(line) < _LONGEST_LINE else b""
        if not data:
            raise OSError("the connection was closed")
        line += data
    return bytes(line)


class LineConnection:
    """A connection that carries one JSON object a line."""

    def __init__(self, door: socket.socket) -> None:
        self.door = door
        self.heard = time.monotonic()  # when the last bytes arrived
        self.said = time.monotonic()
        self._looked = time.monotonic()
        self._rest = b""

    def send(self, message: "dict[str, Any]") -> None:
        """Send one object.

        Raises:
            OSError: the other side is gone.
        """
        self.said = time.monotonic()
        self.door.sendall(json.dumps(message).encode() + b"\n")

    def beat(self) -> None:
        """Send a heartbeat when one is due.

        A process that Slurm has suspended received nothing in that time. The other side, which may have been suspended
        as well, gets some seconds to send a heartbeat.
        """
        now = time.monotonic()
        if now - self._looked > _SUSPENDED:
            self.heard = max(self.heard, now - SILENCE + _SUSPENDED)
        self._looked = now
        if now - self.said >= BEAT:
            self.send({})

    def is_silent(self) -> bool:
        """Return True when nothing has come for too long."""
        return time.monotonic() - self.heard > SILENCE

    def receive(self) -> "list[dict[str, Any]] | None":
        """Return the objects that have arrived; None when the other side is gone, or does not belong to the gang."""
        try:
            data = self.door.recv(_READ_SIZE)
        except OSError:
            return None
        if not data:
            return None
        self.heard = time.monotonic()
        *lines, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > _LONGEST_LINE:
            return None
        try:
            found = [json.loads(line.decode()) for line in lines if line.strip()]
        except (ValueError, RecursionError):  # a stranger
            return None
        return found if all(isinstance(one, dict) for one in found) else None
