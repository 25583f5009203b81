"""Packs that a client on the same machine wrote for the server, and that the server takes over, each as a whole.

Nothing in such a pack is trusted: the server reads all of it, and names every content by its SHA-256. The folder
belongs to the user of the server, as the whole home does.
"""

from __future__ import annotations

import os
import re
import stat
import time
from contextlib import suppress
from pathlib import Path

from riseml.errors import NotFound, UsageError
from riseml.store.contents import ContentStore
from riseml.store.packs import NewPack, scan_pack
from riseml.store.part_files import make_part_file
from riseml.store.uploads import UploadLimits

_NAME = re.compile(r"[0-9a-f]{32}")
_OLD = 3600.0  # seconds without a change, after which the client of a pack has ended


class IncomingPacks:
    """The packs in one folder.

    Args:
        folder: is created when it is missing; what clients left there before the server started is removed.
        contents: gets what is in the packs.
        limits: of a pack.
    """

    def __init__(self, folder: Path, contents: ContentStore, limits: UploadLimits) -> None:
        self._folder = folder
        self._contents = contents
        self._limits = limits
        folder.mkdir(exist_ok=True, mode=0o700)
        self.remove_old(0.0)

    def take_pack(self, name: str) -> None:
        """Keep the contents of a complete pack, and remove it from the folder.

        Raises:
            NotFound: the folder has no such pack.
            UsageError: the name is none of a pack, or the file is not a pack.
            TooLarge: it has too many bytes.
            StoreError: the table of contents cannot be written.
            OSError: the disk is full.
        """
        if not _NAME.fullmatch(name):
            raise UsageError(f"{name[:80]!r} is not the name of a pack", "run the command again")
        self._limits.check_space()
        with make_part_file(self._contents.folder) as part:
            try:
                os.replace(self._folder / name, part)  # from here on, no second request finds it
            except OSError:
                raise NotFound(f"the server does not find the pack {name}", "run the command again") from None
            self._keep_pack(part)

    def remove_old(self, age: float = _OLD) -> int:
        """Remove what did not change for `age` seconds, and return its bytes."""
        freed = 0
        for path in self._folder.iterdir():
            with suppress(FileNotFoundError):  # a client that gives up removes its packs at the same time
                found = path.lstat()
                if found.st_mtime + age <= time.time() and not stat.S_ISDIR(found.st_mode):
                    path.unlink()
                    freed += found.st_size
        return freed

    def _keep_pack(self, path: Path) -> None:
        found = path.lstat()
        if not stat.S_ISREG(found.st_mode):
            raise UsageError("a pack of the project's files is not a file", "run the command again")
        if found.st_size > self._limits.most:
            raise self._limits.make_refusal()
        contents = tuple(scan_pack(path))
        end = contents[-1].at + contents[-1].size if contents else 0
        if end != found.st_size:
            raise UsageError("a pack of the project's files is cut off", "run the command again")
        names = {one.content for one in contents}
        if len(self._contents.find_sizes(names)) < len(names):  # otherwise an earlier upload stored all of it
            self._contents.add_pack(NewPack(path, end, contents))
