"""The code of experiments by content: one tar a digest, with its list of files."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import posixpath
import re
import tarfile
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

from riseml.errors import NotFound, UsageError
from riseml.model import Owner
from riseml.planning.image import Manifest

_DIGEST = re.compile(r"[0-9a-f]{64}")
_LONGEST_TEXT = 64 * 1024
_COPY = 1 << 20


class Snapshots:
    """The snapshots below one folder. A snapshot is there whole or not at all."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)

    def has(self, digest: str) -> bool:
        """True when the snapshot is there."""
        return self._manifest(digest).exists() and self.path(digest).exists()

    def path(self, digest: str) -> Path:
        """The tar of a snapshot.

        Raises:
            UsageError: the digest is none.
        """
        if not _DIGEST.fullmatch(digest):
            raise UsageError(f"{digest[:80]!r} is not the digest of a project", "it is a SHA-256 in hex")
        return self._folder / f"{digest}.tar"

    def manifest(self, digest: str) -> Manifest:
        """The files of a snapshot.

        Raises:
            NotFound: it was never synced.
        """
        if not self.has(digest):
            raise NotFound(f"the project's files {digest[:12]} are not on the server", "run `riseml train` again")
        found = json.loads(self._manifest(digest).read_text())
        return Manifest(found["files"], found["texts"])

    async def receive(self, digest: str, chunks: AsyncIterator[bytes], owner: Owner) -> None:
        """Store an uploaded tar; its files will be `owner`'s.

        Raises:
            UsageError: it is no tar, or holds something that is not a plain file, folder or link inside the project.
        """
        target = self.path(digest)
        with tempfile.NamedTemporaryFile(dir=self._folder, suffix=".part", delete=False) as part:
            try:
                async for chunk in chunks:
                    part.write(chunk)
                part.flush()
                found = await asyncio.to_thread(_rewrite, Path(part.name), target, owner)
            finally:
                Path(part.name).unlink()
        listing = self._manifest(digest).with_suffix(".new")
        listing.write_text(json.dumps({"files": found.files, "texts": found.texts}))
        os.replace(listing, self._manifest(digest))

    def _manifest(self, digest: str) -> Path:
        return self.path(digest).with_suffix(".json")


def _rewrite(path: Path, target: Path, owner: Owner) -> Manifest:
    """Copy the archive member by member, each checked and given to its owner."""
    files: dict[str, str] = {}
    texts: dict[str, str] = {}
    fresh = target.with_suffix(".new")
    try:
        with tarfile.open(path, "r:") as source, tarfile.open(fresh, "w", format=tarfile.PAX_FORMAT) as copy:
            for member in source:
                _check_member(member)
                member.uid, member.gid, member.uname, member.gname = owner.uid, owner.gid, "", ""
                member.mode &= 0o777
                copy.addfile(member, source.extractfile(member) if member.isreg() else None)
                if member.issym():
                    files[member.name] = f"link:{member.linkname}"
                elif member.isreg():
                    files[member.name] = _digest(source, member)
                    if member.size <= _LONGEST_TEXT and member.name.endswith(".txt"):
                        texts[member.name] = _read(source, member).decode("utf-8", "replace")
    except tarfile.TarError as error:
        raise UsageError(f"the upload is not a tar archive: {error}") from error
    os.replace(fresh, target)
    return Manifest(files, texts)


def _check_member(member: tarfile.TarInfo) -> None:
    if not (member.isreg() or member.isdir() or member.issym()):
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
