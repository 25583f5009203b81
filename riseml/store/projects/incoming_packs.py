"""Packs that a client on the same machine wrote for the server, and that the server takes over, each as a whole.

Nothing in such a pack is trusted: the server reads all of it, and names every content by its SHA-256. The folder
belongs to the user of the server, as the whole home does.
"""

from __future__ import annotations

import logging
import os
import re
import time
from itertools import islice
from pathlib import Path
from stat import S_ISREG

from riseml.base.errors import NotFound, StoreError, TooLarge, UsageError
from riseml.files.archives.tree import MOST_FILES
from riseml.store.projects.contents import ContentStore
from riseml.store.projects.packs import NewPack, scan_pack
from riseml.store.projects.part_files import FULL_DISK, make_part_file
from riseml.store.projects.uploads import UploadLimits

log = logging.getLogger(__name__)

_NAME = re.compile(r"[0-9a-f]{32}")
_MOST = 1 << 26  # bytes of a pack; a client begins another one after half of that
_OLD = 3600.0  # seconds without a change, after which the client of a pack has ended
_AGAIN = "run the command again"


class IncomingPacks:
    """The packs in one folder.

    Args:
        folder: is created when it is missing; the packs that clients left there before the server started are removed.
        contents: gets what is in the packs.
        limits: of a pack.
    """

    def __init__(self, folder: Path, contents: ContentStore, limits: UploadLimits) -> None:
        self._folder = folder
        self._contents = contents
        self._limits = limits
        self._remove_packs(unchanged_since=float("inf"))

    def take_pack(self, name: str) -> None:
        """Keep the contents of a complete pack, and remove it from the folder.

        Raises:
            NotFound: the folder has no such pack.
            UsageError: the name is not the name of a pack, or the file is not a pack.
            TooLarge: it has too many bytes or contents.
            StoreError: it cannot be taken over, or the table of contents cannot be written.
            OSError: the disk is full.
        """
        if not _NAME.fullmatch(name):
            raise UsageError(f"{name[:80]!r} is not the name of a pack", _AGAIN)
        self.remove_old()
        self._limits.check_space()
        with make_part_file(self._contents.folder) as part:
            self._move_pack(name, part)
            self._keep_pack(part)

    def remove_old(self) -> int:
        """Remove the packs whose clients have ended, and return their bytes."""
        return self._remove_packs(unchanged_since=time.time() - _OLD)

    def _move_pack(self, name: str, part: Path) -> None:
        """Move a pack to the contents, where no second request finds it."""
        try:
            os.replace(self._folder / name, part)
        except (FileNotFoundError, NotADirectoryError):
            raise NotFound(f"the server does not find the pack {name}", _AGAIN) from None
        except OSError as error:
            if error.errno in FULL_DISK:
                raise
            log.warning("the server cannot take over packs from %s: %s", self._folder, error.strerror)
            raise StoreError(f"the server cannot take over the pack {name}: {error.strerror}", _AGAIN) from error

    def _keep_pack(self, path: Path) -> None:
        status = path.lstat()
        if not S_ISREG(status.st_mode):
            raise UsageError("a pack of the project's files is not a file", _AGAIN)
        most = min(_MOST, self._limits.most)
        if status.st_size > most:
            raise TooLarge(f"a pack of the project's files has more than {most:,} bytes", _AGAIN)
        contents = tuple(islice(scan_pack(path), MOST_FILES + 1))
        if len(contents) > MOST_FILES:
            raise TooLarge(f"a pack of the project's files has more than {MOST_FILES:,} contents", _AGAIN)
        end = contents[-1].at + contents[-1].size if contents else 0
        if end != status.st_size:
            raise UsageError("a pack of the project's files is cut off", _AGAIN)
        names = {packed.content for packed in contents}
        if len(self._contents.find_sizes(names)) < len(names):  # otherwise an earlier upload stored all of it
            self._contents.add_pack(NewPack(path, end, contents))

    def _remove_packs(self, *, unchanged_since: float) -> int:
        """Remove the packs that did not change since a moment (seconds since 1970), and return their bytes.

        One that cannot be removed stays: NFS keeps files under other names while a process reads them.
        """
        self._folder.mkdir(exist_ok=True, mode=0o700)
        freed = 0
        for path in [entry for entry in self._folder.iterdir() if _NAME.fullmatch(entry.name)]:
            try:
                status = path.lstat()
                if status.st_mtime <= unchanged_since:
                    path.unlink()
                    freed += status.st_size
            except FileNotFoundError:  # a client that gives up removes its packs at the same time
                continue
            except OSError as error:
                log.warning("the pack %s cannot be removed: %s", path, error.strerror)
        return freed
