"""Rewrite pool.yml, which users and other commands may change at the same time.

Commands of riseml take a lock file next to pool.yml. An editor takes no lock: so this module exchanges the new text
with the file in one step, and compares the displaced text with the one that it had read. If a user has saved in
between, the user's text goes back, and the change is applied to it again.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import os
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path

from riseml.base.errors import Conflict, UsageError

Change = Callable[[str], str]
"""Converts the text of the file (empty when there is no file) to its new text. May be called again with a newer
text."""

_MOST_TRIES = 20
_EXCHANGE = 2  # RENAME_EXCHANGE of renameat2(2)
_HERE = -100  # AT_FDCWD
_NOT_SUPPORTED = frozenset({errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP})


def rewrite_pool_file(path: Path, change: Change) -> None:
    """Replace the text of the file atomically; a change that others make at the same time is not lost.

    Raises:
        UsageError: the file cannot be read or written.
        Conflict: the file changes all the time.
        RisemlError: what `change` raises; the file stays as it is.
    """
    target = path.resolve()  # keep a symbolic link, and replace the file that it leads to
    try:
        with _lock_beside(path):
            if any(_try_rewrite(target, change) for _ in range(_MOST_TRIES)):
                return
    except OSError as error:
        hint = "make it and its folder yours and writable"
        raise UsageError(f"{path} cannot be changed: {error.strerror}", hint) from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not UTF-8", "save it as UTF-8") from error
    raise Conflict(f"{path} changes all the time", "try again when no program writes it")


@contextlib.contextmanager
def _lock_beside(path: Path) -> Iterator[None]:
    """Hold the lock of commands that change the file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = os.open(path.with_name(f".{path.name}.lock"), os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def _try_rewrite(target: Path, change: Change) -> bool:
    """Return False when the file changed meanwhile; then nothing was written."""
    before = _read_pool_file(target)
    fresh = change("" if before is None else before.decode("utf-8")).encode("utf-8")
    if before == fresh:
        return True
    beside = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    try:
        _write_new_file(beside, fresh, 0o644 if before is None else target.stat().st_mode & 0o777)
        if before is not None:
            return _exchange_unless_changed(beside, target, before)
        os.link(beside, target)
    except (FileExistsError, FileNotFoundError):  # another program has made or removed it
        return False
    finally:
        beside.unlink(missing_ok=True)
    return True


def _exchange_unless_changed(beside: Path, target: Path, before: bytes) -> bool:
    """Exchange a new file with the old one; exchange them back if the old one is not the text that was read."""
    try:
        _exchange(beside, target)
    except OSError as error:
        if error.errno not in _NOT_SUPPORTED:
            raise
        # the file system cannot exchange files: compare as late as possible, then rename
        if _read_pool_file(target) != before:
            return False
        os.replace(beside, target)
        return True
    if _read_pool_file(beside) == before:
        return True
    _exchange(beside, target)
    return False


def _exchange(first: Path, second: Path) -> None:
    """Exchange two files atomically."""
    call = ctypes.CDLL(None, use_errno=True).renameat2
    if call(_HERE, os.fsencode(first), _HERE, os.fsencode(second), _EXCHANGE) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def _read_pool_file(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def _write_new_file(path: Path, content: bytes, mode: int) -> None:
    """Write a new file and flush it, so that a power cut leaves all of it or none."""
    with path.open("xb") as stream:
        os.fchmod(stream.fileno(), mode)
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())
