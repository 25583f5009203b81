"""Proofs of requests of a page: an HMAC of the request with its body, made with the page key, a challenge of this
server process and a random text. The server takes each proof once.

A session of a page has two halves: a cookie that scripts cannot read, and a page key that is never sent again. A cookie
that leaks is useless without the page key, and a page of another origin that lets the browser send the cookie has no
proof.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import threading
from collections.abc import Callable

_MOST_PROOFS = 10_000  # for one challenge
_NONCE = re.compile("[0-9a-f]{32}")


class PageProofs:
    """Checks the proofs of one server process. Several threads use it.

    Args:
        sign: returns the signature of a text with the key of the server.
    """

    def __init__(self, sign: Callable[[str], str]) -> None:
        self._sign = sign
        self._lock = threading.Lock()
        self.challenge = secrets.token_hex(16)  # each process has its own: proofs for an earlier one are refused
        self._used: set[str] = set()  # the random texts of proofs for this challenge

    def make_key(self, session: str) -> str:
        """Return the page key of a session."""
        return self._sign(f"page {session}")

    def is_proven(self, session: str, proof: str, request: str) -> bool:
        """Return True when the page key of the session made the proof for this request, and it comes once.

        Args:
            session: of the request.
            proof: a random text and the HMAC, with a dot between them.
            request: method, path and query (`GET /api/v1/server`); with a body, its SHA-256 in hex in a second line.
        """
        nonce, _, signature = proof.partition(".")
        if _NONCE.fullmatch(nonce) is None:
            return False
        with self._lock:
            text = f"{self.challenge}\n{nonce}\n{request}".encode("utf-8", "surrogatepass")
            expected = hmac.new(self.make_key(session).encode(), text, hashlib.sha256).hexdigest()
            if not is_equal(signature, expected) or nonce in self._used:
                return False
            self._used.add(nonce)
            if len(self._used) >= _MOST_PROOFS:  # pages get the new challenge with their next answer
                self._used.clear()
                self.challenge = secrets.token_hex(16)
        return True


def is_equal(received: str, expected: str) -> bool:
    """Compare two texts in a time that says nothing about where they differ."""
    return hmac.compare_digest(received.encode("utf-8", "surrogatepass"), expected.encode())
