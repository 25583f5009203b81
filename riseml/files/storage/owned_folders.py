"""Folders of one user below a root, made and opened by descriptor, so that no other user can redirect riseml.

Every part of the path below the root is opened in the folder above it, and never through a link (`openat` with
O_NOFOLLOW). So riseml uses the folder that it has checked, even when another process renames it at the same time.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from riseml.base.errors import EngineError
from riseml.base.folders import describe_replaceable, find_intruder, is_replaceable, name_user, open_folder
from riseml.model import Owner

_ROOT = 0  # the uid whose folders are trusted
_PRIVATE = 0o700
_PASSAGE = getattr(os, "O_PATH", os.O_RDONLY)  # Linux: pass through a folder that the user may not list
_HINT = "look at it and remove it, or choose another root with RISEML_OUTPUT"


@contextmanager
def open_owned_folder(root: Path, below: PurePosixPath, owner: Owner) -> Iterator[int]:
    """Yield a descriptor of the folder `below` the root; create its parts that are missing, for their owner alone.

    Parts that exist keep their mode. The root may be a link, and may belong to any user.

    Raises:
        EngineError: another user made a part of the path, or could replace one; or a part is a link (permanent).
        OSError: a part cannot be made or entered.
    """
    root.mkdir(parents=True, exist_ok=True)
    own = frozenset({_ROOT, os.geteuid(), owner.uid})
    problem = find_intruder(root, own)
    if problem is not None:
        raise _make_refusal(problem)
    with contextlib.ExitStack() as opened:
        folder = os.open(root, _PASSAGE | os.O_DIRECTORY | os.O_CLOEXEC)
        opened.callback(os.close, folder)
        path = root
        for part in below.parts:
            _check_replaceable(folder, path)
            path = path / part
            folder = _open_part(folder, path)
            opened.callback(os.close, folder)
            if os.geteuid() == _ROOT and _is_fresh(folder):
                os.fchown(folder, owner.uid, owner.gid)
            uid = os.fstat(folder).st_uid
            if uid not in own:
                raise _make_refusal(f"{path} belongs to {name_user(uid)}")
        yield folder


def replace_file(folder: int, name: str, content: bytes, owner: Owner) -> None:
    """Write a file into an open folder, in place of an existing one. A link that a job may have put there is replaced.

    Raises:
        OSError: it cannot be written.
    """
    fresh = f".{name}.new"
    with contextlib.suppress(FileNotFoundError):
        os.unlink(fresh, dir_fd=folder)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with open(os.open(fresh, flags, 0o644, dir_fd=folder), "wb") as file:
        file.write(content)
        file.flush()
        if os.geteuid() == _ROOT:
            os.fchown(file.fileno(), owner.uid, owner.gid)
    os.replace(fresh, name, src_dir_fd=folder, dst_dir_fd=folder)


def _open_part(parent: int, path: Path) -> int:
    """Return a descriptor of the last part of a path, which is created if it is missing."""
    try:
        return open_folder(parent, path.name, _PRIVATE)
    except OSError as error:
        if error.errno not in (errno.ENOTDIR, errno.ELOOP):
            raise
    status = os.stat(path.name, dir_fd=parent, follow_symlinks=False)
    problem = "a link" if stat.S_ISLNK(status.st_mode) else "not a folder"
    raise _make_refusal(f"{path} is {problem}, made by {name_user(status.st_uid)}")


def _is_fresh(folder: int) -> bool:
    """Return True for a folder as this module has just made it, or left it when the server was killed at that moment.

    Another process may replace the folder that was made. So root gives away only an empty private folder that root
    itself has made.
    """
    status = os.fstat(folder)
    return status.st_uid == _ROOT and status.st_mode & 0o777 == _PRIVATE and not os.listdir(folder)


def _check_replaceable(folder: int, path: Path) -> None:
    """Refuse a folder in which every user may replace what others made: a container mounts it by its path, later."""
    mode = os.fstat(folder).st_mode
    if is_replaceable(mode):
        raise _make_refusal(describe_replaceable(str(path), mode))


def _make_refusal(problem: str) -> EngineError:
    return EngineError(f"OUTPUT_DIR is not safe: {problem}", _HINT, permanent=True)
