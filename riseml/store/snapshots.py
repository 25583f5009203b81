"""The code of experiments by content: one tar a digest, with its list of files."""

from __future__ import annotations

import asyncio
import errno
import hashlib
import json
import os
import posixpath
import re
import shutil
import tarfile
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from riseml.errors import NotFound, StoreError, TooLarge, UsageError
from riseml.model import Owner
from riseml.planning.image import Manifest

_DIGEST = re.compile(r"[0-9a-f]{64}")
_LONGEST_TEXT = 64 * 1024
_COPY = 1 << 20
_LOOK = 1 << 26  # bytes of an upload between two looks at the disk
_RESERVE = 1 << 28  # bytes of the disk that an upload leaves alone: the store is on it too
MOST_BYTES = 1 << 38
MOST_FILES = 200_000


@dataclass(frozen=True, slots=True)
class StoredSnapshot:
    """A snapshot that is there: `used` is when it was last sent or asked for, in seconds since 1970."""

    digest: str
    size: int
    used: float


class SnapshotStore:
    """The snapshots below one folder, which belongs to one server. A snapshot is there whole or not at all.

    Args:
        folder: is made when it is missing; what an upload left that was cut off is removed.
        most: bytes that one may have.
    """

    def __init__(self, folder: Path, most: int = MOST_BYTES) -> None:
        self._folder = folder
        self._most = most
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        for left in folder.glob("*.part"):
            left.unlink()

    def has_snapshot(self, digest: str) -> bool:
        """True when the snapshot is there; who asks is about to use it."""
        there = self._manifest(digest).exists() and self.archive_path(digest).exists()
        if there:
            os.utime(self._manifest(digest))
        return there

    def archive_path(self, digest: str) -> Path:
        """The tar of a snapshot.

        Raises:
            UsageError: the digest is none.
        """
        if not _DIGEST.fullmatch(digest):
            raise UsageError(f"{digest[:80]!r} is not the digest of a project", "it is a SHA-256 in hex")
        return self._folder / f"{digest}.tar"

    def load_manifest(self, digest: str) -> Manifest:
        """The files of a snapshot.

        Raises:
            NotFound: it was never synced.
        """
        if not self.has_snapshot(digest):
            raise NotFound(f"the project's files {digest[:12]} are not on the server", "run `riseml train` again")
        found = json.loads(self._manifest(digest).read_text())
        return Manifest(found["files"], found["texts"])

    def list_snapshots(self) -> list[StoredSnapshot]:
        """Every snapshot that is there."""
        found = [(path, path.with_suffix(".tar")) for path in sorted(self._folder.glob("*.json"))]
        return [
            StoredSnapshot(listing.stem, tar.stat().st_size, listing.stat().st_mtime)
            for listing, tar in found
            if tar.exists()
        ]

    def remove_snapshot(self, digest: str) -> None:
        """Remove a snapshot; one that is gone is no error."""
        self._manifest(digest).unlink(missing_ok=True)
        self.archive_path(digest).unlink(missing_ok=True)

    async def receive_archive(self, digest: str, chunks: AsyncIterator[bytes], owner: Owner) -> None:
        """Store an uploaded tar; its files will be `owner`'s.

        Raises:
            UsageError: it is no tar, or holds something that is not a plain file, folder or link inside the project.
            TooLarge: it has too many bytes or files.
            StoreError: the disk is full.
        """
        target = self.archive_path(digest)
        with _kept_from_full(self._folder), _fresh(self._folder) as upload, _fresh(self._folder) as tar:
            await self._save(chunks, upload)
            found = await asyncio.to_thread(_rewrite, upload, tar, owner)
            with _fresh(self._folder) as listing:
                await asyncio.to_thread(_write_listing, listing, found)
                os.replace(tar, target)
                os.replace(listing, self._manifest(digest))

    async def _save(self, chunks: AsyncIterator[bytes], path: Path) -> None:
        size = looked = 0
        with path.open("wb") as file:
            async for chunk in chunks:
                size += len(chunk)
                if size > self._most:
                    raise TooLarge(
                        f"the upload has more than {self._most:,} bytes", "name what is big in .risemlignore"
                    )
                if size - looked >= _LOOK:
                    looked = size
                    if shutil.disk_usage(self._folder).free < _RESERVE:
                        raise OSError(errno.ENOSPC, "no space left")
                file.write(chunk)

    def _manifest(self, digest: str) -> Path:
        return self.archive_path(digest).with_suffix(".json")


