"""`riseml server backup` and `restore`: a consistent copy of a home in one tar file, while its server and its jobs run.

The store comes first, with SQLite's own backup, and then the files that it names: logs only grow, projects and capsules
are written before the store names them. What can be made again or belongs to the user elsewhere is left out.
"""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import sqlite3
import stat
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path, PurePosixPath
from typing import IO

from riseml import __version__
from riseml.base.errors import NotFound, Refused, StoreError, advise_on_write
from riseml.base.home_location import HomeLocation, find_location, read_text
from riseml.base.records import dataclass
from riseml.base.settings import Settings
from riseml.server.clock import now
from riseml.spec.pool.types import CLUSTER_FOLDER
from riseml.store.home_record import write_home_into_file
from riseml.store.journal import AcceptedRecord, ExperimentJournal

LEFT_OUT = ("output", "data", "environments", "cache", "processes", CLUSTER_FOLDER)
"""Folders of a home that no backup has."""

_STORE = "riseml.db"
_MANIFEST = "riseml-backup.json"  # the first entry
_FORMAT = 1  # format of the file
_OWN_FILES = frozenset({*LEFT_OUT, "server.sock", "server.lock", "server.log", "server.log.1"})
_MOST_MANIFEST = 1 << 20  # bytes
_NUMBER = re.compile(r"[1-9]\d{0,8}")  # number of an experiment
_PIECE = 1 << 20  # bytes read at once


@dataclass(frozen=True, slots=True)
class HomeBackup:
    """What a backup has, or what was restored from it."""

    size: int  # bytes of the file
    home: HomeLocation  # home that was backed up
    has_store: bool  # False: the store is a PostgreSQL, which has backups of its own
    owner: bool = True  # after `restore_home`: the restored home is the owner of its store, and no copy


def back_up_home(settings: Settings, target: Path) -> HomeBackup:
    """Write a home into a new file that only its user can read: it holds keys, and perhaps values of variables.

    Raises:
        NotFound: the home has no store.
        Refused: the file exists, is in the home, or cannot be written.
        StoreError: the store cannot be read.
    """
    home = settings.home
    if settings.store is None and not (home / _STORE).exists():
        raise NotFound(f"{home} has no store, so that there is nothing to back up", "set RISEML_HOME to the home")
    if target.resolve().is_relative_to(home.resolve()):
        raise Refused(f"{target} is in the home itself", "name a file elsewhere, at best on another disk")
    if target.exists():
        raise Refused(f"{target} is there already", "name a new file")
    location = find_location(home)
    part = target.with_name(f"{target.name}.part")
    try:
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=".riseml-backup-") as folder:
            store = None if settings.store is not None else _copy_store(home / _STORE, Path(folder) / _STORE)
            with _create_file(part) as file, tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT) as tar:
                _add_text(tar, _MANIFEST, _describe(location, has_store=store is not None))
                if store is not None:
                    _add_file(tar, store, _STORE)
                for path in _list_files(settings):
                    _add_file(tar, path, str(path.relative_to(home)))
            with part.open("rb") as written:
                os.fsync(written.fileno())
            part.rename(target)
    except OSError as error:
        raise Refused(f"{target} cannot be written: {error.strerror or error}", advise_on_write(error)) from error
    finally:
        with suppress(OSError):  # what kept it from being written is said above
            part.unlink(missing_ok=True)
    return HomeBackup(target.stat().st_size, location, store is not None)


def restore_home(settings: Settings, source: Path) -> HomeBackup:
    """Make a home from a backup. It is the owner of its store only in the place of the home that it is a backup of.

    Raises:
        NotFound: there is no such file.
        Refused: the home exists, or the file is not a whole backup.
    """
    home = settings.home
    if home.exists() and (not home.is_dir() or any(home.iterdir())):
        raise Refused(f"{home} is not empty", "move it away, or name another folder in RISEML_HOME")
    if not source.exists():
        raise NotFound(f"{source} is not there", "`riseml server backup` writes such a file")
    if source.is_dir():
        raise Refused(f"{source} is a folder, not a backup", "`riseml server backup` writes such a file")
    try:
        home.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=home.parent, prefix=".riseml-restore-") as folder:
            fresh = Path(folder) / "home"
            fresh.mkdir(mode=0o700)
            with source.open("rb") as file, tarfile.open(fileobj=file, mode="r:") as tar:
                manifest = _read_manifest(source, tar)
                _unpack(source, tar, fresh)
            has_store = manifest.has_store
            if has_store and not (fresh / _STORE).exists():
                raise _make_cut_error(source)
            with suppress(FileNotFoundError):
                home.rmdir()
            fresh.rename(home)
    except (tarfile.TarError, EOFError, ValueError, OverflowError) as error:
        raise _make_cut_error(source) from error
    except OSError as error:
        raise Refused(f"{home} cannot be restored: {error.strerror or error}", advise_on_write(error)) from error
    ExperimentJournal(home / "experiments.journal").note_accepted(_list_outputs(settings.output))
    location = find_location(home)
    owner = has_store and location.is_on_machine_of(manifest.home) and location.path == manifest.home.path
    if owner:
        write_home_into_file(home / _STORE, location)
    return HomeBackup(source.stat().st_size, manifest.home, has_store, owner)


