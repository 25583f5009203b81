"""Notes about the copies of sets on hosts that do not see the server's cache: a small file for each host.

A note is written before its volume is made, and dropped after the volume is removed, so that no volume is forgotten.
"""

from __future__ import annotations

import json
import logging
import os
import threading
from dataclasses import asdict
from pathlib import Path

from riseml.base.folders import make_private
from riseml.base.names import HostName
from riseml.base.records import dataclass

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class HostCopy:
    """The copy of a set on one host."""

    key: str  # key of the set
    volume: str  # its name on the host
    url: str  # where the set came from
    size: int  # bytes of the whole set
    arrived: int  # files of it that are there
    whole: bool  # all files are there, and were compared with the set
    used: float  # when an experiment last requested it, seconds since the epoch


class HostCopies:
    """The notes of a server. Several threads use it at the same time.

    Args:
        folder: where the files are; it is made with the first one.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._copies = {HostName(path.stem): _read(path) for path in _list(folder)}

    def list_hosts(self) -> list[HostName]:
        """Return the hosts that have, or had, a copy."""
        with self._lock:
            return sorted(self._copies)

    def list_copies(self, host: HostName) -> list[HostCopy]:
        """Return the copies on a host, the least recently used first."""
        with self._lock:
            return sorted(self._copies.get(host, {}).values(), key=lambda copy: copy.used)

    def find_copy(self, host: HostName, key: str) -> HostCopy | None:
        """Return the copy of a set on a host."""
        with self._lock:
            return self._copies.get(host, {}).get(key)

    def note(self, host: HostName, copy: HostCopy) -> None:
        """Store the note about a copy, in place of an earlier one.

        Raises:
            OSError: the folder cannot be written.
        """
        with self._lock:
            self._write(host, {**self._copies.get(host, {}), copy.key: copy})

    def drop(self, host: HostName, key: str) -> None:
        """Forget a copy. Where the disk is full, its note stays there until the next one is written: the next server
        compares what it knows with the volumes of the host.
        """
        with self._lock:
            self._copies[host] = {other: copy for other, copy in self._copies.get(host, {}).items() if other != key}
            try:
                self._write(host, self._copies[host])
            except OSError as error:
                log.warning("the copy %s of host %s stays noted in %s: %s", key, host, self._folder, error.strerror)

    def _write(self, host: HostName, copies: dict[str, HostCopy]) -> None:
        make_private(self._folder)
        path = self._folder / f"{host}.json"
        new = path.with_suffix(".new")
        with open(new, "w", encoding="utf-8") as file:
            json.dump([asdict(copy) for copy in copies.values()], file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(new, path)
        self._copies[host] = copies


def _list(folder: Path) -> list[Path]:
    try:
        return [path for path in folder.iterdir() if path.suffix == ".json"]
    except OSError:  # it is not there yet
        return []


def _read(path: Path) -> dict[str, HostCopy]:
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))
        return {row["key"]: HostCopy(**row) for row in rows}
    except (OSError, ValueError, KeyError, TypeError):  # a crash of the machine cut it off: volumes are listed again
        return {}
