"""Files of a storage: what is in `data://` and `output://`."""

from __future__ import annotations

from typing import Literal

from typing_extensions import TypedDict


class FileView(TypedDict):
    """A file, a folder, a link, or something else."""

    path: str  # below the listed folder; with `riseml ls`, the whole address
    kind: Literal["file", "folder", "link", "other"]
    size: int  # bytes; 0 for everything but files
    mtime: int  # nanoseconds since 1970
    executable: bool
    target: str | None  # target of a link
    etag: str  # changes when the file does


class FileListing(TypedDict):
    """A part of what is below a path. In paths a byte that is not UTF-8 is written as `%FF`, and `%` as `%25`."""

    at: FileView  # what the path names; its own path is empty for the root
    entries: list[FileView]
    next: str | None  # `after` of the next part; None: there is no more


class RemovalView(TypedDict):
    """What was removed."""

    path: str
    files: int
    folders: int
    size: int  # bytes
    done: bool  # False: there is more; ask again  # names: of the API


class OutputView(TypedDict):
    """The output of an experiment that has ended."""

    experiment: str  # `4`, `144.1`
    project: str
    ended_at: str | None  # RFC 3339
    size: int  # bytes of all files
    files: int
    removed: bool
    problem: str | None  # why it could not be measured or removed; None: nothing went wrong


class OutputPage(TypedDict):
    """Outputs that a clean-up may remove, the newest first."""

    outputs: list[OutputView]
    next: int | None  # `before` of the next page; None: there is no more
    next_sub: int | None  # `sub` of the next page: it begins within the set `next`; None: it begins after it


class KeptView(TypedDict):
    """Experiments whose outputs no clean-up removes."""

    kept: list[str]  # IDs  # names: of the API


class DiskUsageView(TypedDict):
    """What `riseml du` has counted."""

    path: str
    files: int
    size: int  # bytes


class CopySummary(TypedDict):
    """What `riseml cp` has copied from or to a storage."""

    source: str
    target: str
    files: int  # that were copied; with `-n`, that would be
    size: int  # bytes of them
    links: int  # that were copied, as links
    unchanged: int  # files and links that were there already
    left_out: list[str]  # links that lead out of what is copied, and what is not a file
    dry_run: bool
