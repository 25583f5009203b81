"""A connection between a gang's supervisor and one of its roles: one JSON object per line, and heartbeats.

A network partition does not end a connection. So both sides send a line every `BEAT` seconds, and each counts the other
as gone after `SILENCE` seconds without a line.

Programs on the network can reach both sides, and may read and change what travels. So each line proves that its sender
knows the token of the gang:

1. The supervisor sends a random text, its challenge.
2. The first line of the role has a random text of its own, the nonce. Both sides compute the key of this connection
   from the token, the challenge and the nonce.
3. Each line is `{"text": JSON, "proof": HMAC}`. The HMAC is over the side that sends, the number of the line and the
   text, so that no line can be changed, left out, repeated, sent back, or taken from another connection.

Python 3.6 or newer, standard library only. It never imports riseml: nodes do not have it.
"""

import hashlib
import hmac
import json
import os
import re
import socket
import time
from typing import Any

BEAT = 5.0  # seconds between two lines over the connection
SILENCE = 60.0  # seconds without a line after which the other side counts as gone
_SUSPENDED = 20.0  # if more seconds pass between two heartbeats, this process was suspended
SUPERVISOR = "supervisor"  # the sides of a connection
ROLE = "role"
_RANDOM_TEXT = re.compile("[0-9a-f]{32}")  # a challenge, or a nonce
_HOST = re.compile("[A-Za-z0-9_][A-Za-z0-9_.:%-]{0,254}")  # a name or an address; a shell and JSON leave it as it is
_PORT = re.compile("[0-9]{1,5}")
_LAST_PORT = 65535
_READ_SIZE = 1 << 16
_LONGEST_LINE = 1 << 20  # bytes


def prove(token: str, side: str, *texts: str) -> str:
    """Return the proof that one side of a connection knows the token of the gang: an HMAC over its side and the texts.

    The token itself is never sent: it lets callers into all roles (`role_server`).
    """
    return hmac.new(token.encode(), "\n".join((side, *texts)).encode(), hashlib.sha256).hexdigest()


def is_proven(proof: object, token: str, side: str, *texts: str) -> bool:
    """Return True when `proof` is the proof of that side. Any program on the network may have sent `proof`."""
    return hmac.compare_digest(prove(token, side, *texts).encode(), str(proof).encode("utf-8", "replace"))


def read_line(connection: socket.socket) -> bytes:
    """Return the next line, without reading any byte after it.

    Raises:
        OSError: the connection ends before it, or it is too long.
    """
    line = bytearray()
    while not line.endswith(b"\n"):
        data = connection.recv(1) if len(line) < _LONGEST_LINE else b""
        if not data:
            raise OSError("the connection was closed")
        line += data
    return bytes(line)


def is_host(value: object) -> bool:
    """Return True for the name or the address of a machine, which may become a part of a shell line."""
    return isinstance(value, str) and _HOST.fullmatch(value) is not None


def is_address(value: object) -> bool:
    """Return True for `host:port`, of which both may become parts of a shell line."""
    host, _, port = value.rpartition(":") if isinstance(value, str) else ("", "", "")
    return is_host(host) and _PORT.fullmatch(port) is not None and is_port(int(port))


