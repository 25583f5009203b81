"""Unpack the files of a project into a new folder: all of them, or none."""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import ExitStack
from pathlib import Path

from riseml.archives.project_files import OpenTar
from riseml.capsules.folder import compute_digest
from riseml.errors import Conflict, Refused
from riseml.project.unpacking import OpenFolder, unpack_entries


def check_target(target: Path) -> None:
    """Check that a folder can be made here, before anything is fetched.

    Raises:
        Conflict: something is there already, and it is not an empty folder.
    """
    if os.path.lexists(target) and not (target.is_dir() and not target.is_symlink() and not any(target.iterdir())):
        raise Conflict(f"{target} is there already, and not empty", "name a folder that does not exist")


def unpack_code(archive: Path, digest: str, target: Path) -> int:
    """Unpack a project's archive into a new folder; return the number of files.

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
            fresh = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
            stack.callback(shutil.rmtree, fresh, ignore_errors=True)
            root = os.open(fresh, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            stack.callback(os.close, root)
            with ExitStack() as opened:
                unpack_entries(OpenTar(file), OpenFolder(root, opened), None)
            os.chmod(fresh, 0o755)
            count = sum(len(names) for _, _, names in os.walk(fresh))
            os.rename(fresh, target)
        except OSError as error:
            raise Refused(f"{target} cannot be written: {error.strerror}", "choose another folder") from error
    return count