def _copy_store(store: Path, copy: Path) -> Path:
    """Copy the store as it is at one moment; a server may write meanwhile."""
    try:
        with closing(sqlite3.connect(store)) as source, closing(sqlite3.connect(copy)) as target:
            source.backup(target)
    except sqlite3.Error as error:
        raise StoreError(f"the store {store} cannot be read: {error}", "restore it from a backup") from error
    return copy


def _list_files(settings: Settings) -> Iterator[Path]:
    """Yield the files of a home that a backup has, without the store. A link counts as what it leads to."""
    excluded = {settings.output.resolve(), settings.data.resolve()}
    for entry in sorted(settings.home.iterdir()):
        if entry.name in _OWN_FILES or entry.name.startswith(_STORE) or entry.resolve() in excluded:
            continue
        if not entry.is_dir():
            yield entry
            continue
        for folder, inner, names in os.walk(entry):
            inner[:] = sorted(name for name in inner if Path(folder, name).resolve() not in excluded)
            yield from (Path(folder, name) for name in sorted(names))


def _create_file(path: Path) -> IO[bytes]:
    return open(os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600), "wb")


def _describe(home: HomeLocation, *, has_store: bool) -> str:
    manifest = {"format": _FORMAT, "riseml": __version__, "at": now().isoformat(), "home": home.write_text()}
    return json.dumps({**manifest, "store": has_store})


def _add_text(tar: tarfile.TarFile, name: str, text: str) -> None:
    entry = tarfile.TarInfo(name)
    entry.size = len(text.encode())
    entry.mode = 0o600
    tar.addfile(entry, io.BytesIO(text.encode()))


def _add_file(tar: tarfile.TarFile, path: Path, name: str) -> None:
    """Add a file as long as it is at this moment. One that was removed meanwhile, or is not a file, is left out."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            return
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return
    with open(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        entry = tarfile.TarInfo(name)
        entry.size = status.st_size
        entry.mode = stat.S_IMODE(status.st_mode)
        entry.mtime = int(status.st_mtime)
        tar.addfile(entry, _Padded(file))


class _Padded(io.RawIOBase):
    """A file that may get shorter while it is read: zeros take the place of what is missing."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def read(self, size: int = -1) -> bytes:
        """Return exactly so many bytes."""
        return self._file.read(size).ljust(max(size, 0), b"\0")


def _read_manifest(source: Path, tar: tarfile.TarFile) -> HomeBackup:
    """Return what a backup says of itself.

    Raises:
        Refused: it is not a backup of a home, or one of a newer riseml.
    """
    entry = tar.next()
    file = None if entry is None or entry.name != _MANIFEST or entry.size > _MOST_MANIFEST else tar.extractfile(entry)
    try:
        manifest = json.loads(b"" if file is None else file.read())
        home = read_text(manifest["home"])
        version = manifest["format"]
    except (ValueError, KeyError, TypeError):
        home = None
        version = None
    if home is None:
        raise Refused(f"{source} is not a backup of a riseml home", "`riseml server backup` writes such a file")
    if version != _FORMAT:
        raise Refused(f"{source} was written by a newer riseml", "upgrade riseml, then restore")
    return HomeBackup(0, home, bool(manifest.get("store")))


def _unpack(source: Path, tar: tarfile.TarFile, target: Path) -> None:
    """Write every entry below a new folder: files alone, which nothing in the backup can lead elsewhere."""
    for entry in tar:
        if entry.name == _MANIFEST:
            continue
        if not _is_of_backup(entry):
            raise Refused(f"{source} has an entry that no backup has: {entry.name!r}", "it was not written by riseml")
        path = target.joinpath(*PurePosixPath(entry.name).parts)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        content = tar.extractfile(entry)
        mode = entry.mode & 0o700 | 0o600
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode), "wb") as file:
            if content is not None:
                shutil.copyfileobj(content, file, _PIECE)
        if path.stat().st_size != entry.size:
            raise _make_cut_error(source)


def _is_of_backup(entry: tarfile.TarInfo) -> bool:
    """Return True for what `back_up_home` writes: a plain file that the file system has whole, at a place of its own.

    A sparse file may be much longer than the backup. Records of running jobs would make a server end other processes.
    """
    parts = PurePosixPath(entry.name).parts
    if not parts or not entry.isreg() or entry.issparse():
        return False
    is_inside = not entry.name.startswith("/") and ".." not in parts and "\0" not in entry.name
    is_other_store = parts[0] != _STORE and parts[0].startswith(_STORE)
    return is_inside and parts[0] not in _OWN_FILES and not is_other_store


def _list_outputs(root: Path) -> Iterator[AcceptedRecord]:
    """Yield what folders of outputs say was accepted, perhaps after the backup: no other experiment gets its folder."""
    for path in root.glob("*/*/*"):
        if _NUMBER.fullmatch(path.name):
            yield AcceptedRecord(0, path.parts[-3], int(path.name), now())


def _make_cut_error(source: Path) -> Refused:
    return Refused(f"{source} is cut or damaged; nothing was restored", "take another backup")
