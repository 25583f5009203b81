"""The check of an uploaded project archive: the server stores a copy that it wrote itself, member by member.

It works on Python 3.11.2 (Debian 12), whose tarfile has neither `data_filter` nor `TarInfo.replace`: each member of
the copy is a fresh `TarInfo` made from the fields that were checked, so that nothing else of an upload gets through.
"""

from __future__ import annotations

import hashlib
import os
import posixpath
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from riseml.errors import TooLarge, UsageError
from riseml.model import Owner
from riseml.planning.image import Manifest

MAX_FILES = 200_000
_LONGEST_TEXT = 64 * 1024  # bytes of a text file that the manifest holds
_READ_AT_ONCE = 1 << 20  # bytes


def copy_archive(upload: Path, target: Path, owner: Owner) -> Manifest:
    """Write a checked copy of an uploaded tar, whose files belong to `owner`, and return the list of its files.

    Raises:
        UsageError: it is no tar, or holds something else than files, folders and links inside the project.
        TooLarge: it has more than `MAX_FILES` members.
    """
    files: dict[str, str] = {}
    texts: dict[str, str] = {}
    checker = _MemberChecker()
    try:
        with (
            target.open("wb") as file,
            tarfile.open(upload, "r:") as source,
            tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT) as copy,
        ):
            for member in source:
                checker.check_member(member)
                copy.addfile(_make_member(member, owner), source.extractfile(member) if member.isreg() else None)
                if member.issym():
                    files[member.name] = f"link:{member.linkname}"
                elif member.isreg():
                    files[member.name] = _digest_member(source, member)
                    if member.size <= _LONGEST_TEXT and member.name.endswith(".txt"):
                        texts[member.name] = _read_member(source, member).decode("utf-8", "replace")
            copy.close()
            flush_to_disk(file)
    except tarfile.TarError as error:
        raise UsageError(f"the upload is not a tar archive: {error}") from error
    return Manifest(files, texts)


def flush_to_disk(file: IO[Any]) -> None:
    """Wait until the disk has the file: after a power cut an acknowledged file must not be empty."""
    file.flush()
    os.fsync(file.fileno())


def _make_member(member: tarfile.TarInfo, owner: Owner) -> tarfile.TarInfo:
    """Return a member with the checked fields and a new owner, and without anything else."""
    fresh = tarfile.TarInfo(member.name)
    if member.isdir():
        fresh.type = tarfile.DIRTYPE
    elif member.issym():
        fresh.type, fresh.linkname = tarfile.SYMTYPE, member.linkname
    else:
        fresh.type, fresh.size = tarfile.REGTYPE, member.size
    fresh.mode, fresh.mtime = member.mode & 0o777, member.mtime
    fresh.uid, fresh.gid = owner.uid, owner.gid
    return fresh


class _MemberChecker:
    """Checks the members of one archive: files, folders and links inside the project, named once, below no link."""

    def __init__(self) -> None:
        self._paths: set[str] = set()
        self._links: set[str] = set()

    def check_member(self, member: tarfile.TarInfo) -> None:
        """Accept the next member.

        Raises:
            UsageError: it must not be in a project archive.
            TooLarge: the archive has too many members.
        """
        _check_kind_and_target(member)
        path = posixpath.normpath(member.name)
        if path in self._paths and not member.isdir():
            raise UsageError(f"{member.name!r} is there twice", "a project has each path once")
        if any(parent in self._links for parent in _parents(path)):
            raise UsageError(f"{member.name!r} is below a link", "a project has each file in a folder of its own")
        self._paths.add(path)
        if member.issym():
            self._links.add(path)
        if len(self._paths) > MAX_FILES:
            raise TooLarge(f"the project has more than {MAX_FILES:,} files", "name what is not needed in .risemlignore")


def _parents(path: str) -> Iterator[str]:
    while path := posixpath.dirname(path):
        yield path


def _check_kind_and_target(member: tarfile.TarInfo) -> None:
    # A sparse file is refused: a few bytes of it stand for as many as it likes.
    if not (member.isreg() or member.isdir() or member.issym()) or member.issparse():
        raise UsageError(f"{member.name!r} is neither a file, a folder nor a link", "name it in .risemlignore")
    inside = posixpath.normpath(member.name)
    target = (
        posixpath.normpath(posixpath.join(posixpath.dirname(inside), member.linkname)) if member.issym() else inside
    )
    for path in (inside, target):
        if path.startswith(("/", "../")) or path == ".." or (member.issym() and member.linkname.startswith("/")):
            raise UsageError(f"{member.name!r} leads out of the project", "name it in .risemlignore")


def _digest_member(tar: tarfile.TarFile, member: tarfile.TarInfo) -> str:
    """Return the SHA-256 (hex) of a file's content and of whether it is executable."""
    content = hashlib.sha256(b"x" if member.mode & 0o111 else b"-")
    file = tar.extractfile(member)
    while file is not None and (chunk := file.read(_READ_AT_ONCE)):
        content.update(chunk)
    return content.hexdigest()


def _read_member(tar: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    file = tar.extractfile(member)
    return b"" if file is None else file.read()
