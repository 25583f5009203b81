"""A project archive unpacked into a folder of this machine: files, folders and links that stay inside.

The archive is checked when the server receives it. It is checked here again, because a link can leave the folder in a
way that its text does not show: `a/root -> ..` stays inside, and so seems `a/b -> root/../..`. Python has a filter for
that since 3.11.4 only (`tarfile.data_filter`); Debian 12 ships 3.11.2. File modes follow that filter.
"""

from __future__ import annotations

import os
import shutil
import tarfile
from collections.abc import Collection
from pathlib import Path

from riseml.errors import EngineError

_PROBLEM = "the project's files cannot be unpacked"
_NO_EXECUTION = ~0o111  # mode bits of a file that its owner may not execute


def unpack_project(archive: Path, target: Path, wanted: Collection[str] | None = None) -> None:
    """Unpack a project archive into an empty folder.

    Args:
        archive: a tar of files, folders and symbolic links.
        target: the folder; it exists.
        wanted: names of the members to unpack; None: all.

    Raises:
        EngineError: the archive is broken, or a member leads out of the folder; part of it may be unpacked.
        OSError: the folder cannot be written.
    """
    try:
        with tarfile.open(archive) as tar:
            _unpack_members(tar, target.resolve(), wanted)
    except tarfile.TarError as error:
        raise EngineError(f"{_PROBLEM}: {error}", permanent=True) from error
    except (FileExistsError, NotADirectoryError, IsADirectoryError) as error:
        raise EngineError(f"{_PROBLEM}: {error.filename} is a member twice", permanent=True) from error


def _unpack_members(tar: tarfile.TarFile, root: Path, wanted: Collection[str] | None) -> None:
    """Create folders and files, then links: so no file is written through a link of the archive."""
    folders: list[tarfile.TarInfo] = []
    links: list[tarfile.TarInfo] = []
    for member in tar:
        if wanted is not None and member.name not in wanted:
            continue
        path = _find_place(root, member)
        if member.isdir():
            path.mkdir(parents=True, exist_ok=True)
            folders.append(member)
        elif member.issym():
            links.append(member)
        elif member.isreg():
            path.parent.mkdir(parents=True, exist_ok=True)
            _write_file(tar, member, path)
        else:
            raise EngineError(f"{_PROBLEM}: {member.name!r} is not a file, folder or symbolic link", permanent=True)
    for link in links:
        _create_link(root, link)
    for link in links:  # what one link leads to depends on the others
        _refuse_outside(root, root / link.name, link.name)
    for folder in reversed(folders):
        os.utime(root / folder.name, (folder.mtime, folder.mtime))


def _find_place(root: Path, member: tarfile.TarInfo) -> Path:
    """Return where a member belongs, with every `..` in its name resolved."""
    return _refuse_outside(root, root / member.name, member.name)


def _refuse_outside(root: Path, path: Path, name: str) -> Path:
    """Return what a path leads to through all links, which is the root or below it."""
    place = Path(os.path.realpath(path))
    if place != root and root not in place.parents:
        raise EngineError(f"{_PROBLEM}: {name!r} leads out of the folder", permanent=True)
    return place


def _write_file(tar: tarfile.TarFile, member: tarfile.TarInfo, path: Path) -> None:
    source = tar.extractfile(member)
    assert source is not None, "it is a regular file"
    with source, path.open("xb") as file:
        shutil.copyfileobj(source, file)
    mode = member.mode & 0o755 | 0o600
    path.chmod(mode if mode & 0o100 else mode & _NO_EXECUTION)
    os.utime(path, (member.mtime, member.mtime))


def _create_link(root: Path, member: tarfile.TarInfo) -> None:
    path = _refuse_outside(root, (root / member.name).parent, member.name) / os.path.basename(member.name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(member.linkname)
