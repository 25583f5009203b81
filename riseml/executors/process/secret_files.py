"""Secrets of jobs that are processes: files that only the user of the server reads, in memory, for as long as a job is.

They are below a private folder of tmpfs: XDG_RUNTIME_DIR, else /dev/shm. Nothing of them is on a disk.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from riseml.base.errors import EngineError
from riseml.base.names import hostname
from riseml.model import Environment, JobKey

_SHARED = Path("/dev/shm")  # each user has a private folder there


class SecretFiles:
    """The files of the jobs below one root.

    Args:
        root: of the folders of jobs; two homes have two folders of secrets.
        environ: of the server.
    """

    def __init__(self, root: Path, environ: Mapping[str, str]) -> None:
        runtime = environ.get("XDG_RUNTIME_DIR", "")
        base = Path(runtime) if runtime and os.path.ismount(runtime) else _SHARED
        name = hashlib.sha256(os.fsencode(root.absolute())).hexdigest()[:16]
        self._root = base / f"riseml-secrets-{os.getuid()}-{name}"

    def write_files(self, key: JobKey, files: Environment) -> Path:
        """Write the files of one attempt of a job, and return their folder.

        Raises:
            EngineError: another user has the folder.
            OSError: they cannot be written.
        """
        folder = self._find_folder(key)
        self._root.mkdir(mode=0o700, exist_ok=True)
        status = self._root.lstat()
        if status.st_uid != os.getuid() or status.st_mode & 0o077 or not self._root.is_dir() or self._root.is_symlink():
            raise EngineError(f"{self._root} is not a private folder of this user", "remove it", permanent=True)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(mode=0o700)
        for name, value in files:
            descriptor = os.open(folder / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
            with open(descriptor, "wb") as file:
                file.write(value.encode("utf-8", "surrogateescape"))
        return folder

    def remove_files(self, key: JobKey) -> None:
        """Remove the files of an attempt that has ended, if there are any."""
        folder = self._find_folder(key)
        if folder.exists():
            shutil.rmtree(folder, ignore_errors=True)
            with suppress(OSError):  # it has the files of other jobs
                self._root.rmdir()

    def remove_others(self, keys: Iterable[JobKey]) -> None:
        """Remove the files of all attempts but these: a server that was killed may have left some."""
        if not self._root.exists():
            return
        present = {self._find_folder(key).name for key in keys}
        for folder in list(self._root.iterdir()):
            if folder.name not in present:
                shutil.rmtree(folder, ignore_errors=True)
        if not any(self._root.iterdir()):
            self._root.rmdir()

    def _find_folder(self, key: JobKey) -> Path:
        return self._root / f"{key.experiment}-{hostname(key.job)}-a{key.attempt}"
