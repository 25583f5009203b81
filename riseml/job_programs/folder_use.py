"""Count the bytes that a folder takes of its disk, in memory that does not grow with the number of files.

A file without bytes takes an inode, of which a disk has a number: it counts as one block of usual file systems.
"""

from __future__ import annotations

import errno
import os
import stat

from riseml.job_programs.folder_paths import FOLDER, MOST_DEPTH, FileErrorKind, FilesError, encode_name, translate

_BLOCK = 512  # bytes; the unit of `st_blocks`, whatever the file system
_LEAST = 4096  # bytes that each file, link and folder counts for
_MOST_LINKED = 100_000  # files with several names that are remembered; more count once for each name


def count_used(root: int) -> int:
    """Return how many bytes of a disk a folder takes with everything in it: holes take nothing, and further
    names of a file neither.

    Args:
        root: descriptor of the folder.

    Raises:
        FilesError: a folder in it may not be read, or its folders are too deep.
    """
    return os.fstat(root).st_blocks * _BLOCK + _count_inside(root, b"", 0, set())


def _count_inside(folder: int, prefix: bytes, depth: int, linked: set[tuple[int, int]]) -> int:
    """Return the bytes of the entries of an open folder."""
    size = 0
    inner: list[bytes] = []
    with os.scandir(folder) as entries:
        for entry in entries:
            try:
                status = entry.stat(follow_symlinks=False)
            except FileNotFoundError:
                continue
            except OSError as error:  # a folder that may be listed, and not entered
                raise translate(error, encode_name(prefix + os.fsencode(entry.name))) from None
            if status.st_nlink > 1 and not stat.S_ISDIR(status.st_mode):
                if (status.st_dev, status.st_ino) in linked:
                    continue
                if len(linked) < _MOST_LINKED:
                    linked.add((status.st_dev, status.st_ino))
            size += max(status.st_blocks * _BLOCK, _LEAST)
            if stat.S_ISDIR(status.st_mode):
                inner.append(os.fsencode(entry.name))
    return size + sum(_count_folder(folder, name, prefix + name, depth, linked) for name in inner)


def _count_folder(above: int, name: bytes, path: bytes, depth: int, linked: set[tuple[int, int]]) -> int:
    if depth >= MOST_DEPTH:
        raise FilesError(FileErrorKind.DEEP, encode_name(path))
    try:
        folder = os.open(name, FOLDER, dir_fd=above)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
            return 0  # it was removed meanwhile, or something else has its name
        raise translate(error, encode_name(path)) from None
    try:
        return _count_inside(folder, path + b"/", depth + 1, linked)
    finally:
        os.close(folder)
