"""The key with which Prometheus reads /metrics of a team's server, and nothing else: a file that an admin writes.

Its text is compared by digests of equal length, so that the time says nothing about how much of a wrong key is right.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import os
import threading
from pathlib import Path

from riseml.base.errors import RisemlError, UsageError
from riseml.base.folders import read_private_file
from riseml.base.roles import Role
from riseml.base.roles import Scope as KeyScope
from riseml.model import Caller, Owner

SCRAPER = Caller(Owner("prometheus", 0, 0), Role.ADMIN, KeyScope.READ, key="scrape")
"""Who scrapes: the table asks for an admin. The gate lets this caller read /metrics alone."""

_LEAST = 20  # characters
_MOST = 4096  # bytes

_FileStamp = tuple[int, int, int, int]  # inode, size in bytes, time of modification in nanoseconds, mode

log = logging.getLogger(__name__)


class ScrapeKey:
    """The key in a file, read again when the file has changed. Safe from many threads.

    Args:
        path: of the file.

    Raises:
        UsageError: it has no key that is long enough, or is not there.
        Refused: other users can read it.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._stamp = self._read_stamp()
        self._digest: bytes | None = self._read_digest()  # None: the file cannot be used, and no key is right

    def is_right(self, token: str) -> bool:
        """Return True when this is the key of the file as it is now."""
        digest = hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()
        with self._lock:
            self._refresh()
            present = self._digest
        return hmac.compare_digest(digest, present or bytes(len(digest))) and present is not None

    def _refresh(self) -> None:
        stamp = self._read_stamp()
        if stamp == self._stamp:
            return
        self._stamp = stamp
        try:
            self._digest = self._read_digest()
        except RisemlError as error:
            self._digest = None
            log.error("%s; until then Prometheus cannot read /metrics with a key of its own", error.message)
        else:
            log.info("the key in %s was read again", self._path)

    def _read_stamp(self) -> _FileStamp | None:
        try:
            status = os.stat(self._path)
        except OSError:
            return None
        return status.st_ino, status.st_size, status.st_mtime_ns, status.st_mode

    def _read_digest(self) -> bytes:
        content = read_private_file(self._path, _MOST)
        text = b"" if content is None else content.strip()
        if len(text) < _LEAST:
            raise UsageError(
                f"{self._path}, which `scrape_key_file` of server.yml names, has no key of {_LEAST} characters or more",
                f"write one there: `openssl rand -hex 32 > {self._path}`",
            )
        return hashlib.sha256(text).digest()
