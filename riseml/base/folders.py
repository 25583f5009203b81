"""Folders that one user alone controls: how to make, open and check them."""

from __future__ import annotations

import contextlib
import os
import pwd
import stat
from collections.abc import Collection, Iterator
from pathlib import Path, PurePosixPath

from riseml.base.errors import Refused, UsageError

_ROOT = 0  # root, who may change everything anyway
_MOST_LINKS = 40  # links of one path, as in the kernel
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_PASSAGE = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_CLOEXEC  # Linux: also where listing is refused
_HOME_HINT = "name a folder of your own in RISEML_HOME"


def make_private(folder: Path) -> None:
    """Create the folder if it is missing, and check that it is private.

    In a folder such as /tmp, where every user may write, another user may have created it first.

    Raises:
        PermissionError: the path exists and is not a private folder of this user.
        OSError: the folder cannot be created.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not is_private(folder):
        raise PermissionError(f"{folder} is not a folder of yours alone")


def make_private_path(folder: Path) -> None:
    """Create the folder and each missing one above it for this user alone, whatever the umask.

    Where a group may write in one of them, its users could replace what is below.

    Raises:
        OSError: one cannot be created.
    """
    for missing in reversed([path for path in (folder, *folder.parents) if not path.exists()]):
        missing.mkdir(mode=0o700, exist_ok=True)


def is_private(folder: Path) -> bool:
    """Return True when only this user may enter the folder. A link is not followed.

    Raises:
        OSError: the folder does not exist.
    """
    status = folder.lstat()
    return status.st_uid == os.geteuid() and stat.S_ISDIR(status.st_mode) and not stat.S_IMODE(status.st_mode) & 0o077


def read_private_file(path: Path, most: int) -> bytes | None:
    """Return the content of a file with secrets, which its user alone may read or write; None: there is no such file.

    Args:
        path: of the file; a link is not followed.
        most: bytes that it may have.

    Raises:
        Refused: another user may read or write the file, or it cannot be read.
        UsageError: the file is larger.
    """
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Refused(f"{path} cannot be read: {error.strerror}", "make it a file of yours, mode 0600") from None
    with open(file, "rb") as opened:
        status = os.fstat(file)
        if status.st_uid != os.geteuid() or not stat.S_ISREG(status.st_mode) or stat.S_IMODE(status.st_mode) & 0o077:
            raise Refused(f"{path} is not a file of yours alone", f"run `chmod 600 {path}`")
        data = opened.read(most + 1)
    if len(data) > most:
        raise UsageError(f"{path} is larger than {most // 1024} KiB", "remove what is not needed")
    return data


def open_folder(parent: int, name: str, mode: int) -> int:
    """Return a descriptor of a folder in an open folder, and create it if it is missing. A link is never followed.

    The caller closes the descriptor.

    Args:
        parent: the descriptor of the open folder.
        name: one part of a path.
        mode: of a folder that is created; less the umask.

    Raises:
        OSError: with ENOTDIR or ELOOP, the name is a link or a file; otherwise the folder cannot be made or opened.
    """
    with contextlib.suppress(FileNotFoundError):
        return os.open(name, _FOLDER, dir_fd=parent)
    with contextlib.suppress(FileExistsError):  # another process was faster
        os.mkdir(name, mode, dir_fd=parent)
    return os.open(name, _FOLDER, dir_fd=parent)


def is_absent(root: Path, below: PurePosixPath) -> bool:
    """Return True when there certainly is nothing at a path below a root.

    No link below the root is followed, because the job that made it would learn from the answer what is elsewhere: what
    is behind a link, or in a folder that may not be entered, counts as there.
    """
    try:
        with contextlib.ExitStack() as opened:
            folder = os.open(root, _PASSAGE)
            opened.callback(os.close, folder)
            for part in below.parts[:-1]:
                if stat.S_ISLNK(os.stat(part, dir_fd=folder, follow_symlinks=False).st_mode):
                    return False
                folder = os.open(part, _PASSAGE | os.O_NOFOLLOW, dir_fd=folder)
                opened.callback(os.close, folder)
            os.stat(below.name, dir_fd=folder, follow_symlinks=False)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False
    return False


def check_home(home: Path) -> None:
    """Check that this user alone controls RISEML_HOME; a home that does not exist yet may be created.

    A user who controls the home can answer as the server, and gets code and secrets. The check takes about 0.1 ms.

    Raises:
        Refused: the home belongs to another user, others may write in it, or others can replace it.
    """
    try:
        problem = find_intruder(home, {_ROOT, os.geteuid()})
        if problem is not None:
            raise Refused(f"RISEML_HOME {home} is not safe: {problem}", _HOME_HINT)
        link = home.lstat()
        target = home.stat()
    except FileNotFoundError:
        return
    except OSError as error:
        raise Refused(f"RISEML_HOME {home} cannot be used: {error.strerror}", _HOME_HINT) from None
    for status in (link, target):
        if status.st_uid != os.geteuid() and not (stat.S_ISLNK(status.st_mode) and status.st_uid == _ROOT):
            raise Refused(f"RISEML_HOME {home} belongs to {name_user(status.st_uid)}, not to you", _HOME_HINT)
    if target.st_mode & 0o022:
        mode = f"mode {stat.S_IMODE(target.st_mode):04o}"
        raise Refused(
            f"other users may write in RISEML_HOME {home} ({mode})",
            f"look at what is in it, then `chmod go-w {home}`; or {_HOME_HINT}",
        )


def find_intruder(path: Path, own: Collection[int]) -> str | None:
    """Return how another user could control what a path leads to; None when no other user could.

    Where every user may write in a folder, any user may have made what is in it. So what is in such a folder must
    belong to a user of `own`, and the folder must keep others from replacing it (the sticky bit of /tmp). Every other
    folder and link on the way is trusted: the user or an administrator has put it there. Missing parts are fine.

    Args:
        path: absolute.
        own: the uids of the users who may choose it.

    Raises:
        OSError: a part cannot be looked at.
    """
    for at, folder, entry in _walk(path):
        if not folder.st_mode & stat.S_IWOTH:
            continue
        if is_replaceable(folder.st_mode):
            return describe_replaceable(os.path.dirname(at), folder.st_mode)
        if entry is not None and entry.st_uid not in own:
            return f"{at} belongs to {name_user(entry.st_uid)}"
    return None


def is_replaceable(mode: int) -> bool:
    """Return True for the mode of a folder in which every user may replace what other users made."""
    return bool(mode & stat.S_IWOTH) and not mode & stat.S_ISVTX


def describe_replaceable(folder: str, mode: int) -> str:
    """Return the sentence about such a folder, with what mends it."""
    return f"every user may replace what is in {folder} (mode {stat.S_IMODE(mode):04o}; `chmod +t` forbids it)"


def name_user(uid: int) -> str:
    """Return a user for people: `alice (uid 1000)`, or `uid 1000` when the machine has no such user."""
    try:
        return f"{pwd.getpwuid(uid).pw_name} (uid {uid})"
    except KeyError:
        return f"uid {uid}"


def _walk(path: Path) -> Iterator[tuple[str, os.stat_result, os.stat_result | None]]:
    """Yield each part on the way that the kernel goes: its path, the folder that it is in, and the part itself.

    A link is a part of its own, and so is each part of its target. The part itself is None when it does not exist; that
    is the last one. Plain tuples: a record's class would cost each command more than all the checks.
    """
    at = "/"
    links = 0
    names = [*reversed(path.parts[1:])]
    while names:
        name = names.pop()
        if name == "..":
            at = os.path.dirname(at)
            continue
        folder, at = os.stat(at), os.path.join(at, name)
        try:
            entry = os.lstat(at)
        except FileNotFoundError:
            yield at, folder, None
            return
        yield at, folder, entry
        if stat.S_ISLNK(entry.st_mode) and links < _MOST_LINKS:  # the kernel refuses a path with more links
            links += 1
            target = Path(os.readlink(at))
            at = "/" if target.is_absolute() else os.path.dirname(at)
            names += reversed(target.parts[1:] if target.is_absolute() else target.parts)
