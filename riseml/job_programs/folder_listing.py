"""List and remove the files below a folder, in parts with bounded memory. No link is followed."""

from __future__ import annotations

import errno
import heapq
import os
import stat
from collections.abc import Iterator
from typing import NamedTuple

from riseml.job_programs.folder_paths import (
    FOLDER,
    MOST_DEPTH,
    FileErrorKind,
    FileInfo,
    FilesError,
    OpenAbove,
    describe_file,
    encode_name,
    enter_folder,
    look_at,
    split_path,
    translate,
)
from riseml.job_programs.folder_removal import RemovalTally, remove_entry

_CHUNK = 50001  # names of one folder in memory: a page, and one more to know whether another page follows


class Page(NamedTuple):
    """A part of a listing."""

    at: FileInfo  # what the path names
    entries: list[FileInfo]  # in the order of their paths, part by part
    next: str | None  # the last path; None: the listing is complete


class Removed(NamedTuple):
    """What one call has removed."""

    files: int
    folders: int
    size: int  # bytes
    done: bool  # False: there is more  # names: of the API


def list_page(root: int, path: str, after: str | None, limit: int, *, deep: bool) -> Page:
    """Return the next entries below a path, at most `limit`, in memory that does not grow with their number.

    Args:
        root: descriptor of the folder.
        path: a folder, or a file, which has no entries.
        after: `next` of the page before; None: from the beginning.
        limit: 0 looks only at the path itself.
        deep: with what is in the folders.

    Raises:
        FilesError: there is no such path, or it cannot be read.
    """
    parts = split_path(path)
    at = look_at(root, path)
    if at.kind != "folder" or limit == 0:
        return Page(at, [], None)
    entries: list[FileInfo] = []
    folder = enter_folder(root, parts, path)
    try:
        place = _ListPlace(b"", min(_CHUNK, limit + 1), deep)
        for entry in _walk(folder, place, split_path(after or "")):
            if len(entries) == limit:
                return Page(at, entries, entries[-1].path)
            entries.append(entry)
    finally:
        os.close(folder)
    return Page(at, entries, None)


def remove_tree(root: int, path: str, limit: int) -> Removed:
    """Remove a path with everything below it, at any depth, but no target of a link; at most `limit` entries a call.

    Raises:
        FilesError: there is no such path, it is the root, or something cannot be removed.
    """
    parts = split_path(path)
    if not parts:
        raise FilesError(FileErrorKind.BAD_PATH, path)
    tally = RemovalTally(limit)
    with OpenAbove(root, parts, path) as (folder, name):
        try:
            is_complete = remove_entry(folder, name, tally)
        except OSError as error:
            raise translate(error, path) from None
    return Removed(tally.files, tally.folders, tally.size, is_complete)


class _ListPlace(NamedTuple):
    """Where a listing is."""

    prefix: bytes  # prefix of the paths
    chunk: int  # names of one folder that are held at once
    deep: bool  # with what is in the folders
    depth: int = 0


def _walk(folder: int, place: _ListPlace, after: list[bytes]) -> Iterator[FileInfo]:
    """Yield the entries of an open folder after the names of `after`, folders before their content."""
    last: bytes | None = None
    if after:
        last = after[0]
        if place.deep:
            yield from _walk_inside(folder, last, place, after[1:])
    while True:
        names = _next_names(folder, last, place.chunk)
        for name in names:
            try:
                status = os.stat(name, dir_fd=folder, follow_symlinks=False)
            except OSError:
                continue  # it was removed meanwhile
            yield describe_file(folder, name, place.prefix + name, status)
            if place.deep and stat.S_ISDIR(status.st_mode):
                yield from _walk_inside(folder, name, place, [])
        if len(names) < place.chunk:
            return
        last = names[-1]


def _walk_inside(folder: int, name: bytes, place: _ListPlace, after: list[bytes]) -> Iterator[FileInfo]:
    if place.depth >= MOST_DEPTH - 1:
        raise FilesError(FileErrorKind.DEEP, encode_name(place.prefix + name))
    try:
        inner = os.open(name, FOLDER, dir_fd=folder)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
            return  # it was removed meanwhile, or it is not a folder
        raise translate(error, encode_name(place.prefix + name)) from None
    try:
        yield from _walk(inner, place._replace(prefix=place.prefix + name + b"/", depth=place.depth + 1), after)
    finally:
        os.close(inner)


def _next_names(folder: int, last: bytes | None, most: int) -> list[bytes]:
    """Return the first names of a folder behind `last`, in their order."""
    with os.scandir(folder) as entries:
        names = (os.fsencode(entry.name) for entry in entries)
        return heapq.nsmallest(most, (name for name in names if last is None or name > last))
