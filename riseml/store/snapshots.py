"""Snapshots: the project archives of experiments, by digest; each is a tar with a JSON list of its files beside it."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import re
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from riseml.errors import NotFound, StoreError, TooLarge, UsageError
from riseml.model import Owner
from riseml.planning.image import Manifest
from riseml.store.project_archive import copy_archive, flush_to_disk

MAX_ARCHIVE_SIZE = 1 << 38  # bytes
_DIGEST = re.compile(r"[0-9a-f]{64}")
_CHECK_INTERVAL = 1 << 26  # bytes of an upload between two checks of the free space
_RESERVE = 1 << 28  # bytes of the disk that an upload leaves free: the store is on the same disk


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
    """

    def __init__(self, folder: Path, most: int = MAX_ARCHIVE_SIZE) -> None:
        self._folder = folder
        self._most = most
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        for left in folder.glob("*.part"):
            left.unlink()

    def has_snapshot(self, digest: str) -> bool:
        """True when the snapshot is there; the question counts as a use, so that a clean-up keeps it for a while.

        Raises:
            UsageError: the text is no digest.
        """
        there = self._listing_path(digest).exists() and self.archive_path(digest).exists()
        if there:
            os.utime(self._listing_path(digest))
        return there

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
        found = json.loads(self._listing_path(digest).read_text())
        return Manifest(found["files"], found["texts"])

    def list_snapshots(self) -> list[StoredSnapshot]:
        """Return every snapshot that is there."""
        found = [(path, path.with_suffix(".tar")) for path in sorted(self._folder.glob("*.json"))]
        return [
            StoredSnapshot(listing.stem, tar.stat().st_size, listing.stat().st_mtime)
            for listing, tar in found
            if tar.exists()
        ]

    def remove_snapshot(self, digest: str) -> None:
        """Remove a snapshot; a missing one is no error."""
        self._listing_path(digest).unlink(missing_ok=True)
        self.archive_path(digest).unlink(missing_ok=True)

    async def receive_archive(self, digest: str, chunks: AsyncIterator[bytes], owner: Owner) -> None:
        """Store an uploaded tar; its files will belong to `owner`.

        Raises:
            UsageError: it is no tar, or holds something else than files, folders and links inside the project.
            TooLarge: it has too many bytes or files.
            StoreError: the disk is full.
        """
        target = self.archive_path(digest)
        with _refuse_full_disk(self._folder), _part_file(self._folder) as upload, _part_file(self._folder) as tar:
            await self._save_upload(chunks, upload)
            manifest = await asyncio.to_thread(copy_archive, upload, tar, owner)
            with _part_file(self._folder) as listing:
                await asyncio.to_thread(_write_listing, listing, manifest)
                os.replace(tar, target)
                os.replace(listing, self._listing_path(digest))

    async def _save_upload(self, chunks: AsyncIterator[bytes], path: Path) -> None:
        size = checked = 0
        with path.open("wb") as file:
            async for chunk in chunks:
                size += len(chunk)
                if size > self._most:
                    raise TooLarge(
                        f"the upload has more than {self._most:,} bytes", "name what is big in .risemlignore"
                    )
                if size - checked >= _CHECK_INTERVAL:
                    checked = size
                    if shutil.disk_usage(self._folder).free < _RESERVE:
                        raise OSError(errno.ENOSPC, "no space left")
                file.write(chunk)

    def _listing_path(self, digest: str) -> Path:
        return self.archive_path(digest).with_suffix(".json")


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


def _write_listing(path: Path, manifest: Manifest) -> None:
    with path.open("w") as file:
        json.dump({"files": manifest.files, "texts": manifest.texts}, file)
        flush_to_disk(file)
