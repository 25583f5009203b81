"""The lock of RISEML_HOME. The one server of the home holds it, and checks it to notice that the home is gone.

There are two locks together: one on the folder, which lasts as long as the home, and one on a file in it. The file
names the process, earlier versions lock it alone, and some file systems over a network lock no folders.
"""

from __future__ import annotations

import fcntl
import os
import signal
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from riseml.base.errors import Refused

_BOOT = Path("/proc/sys/kernel/random/boot_id")
_LOCKS = Path("/proc/locks")
_LONGEST_NUMBER = 32  # bytes of the number of a process in the file


class HomeLock:
    """The open lock file of a home.

    Example:
        with HomeLock(settings.home, settings.lock) as lock:
            lock.take()
            ...
            assert lock.is_held()

    Raises:
        OSError: the file cannot be made or opened.
    """

    def __init__(self, home: Path, path: Path) -> None:
        """Open the lock file, readable by its user alone: another user who could open it could lock it and so block the
        server. An earlier version let all users read it.

        Args:
            home: the folder that is locked, for the messages.
            path: the lock file in it.
        """
        self._home = home
        self._path = path
        self._descriptor = _open_lock_file(path)
        self._folder = os.open(home, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self._is_locked = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        os.close(self._descriptor)
        os.close(self._folder)

    def take(self) -> None:
        """Lock the home, and write this process's id into the lock file.

        Raises:
            Refused: another server holds the lock, or the home was removed after the file was opened.
        """
        if not self.try_take():
            raise Refused(
                f"{self._name_holder()} is the server of {self._home} already",
                "`riseml server stop` ends it; another RISEML_HOME has a server of its own",
            )
        self.begin_serving()

    def begin_serving(self) -> None:
        """Write this process's id into the lock file. A server that was stopped may still hold the lock.

        Raises:
            Refused: the home was removed after the file was opened.
        """
        if not self.is_held():
            raise Refused(f"{self._home} was removed while its server started")
        self._write_holder()

    def try_take(self) -> bool:
        """Lock the home. Return False when another process holds the lock."""
        self._is_locked = _lock_folder(self._folder) and _lock_file(self._descriptor)
        if not self._is_locked:
            self.give_back()
        return self._is_locked

    def give_back(self) -> None:
        """Unlock the home."""
        self._is_locked = False
        for descriptor in (self._folder, self._descriptor):
            with suppress(OSError):  # it locks no folders
                fcntl.flock(descriptor, fcntl.LOCK_UN)

    def end_holder(self) -> None:
        """Kill the process that holds the lock, if it is one of this machine: a server that may not act any more, and
        that was stopped or hangs. It would keep the address at which a team's server listens.
        """
        if (holder := self._find_holder()) is not None:
            with suppress(OSError):  # it has ended, or belongs to another user
                os.kill(holder, signal.SIGKILL)

    def _find_holder(self) -> int | None:
        """Return the process that the kernel names for the lock; None: there is none, or it cannot be seen here."""
        file = os.fstat(self._descriptor)
        place = f"{os.major(file.st_dev):02x}:{os.minor(file.st_dev):02x}:{file.st_ino}"
        try:
            rows = [line.split() for line in _LOCKS.read_text().splitlines()]
        except OSError:
            return None
        holders = (int(row[4]) for row in rows if row[1] == "FLOCK" and row[5] == place)
        return next((holder for holder in holders if holder > 0 and holder != os.getpid()), None)

    def describe(self) -> str:
        """Return what names this lock among those of all homes and machines; empty: this process does not hold it.

        The name is another one after a reboot: a lock over a network does not prove that another machine is dead.
        """
        folder = os.fstat(self._folder)
        return f"{_BOOT.read_text().strip()} {folder.st_dev} {folder.st_ino}" if self._is_locked else ""

    def _name_holder(self) -> str:
        number = os.pread(self._descriptor, _LONGEST_NUMBER, 0).decode("ascii", "replace").strip()
        return f"process {number}" if number else "another process"

    def is_held(self) -> bool:
        """Return False when the locked file is no longer the lock file of the home: the home was removed, and another
        server may serve a new one at the same path. A file that was removed from the home is made again.
        """
        try:
            same = os.path.samestat(os.fstat(self._descriptor), os.stat(self._path))
        except (FileNotFoundError, NotADirectoryError):
            same = False
        except OSError:  # for example, a file server does not answer: that does not mean that the home is gone
            return True
        return same or self._take_again()

    def _take_again(self) -> bool:
        """Lock the lock file of a home whose folder is the locked one. False: it is another home, or another's."""
        try:
            if not os.path.samestat(os.fstat(self._folder), os.stat(self._home)):
                return False
            fresh = _open_lock_file(self._path)
        except OSError:
            return False
        if not _lock_file(fresh):  # a server of an earlier version, which locks no folder
            os.close(fresh)
            return False
        os.close(self._descriptor)
        self._descriptor = fresh
        self._write_holder()
        return True

    def _write_holder(self) -> None:
        os.ftruncate(self._descriptor, 0)
        os.write(self._descriptor, f"{os.getpid()}\n".encode())


def _open_lock_file(path: Path) -> int:
    descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    os.fchmod(descriptor, 0o600)
    return descriptor


def _lock_file(descriptor: int) -> bool:
    """Return False when another process has locked it."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _lock_folder(descriptor: int) -> bool:
    """Return False when another process has locked it. Some file systems over a network lock files alone."""
    try:
        return _lock_file(descriptor)
    except OSError:
        return True
