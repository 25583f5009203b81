"""Unpack the files of a project into a new folder: all of them, or none."""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import ExitStack
from pathlib import Path

from riseml.base.errors import Conflict, Refused
from riseml.capsules.folder import compute_digest
from riseml.files.archives.project_files import OpenTar
from riseml.files.project.unpacking import OpenFolder, unpack_entries


def check_target(target: Path) -> None:
    """Check that a folder can be made here, before anything is fetched.

    Raises:
        Conflict: something is there already, and it is not an empty folder.
    """
    if os.path.lexists(target) and not (target.is_dir() and not target.is_symlink() and not any(target.iterdir())):
        raise Conflict(f"{target} is there already, and not empty", "name a folder that does not exist")


def unpack_code(archive: Path, digest: str, target: Path) -> int:
    """Unpack a project's archive into a new folder, or into an empty one; return the number of files.

    Raises:
        Conflict: something is there already.
        Refused: the files do not have this digest, or the folder cannot be written.
        UsageError: the archive is broken.
    """
    check_target(target)
    with ExitStack() as stack:
        file = stack.enter_context(archive.open("rb"))
        if compute_digest(file) != digest:
            raise Refused(f"the archive has other files than {digest[:12]}", "something has changed it")
        file.seek(0)
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            is_there = target.is_dir()
            stage = Path(tempfile.mkdtemp(prefix=".riseml-checkout-", dir=target if is_there else target.parent))
            stack.callback(shutil.rmtree, stage, ignore_errors=True)
            fresh = stage / "code"  # has the mode of the umask; no other user enters what mkdtemp has made
            fresh.mkdir()
            root = os.open(fresh, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            stack.callback(os.close, root)
            with ExitStack() as opened:
                unpack_entries(OpenTar(file), OpenFolder(root, opened), None)
            count = sum(len(names) for _, _, names in os.walk(fresh))
            if is_there:  # a shell may be in it, so that it stays the same folder
                for name in os.listdir(fresh):
                    os.rename(fresh / name, target / name)
            else:
                os.rename(fresh, target)
        except OSError as error:
            raise Refused(f"{target} cannot be written: {error.strerror}", "choose another folder") from error
    return count
