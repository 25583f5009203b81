"""Projects whose contents go to a server early, and servers that take them."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from riseml.base.errors import Unreachable
from riseml.files.archives.manifest import write_manifest
from riseml.files.archives.pieces import INCOMING
from riseml.files.project.archive import take_snapshot
from riseml.files.project.early_contents import EarlyContents
from riseml.files.project.file_index import FileIndex
from riseml.files.project.handed_packs import hand_over_packs
from riseml.files.project.listing import list_project_files
from riseml.store.projects.snapshots import SnapshotStore
from tests.support.waiting import DEADLINE

CONTENT_TABLE = {"contents.db", "contents.db-shm", "contents.db-wal"}
FILES = {"a": "one", "b/c": "two", "d": "", "e": "one", "run.sh": "three"}


def write_files(folder: Path, files: Mapping[str, str]) -> Path:
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    return folder


def count_bytes(snapshots: Path) -> int:
    return sum(path.stat().st_size for path in (snapshots / "contents").glob("*.pack"))


def send_early(snapshots: SnapshotStore, early: EarlyContents, most: int | None = None) -> None:
    """Hand over the packs; the connection is broken after `most` of them."""
    hand_over_packs(early.pack(), incoming(snapshots), Taker(snapshots, most))


@dataclass
class Taker:
    """Takes packs without HTTP."""

    snapshots: SnapshotStore
    most: int | None
    taken: Iterator[int] = field(default_factory=itertools.count)

    def hand_over_pack(self, name: str) -> None:
        if self.most is not None and next(self.taken) >= self.most:
            raise Unreachable("the connection broke")
        self.snapshots.take_pack(name)

    def close(self) -> None:
        """Do nothing: there is no connection."""


class HungTaker:
    """A client whose server does not answer, until the client is closed."""

    def __init__(self) -> None:
        self.asked, self.closed = threading.Event(), threading.Event()

    def hand_over_pack(self, _: str) -> None:
        self.asked.set()
        assert self.closed.wait(DEADLINE)
        raise Unreachable("the connection was closed")

    def close(self) -> None:
        self.closed.set()


def incoming(snapshots: SnapshotStore) -> Path:
    return snapshots._folder / INCOMING


def sync(snapshots: SnapshotStore, folder: Path) -> tuple[str, list[str]]:
    """Sync as `riseml train` does with a server on this machine; return the digest, and what was still missing."""
    index = FileIndex(folder)
    early = EarlyContents(list_project_files(folder, index=index), index)
    send_early(snapshots, early)
    snapshot = take_snapshot(early.name_entries(), index)
    return snapshot.digest, snapshots.receive_manifest(snapshot.digest, write_manifest(snapshot.entries))
