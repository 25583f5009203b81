"""Snapshots: the project archives of experiments, by digest; each is a tar with a JSON list of its files beside it.

The server computes the digest from the bytes that it got, and does not trust the digest that a client names. The first
upload of a digest stays: a later one with the same content changes nothing.
"""

from __future__ import annotations

import asyncio
import errno
import json
import logging
import os
import re
import shutil
import tempfile
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from riseml.archives.entries import ArchiveEntry, EntryKind
from riseml.archives.reader import read_entries
from riseml.errors import NotFound, StoreError, TooLarge, TooSlow, UsageError
from riseml.planning.image import Manifest
from riseml.settings import DEFAULT_UPLOAD_LIMIT
from riseml.store.project_archive import ArchiveContents, ArchivedTexts, copy_archive, flush_to_disk

_DIGEST = re.compile(r"[0-9a-f]{64}")
_CHECK_INTERVAL = 1 << 26  # bytes of an upload between two checks of the free space
_PROGRESS = 1 << 20  # bytes of an upload that give its client the whole patience again
_PATIENCE = 600.0  # seconds for so many bytes: a laptop may sleep, or the user may stop the command for a while
_RESERVE = 1 << 28  # bytes of the disk that an upload leaves free: the store is on the same disk
_LIST, _FORMER_LIST = ".files", ".json"
"""Suffixes of the list of files. What an earlier version stored has the second one, and is checked when it is used."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class StoredSnapshot:
    """A snapshot that is on the server."""

    digest: str  # SHA-256 in hex
    size: int  # bytes
    used: float  # when it was last uploaded or asked for, in seconds since 1970


class SnapshotStore:
    """The snapshots below one folder, which belongs to one server. A snapshot is there whole or not at all.

    Args:
        folder: is created when it is missing; what an upload that was cut off left there is removed.
        most: bytes that an upload may have.
        patience: seconds in which 1 MiB of an upload must arrive, or its end.
    """

    def __init__(self, folder: Path, most: int = DEFAULT_UPLOAD_LIMIT, patience: float = _PATIENCE) -> None:
        self._folder = folder
        self._most = most
        self._patience = patience
        self._adding = threading.Lock()  # one snapshot appears at a time
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        for left in folder.glob("*.part"):
            left.unlink()

    def has_snapshot(self, digest: str) -> bool:
        """True when the snapshot is there; the question counts as a use, so that a clean-up keeps it for a while.

        Raises:
            UsageError: the text is no digest.
        """
        there = self._is_stored(digest) or self._adopt_former(digest)
        if there:
            os.utime(self._listing_path(digest))
        return there

    def find_archive(self, digest: str) -> Path | None:
        """Return the path of a snapshot's tar; None: it is not there.

        Raises:
            UsageError: the text is no digest.
        """
        return self.archive_path(digest) if self.has_snapshot(digest) else None

    def archive_path(self, digest: str) -> Path:
        """Return the path of a snapshot's tar, whether it is there or not.

        Raises:
            UsageError: the text is no digest.
        """
        if not _DIGEST.fullmatch(digest):
            raise UsageError(f"{digest[:80]!r} is not the digest of a project", "it is a SHA-256 in hex")
        return self._folder / f"{digest}.tar"

    def load_manifest(self, digest: str) -> Manifest:
        """Return the list of a snapshot's files.

        Raises:
            NotFound: the snapshot is not on the server.
        """
        if not self.has_snapshot(digest):
            raise NotFound(f"the project's files {digest[:12]} are not on the server", "run `riseml train` again")
        found = json.loads(self._listing_path(digest).read_text("utf-8", "surrogateescape"))
        places = {path: (at, size) for path, (at, size) in found["texts"].items()}
        return Manifest(found["files"], ArchivedTexts(self.archive_path(digest), places))

    def list_files(self, digest: str) -> tuple[ArchiveEntry, ...]:
        """Return the files, links and empty folders of a project's state, each file with the SHA-256 of its content.

        Raises:
            NotFound: the snapshot is not on the server.
            UsageError: the text is no digest.
        """
        contents = self.load_manifest(digest).files
        with self.archive_path(digest).open("rb") as file:
            return tuple(
                replace(entry, content=contents[entry.path][1:]) if entry.kind is EntryKind.FILE else entry
                for entry, _ in read_entries(file)
            )

    def list_snapshots(self) -> list[StoredSnapshot]:
        """Return every snapshot that is there."""
        lists = {path.stem: path for suffix in (_FORMER_LIST, _LIST) for path in self._folder.glob(f"*{suffix}")}
        found = [(path, path.with_suffix(".tar")) for _, path in sorted(lists.items())]
        return [
            StoredSnapshot(listing.stem, tar.stat().st_size, listing.stat().st_mtime)
            for listing, tar in found
            if tar.exists()
        ]

    def remove_snapshot(self, digest: str) -> None:
        """Remove a snapshot; a missing one is no error."""
        self._listing_path(digest).unlink(missing_ok=True)
        self._former_listing_path(digest).unlink(missing_ok=True)
        self.archive_path(digest).unlink(missing_ok=True)

    async def receive_archive(self, digest: str, chunks: AsyncIterator[bytes]) -> None:
        """Store an uploaded tar, unless a snapshot with this digest is there already.

        Raises:
            UsageError: it is no plain tar, holds something else than files, folders and links inside the project, or
                has another digest.
            TooLarge: it has too many bytes or files.
            TooSlow: it came to a stop.
            StoreError: the disk is full.
        """
        self.archive_path(digest)  # refuse a text that is no digest before anything is read
        with _refuse_full_disk(self._folder), _part_file(self._folder) as upload:
            await self._save_in_time(chunks, upload)
            await asyncio.to_thread(self._keep_copy, digest, upload)

    def _keep_copy(self, digest: str, upload: Path) -> None:
        """Write a checked copy of an archive, and keep it when it has this digest."""
        with _part_file(self._folder) as tar, _part_file(self._folder) as listing:
            contents = copy_archive(upload, tar)
            if contents.digest != digest:
                raise UsageError(
                    f"the project's files have the digest {contents.digest}, and were sent as {digest}",
                    "run the command again: a file may have changed on the way",
                )
            _write_listing(listing, contents)
            with self._adding:
                if not self._is_stored(digest):
                    os.replace(tar, self.archive_path(digest))
                    os.replace(listing, self._listing_path(digest))
                self._former_listing_path(digest).unlink(missing_ok=True)

    def _is_stored(self, digest: str) -> bool:
        return self._listing_path(digest).exists() and self.archive_path(digest).exists()

    def _adopt_former(self, digest: str) -> bool:
        """Check what an earlier version stored under a digest, and keep a copy; return False when there is none.

        An earlier version did not check the digest, and stored the owner in the archive.
        """
        if not self._former_listing_path(digest).exists():
            return False
        try:
            with _refuse_full_disk(self._folder):
                self._keep_copy(digest, self.archive_path(digest))
        except (UsageError, TooLarge, FileNotFoundError) as error:
            log.warning("the files that an earlier version stored as %s are not used: %s", digest[:12], error)
            return False
        return True

    async def _save_in_time(self, chunks: AsyncIterator[bytes], path: Path) -> None:
        try:
            async with asyncio.timeout(self._patience) as bound:
                await self._save_upload(chunks, path, bound)
        except TimeoutError:
            raise TooSlow(
                f"the project's files stopped coming: less than 1 MiB in {self._patience:g} s", "run the command again"
            ) from None

    async def _save_upload(self, chunks: AsyncIterator[bytes], path: Path, bound: asyncio.Timeout) -> None:
        now = asyncio.get_running_loop().time
        size = checked = renewed = 0
        with path.open("wb") as file:
            async for chunk in chunks:
                size += len(chunk)
                if size - renewed >= _PROGRESS:
                    renewed = size
                    bound.reschedule(now() + self._patience)
                if size > self._most:
                    raise TooLarge(
                        f"the project has more than {self._most:,} bytes, which is the most that this server takes",
                        "name what is big in .risemlignore, or start the server with a larger RISEML_UPLOAD_LIMIT",
                    )
                if size - checked >= _CHECK_INTERVAL:
                    checked = size
                    if shutil.disk_usage(self._folder).free < _RESERVE:
                        raise OSError(errno.ENOSPC, "no space left")
                file.write(chunk)

    def _listing_path(self, digest: str) -> Path:
        return self.archive_path(digest).with_suffix(_LIST)

    def _former_listing_path(self, digest: str) -> Path:
        return self.archive_path(digest).with_suffix(_FORMER_LIST)


@contextmanager
def _part_file(folder: Path) -> Iterator[Path]:
    """Give a new file that is removed at the end unless it was renamed; two clients may upload the same project."""
    descriptor, name = tempfile.mkstemp(dir=folder, suffix=".part")
    os.close(descriptor)
    try:
        yield Path(name)
    finally:
        Path(name).unlink(missing_ok=True)


@contextmanager
def _refuse_full_disk(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise
        raise StoreError(
            f"the disk of {folder} is full: the project's files were not taken", "free some space, then run again"
        ) from error


def _write_listing(path: Path, contents: ArchiveContents) -> None:
    with path.open("w", encoding="utf-8", errors="surrogateescape") as file:
        json.dump({"files": contents.files, "texts": contents.texts}, file, ensure_ascii=False)
        flush_to_disk(file)