@contextmanager
def _fresh(folder: Path) -> Iterator[Path]:
    """A file of one's own for as long as one works at it: the same project may be sent twice at the same time."""
    descriptor, name = tempfile.mkstemp(dir=folder, suffix=".part")
    os.close(descriptor)
    try:
        yield Path(name)
    finally:
        Path(name).unlink(missing_ok=True)


@contextmanager
def _kept_from_full(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise
        raise StoreError(
            f"the disk of {folder} is full: the project's files were not taken", "free some space, then run again"
        ) from error


def _rewrite(path: Path, target: Path, owner: Owner) -> Manifest:
    """Copy the archive member by member, each checked and given to its owner."""
    files: dict[str, str] = {}
    texts: dict[str, str] = {}
    checked = _Checked()
    try:
        with (
            target.open("wb") as file,
            tarfile.open(path, "r:") as source,
            tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT) as copy,
        ):
            for member in source:
                checked.add(member)
                member.uid, member.gid, member.uname, member.gname = owner.uid, owner.gid, "", ""
                member.mode &= 0o777
                copy.addfile(member, source.extractfile(member) if member.isreg() else None)
                if member.issym():
                    files[member.name] = f"link:{member.linkname}"
                elif member.isreg():
                    files[member.name] = _digest(source, member)
                    if member.size <= _LONGEST_TEXT and member.name.endswith(".txt"):
                        texts[member.name] = _read(source, member).decode("utf-8", "replace")
            copy.close()
            _sync(file)
    except tarfile.TarError as error:
        raise UsageError(f"the upload is not a tar archive: {error}") from error
    return Manifest(files, texts)


def _write_listing(path: Path, found: Manifest) -> None:
    with path.open("w") as file:
        json.dump({"files": found.files, "texts": found.texts}, file)
        _sync(file)


def _sync(file: IO[Any]) -> None:
    """What is acknowledged stays: a file that a power cut has emptied would still be there under its name."""
    file.flush()
    os.fsync(file.fileno())


class _Checked:
    """The members of an archive so far: each a plain thing inside the project, named once, below no link."""

    def __init__(self) -> None:
        self._seen: set[str] = set()
        self._links: set[str] = set()

    def add(self, member: tarfile.TarInfo) -> None:
        """Take the next one.

        Raises:
            UsageError: it may not be there.
            TooLarge: it is one too many.
        """
        _check_member(member)
        place = posixpath.normpath(member.name)
        if place in self._seen and not member.isdir():
            raise UsageError(f"{member.name!r} is there twice", "a project has each path once")
        if any(above in self._links for above in _above(place)):
            raise UsageError(f"{member.name!r} is below a link", "a project has each file in a folder of its own")
        self._seen.add(place)
        if member.issym():
            self._links.add(place)
        if len(self._seen) > MOST_FILES:
            raise TooLarge(
                f"the project has more than {MOST_FILES:,} files", "name what is not needed in .risemlignore"
            )


def _above(place: str) -> Iterator[str]:
    while place := posixpath.dirname(place):
        yield place


def _check_member(member: tarfile.TarInfo) -> None:
    # A sparse file is a few bytes that stand for as many as it likes.
    if not (member.isreg() or member.isdir() or member.issym()) or member.issparse():
        raise UsageError(f"{member.name!r} is neither a file, a folder nor a link", "name it in .risemlignore")
    inside = posixpath.normpath(member.name)
    target = (
        posixpath.normpath(posixpath.join(posixpath.dirname(inside), member.linkname)) if member.issym() else inside
    )
    for place in (inside, target):
        if place.startswith(("/", "../")) or place == ".." or (member.issym() and member.linkname.startswith("/")):
            raise UsageError(f"{member.name!r} leads out of the project", "name it in .risemlignore")


def _digest(tar: tarfile.TarFile, member: tarfile.TarInfo) -> str:
    content = hashlib.sha256(b"x" if member.mode & 0o111 else b"-")
    file = tar.extractfile(member)
    while file is not None and (chunk := file.read(_COPY)):
        content.update(chunk)
    return content.hexdigest()


def _read(tar: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    file = tar.extractfile(member)
    return b"" if file is None else file.read()
