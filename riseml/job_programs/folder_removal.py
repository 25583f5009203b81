"""Remove a file, or a folder with all that is in it: at any depth, with few open descriptors. No link is followed.

A job decides how deep its folders are, and may move them at any time. So the way back up is never `..`: the folders on
the way stay open, and what is below `_MOST_OPEN` of them is renamed into the uppermost one, which is read again.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import stat

from riseml.job_programs.folder_paths import FOLDER

_MOST_OPEN = 64  # folders at the same time
_NAMES_AT_ONCE = 10_000  # names of one folder in memory


class RemovalTally:
    """What a removal has removed, and how many entries it may still remove."""

    def __init__(self, limit: float = float("inf")) -> None:
        self.files = 0
        self.folders = 0
        self.size = 0  # bytes
        self._left = limit

    def take_one(self) -> bool:
        """Return False when the limit is reached."""
        self._left -= 1
        return self._left >= 0


def remove_entry(above: int | None, name: bytes, tally: RemovalTally, *, force: bool = False) -> bool:
    """Remove an entry of a folder with all that is in it. Return False when the limit was reached before the end.

    Args:
        above: the open folder; None: `name` is a path.
        name: of the entry.
        tally: counts what is removed.
        force: also what is in folders that are read-only.

    Raises:
        OSError: there is no such entry, or something cannot be removed.
    """
    status = os.stat(name, dir_fd=above, follow_symlinks=False)
    if not stat.S_ISDIR(status.st_mode):
        return _remove_file(above, name, status.st_size, tally)
    removal = _FolderRemoval(above, tally, force=force)
    try:
        removal.enter(above, name)
        while removal.levels:
            if not removal.go_on():
                return False
    finally:
        for level in removal.levels:
            os.close(level.handle)
    return True


class _Level:
    """An open folder on the way to what is removed now."""

    def __init__(self, name: bytes, handle: int) -> None:
        self.name = name
        self.handle = handle
        self.names: list[bytes] = []  # some of the entries that are still in it


class _FolderRemoval:
    """The removal of one folder, step by step.

    Args:
        above: the folder that it is in.
        tally: counts what is removed.
        force: make read-only folders writable.
    """

    def __init__(self, above: int | None, tally: RemovalTally, *, force: bool) -> None:
        self.levels: list[_Level] = []  # the uppermost first
        self._above = above
        self._tally = tally
        self._force = force

    def enter(self, above: int | None, name: bytes) -> None:
        self.levels.append(_Level(name, _open_folder(above, name, force=self._force)))

    def go_on(self) -> bool:
        """Do one step in the innermost folder. Return False when the limit is reached."""
        level = self.levels[-1]
        if not level.names:
            level.names = _read_names(level.handle)
        if not level.names:
            return self._remove_emptied(level)
        try:
            return self._remove_inner(level, level.names.pop())
        except FileNotFoundError:
            return True  # it was removed meanwhile

    def _remove_emptied(self, level: _Level) -> bool:
        if not self._tally.take_one():
            return False
        outer = self.levels[-2].handle if len(self.levels) > 1 else self._above
        with contextlib.suppress(FileNotFoundError):
            os.rmdir(level.name, dir_fd=outer)
            self._tally.folders += 1
        os.close(self.levels.pop().handle)
        return True

    def _remove_inner(self, level: _Level, name: bytes) -> bool:
        status = os.stat(name, dir_fd=level.handle, follow_symlinks=False)
        if not stat.S_ISDIR(status.st_mode):
            return _remove_file(level.handle, name, status.st_size, self._tally)
        if len(self.levels) < _MOST_OPEN:
            self.enter(level.handle, name)
            return True
        return self._tally.take_one() and self._move_up(level, name)

    def _move_up(self, level: _Level, name: bytes) -> bool:
        """Move a folder that is too deep into the uppermost one."""
        if self._force:  # a folder that is moved gets another `..`, so it must be writable
            os.close(_open_folder(level.handle, name, force=True))
        fresh = b".riseml-removal-" + os.urandom(8).hex().encode()
        os.rename(name, fresh, src_dir_fd=level.handle, dst_dir_fd=self.levels[0].handle)
        return True


def _remove_file(above: int | None, name: bytes, size: int, tally: RemovalTally) -> bool:
    if not tally.take_one():
        return False
    os.unlink(name, dir_fd=above)
    tally.files += 1
    tally.size += size
    return True


def _open_folder(above: int | None, name: bytes, *, force: bool) -> int:
    """Return a folder, open; with `force` its user may then read it and write in it."""
    try:
        handle = os.open(name, FOLDER, dir_fd=above)
    except PermissionError:
        if not force:
            raise
        _make_accessible(above, name)
        handle = os.open(name, FOLDER, dir_fd=above)
    mode = stat.S_IMODE(os.fstat(handle).st_mode)
    if force and mode & stat.S_IRWXU != stat.S_IRWXU:
        with contextlib.suppress(OSError):  # it belongs to another user: the next call says so if that matters
            os.fchmod(handle, mode | stat.S_IRWXU)
    return handle


def _make_accessible(above: int | None, name: bytes) -> None:
    """Let its user open a folder, which has no descriptor yet. A link is not followed."""
    if not hasattr(os, "O_PATH"):
        os.chmod(name, stat.S_IRWXU, dir_fd=above, follow_symlinks=False)
        return
    # Linux changes the mode of what a descriptor leads to; before glibc 2.32, fchmodat knows no AT_SYMLINK_NOFOLLOW.
    handle = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=above)
    try:
        os.chmod(f"/proc/self/fd/{handle}", stat.S_IRWXU)
    finally:
        os.close(handle)


def _read_names(folder: int) -> list[bytes]:
    with os.scandir(folder) as entries:
        return [os.fsencode(entry.name) for entry in itertools.islice(entries, _NAMES_AT_ONCE)]
