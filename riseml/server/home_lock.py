"""The lock of RISEML_HOME. The one server of the home holds it, and checks it to notice that the home is gone."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from types import TracebackType
from typing import Self

from riseml.errors import Refused

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
        self._descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        os.fchmod(self._descriptor, 0o600)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        os.close(self._descriptor)

    def take(self) -> None:
        """Lock the home, and write this process's id into the lock file.

        Raises:
            Refused: another server holds the lock, or the home was removed after the file was opened.
        """
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(self._descriptor, _LONGEST_NUMBER, 0).decode("ascii", "replace").strip()
            raise Refused(
                f"process {holder or '?'} is the server of {self._home} already",
                "`riseml server stop` ends it; another RISEML_HOME has a server of its own",
            ) from None
        if not self.is_held():
            raise Refused(f"{self._home} was removed while its server started")
        os.ftruncate(self._descriptor, 0)
        os.write(self._descriptor, f"{os.getpid()}\n".encode())

    def is_held(self) -> bool:
        """Return False when the locked file is no longer the lock file of the home: the home was removed, and another
        server may serve a new one at the same path.
        """
        try:
            return os.path.samestat(os.fstat(self._descriptor), os.stat(self._path))
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError:  # for example, a file server does not answer: that does not mean that the home is gone
            return True