def is_port(value: object) -> bool:
    """Return True for a TCP port at which a program can listen."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value <= _LAST_PORT


class LineConnection:
    """A connection that carries one JSON object a line, each with the proof of its sender.

    Args:
        connection: the connected socket.
        token: of the gang.
        side: of this process, SUPERVISOR or ROLE.
    """

    def __init__(self, connection: socket.socket, token: str, side: str) -> None:
        self.connection = connection
        self.heard = time.monotonic()  # when the last line arrived
        self.sent_at = time.monotonic()
        self._token = token
        self._side = side
        self._challenge = ""
        self._key = ""  # key of this connection; empty until both sides have it
        self._sent = 0  # lines with a proof, of this side
        self._received = 0  # lines with a proof, of the other side
        self._looked = time.monotonic()
        self._tail = b""

    def challenge(self) -> None:
        """Send the challenge; the supervisor does so once, first of all.

        Raises:
            OSError: the other side is gone.
        """
        self._challenge = os.urandom(16).hex()
        self._send_line({"challenge": self._challenge})

    def introduce(self, hello: "dict[str, Any]") -> None:
        """Answer the challenge that `receive` has returned, with the first message of a role.

        Raises:
            OSError: the other side is gone.
        """
        nonce = os.urandom(16).hex()
        self._key = self._derive_key(nonce)
        self._send_line(dict(self._seal(hello), nonce=nonce))

    def send(self, message: "dict[str, Any]") -> None:
        """Send one object.

        Raises:
            OSError: the other side is gone.
        """
        self._send_line(self._seal(message))

    def _send_line(self, line: "dict[str, Any]") -> None:
        self.sent_at = time.monotonic()
        self.connection.sendall(json.dumps(line).encode() + b"\n")

    def _derive_key(self, nonce: str) -> str:
        return prove(self._token, "session", self._challenge, nonce)

    def _seal(self, message: "dict[str, Any]") -> "dict[str, Any]":
        text = json.dumps(message)
        proof = prove(self._key, self._side, str(self._sent), text)
        self._sent += 1
        return {"text": text, "proof": proof}

    def beat(self) -> None:
        """Send a heartbeat when one is due.

        A process that Slurm has suspended received nothing in that time. The other side, which may have been suspended
        as well, gets some seconds to send a heartbeat.
        """
        now = time.monotonic()
        if now - self._looked > _SUSPENDED:
            self.heard = max(self.heard, now - SILENCE + _SUSPENDED)
        self._looked = now
        if self._key and now - self.sent_at >= BEAT:
            self.send({})

    def is_silent(self) -> bool:
        """Return True when nothing has come for too long."""
        return time.monotonic() - self.heard > SILENCE

    def receive(self) -> "list[dict[str, Any]] | None":
        """Return the objects that have arrived; None when the other side is gone, or does not belong to the gang.

        To a role, the first one is the challenge of the supervisor, which has no proof.
        """
        try:
            data = self.connection.recv(_READ_SIZE)
        except OSError:
            return None
        if not data:
            return None
        *lines, self._tail = (self._tail + data).split(b"\n")
        if len(self._tail) > _LONGEST_LINE:
            return None
        try:
            return [self._open_line(line) for line in lines if line.strip()]
        except (ValueError, RecursionError):  # a stranger
            return None

    def _open_line(self, line: bytes) -> "dict[str, Any]":
        """Return what a line holds.

        Raises:
            ValueError: the other side did not send it, or did not send it now.
        """
        envelope = json.loads(line.decode())
        if not isinstance(envelope, dict):
            raise ValueError("it is not an object")
        if not self._challenge:
            return self._take_challenge(envelope)
        if not self._key and self._side == SUPERVISOR:
            self._key = self._derive_key(_check_random(envelope.get("nonce")))
        text = str(envelope.get("text"))
        number = str(self._received)
        other = ROLE if self._side == SUPERVISOR else SUPERVISOR
        if not self._key or not is_proven(envelope.get("proof"), self._key, other, number, text):
            raise ValueError("it has no proof")
        self._received += 1
        self.heard = time.monotonic()
        message = json.loads(text)
        if not isinstance(message, dict):
            raise ValueError("it holds no object")
        return message

    def _take_challenge(self, line: "dict[str, Any]") -> "dict[str, Any]":
        if self._side == SUPERVISOR:
            raise ValueError("it came before the challenge")
        self._challenge = _check_random(line.get("challenge"))
        return {"challenge": self._challenge}


def _check_random(value: object) -> str:
    if not isinstance(value, str) or _RANDOM_TEXT.fullmatch(value) is None:
        raise ValueError("it is not a random text of the other side")
    return value
