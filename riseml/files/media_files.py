"""What a job's media are: files `media/NAME/STEP.ENDING` in OUTPUT_DIR, whose endings say how they are shown. Pure.

Only the name of a file says what it is. What could be a page of its own (SVG, HTML) is sent as text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from riseml.job_programs.folder_paths import FileInfo

FOLDER = "media"
"""The folder in OUTPUT_DIR."""

MOST_ENTRIES = 10_000
"""Files and folders below it that one listing looks at."""

LARGEST = 256 << 20
"""Bytes of a file that is sent as media; `riseml cp` copies larger ones."""

MediaKind = Literal["picture", "sound", "video", "text", "table"]

_TEXT = "text/plain; charset=utf-8"
_ENDINGS: dict[str, tuple[MediaKind, str]] = {
    "png": ("picture", "image/png"),
    "jpg": ("picture", "image/jpeg"),
    "jpeg": ("picture", "image/jpeg"),
    "gif": ("picture", "image/gif"),
    "webp": ("picture", "image/webp"),
    "svg": ("picture", _TEXT),
    "wav": ("sound", "audio/wav"),
    "mp3": ("sound", "audio/mpeg"),
    "ogg": ("sound", "audio/ogg"),
    "mp4": ("video", "video/mp4"),
    "webm": ("video", "video/webm"),
    "txt": ("text", _TEXT),
    "md": ("text", _TEXT),
    "html": ("text", _TEXT),
    "csv": ("table", _TEXT),
    "json": ("table", _TEXT),
}
TYPES = tuple(dict.fromkeys(kind for _, kind in _ENDINGS.values()))
"""All content types of media."""

_NAME = re.compile(r"(?P<name>[^./][^/]*(?:/[^./][^/]*)*)/(?P<step>[0-9]{1,15})\.(?P<ending>[A-Za-z0-9]{1,5})")
_KINDS = tuple(dict.fromkeys(kind for kind, _ in _ENDINGS.values()))


class MediaFile(NamedTuple):
    """One file of media."""

    name: str  # `samples`, `val/samples`
    step: int
    kind: MediaKind
    type: str  # its content type, without a risk to the reader


class MediaEntry(NamedTuple):
    """One file of a listing."""

    file: MediaFile
    info: FileInfo  # its path is below `FOLDER`


class NamedMedia(NamedTuple):
    """The files of one name and kind, by their steps."""

    name: str
    kind: MediaKind
    entries: Sequence[MediaEntry]


def read_media_path(path: str) -> MediaFile | None:
    """Return what a path below `FOLDER` says, such as `samples/400.png`; None: it is no path of media."""
    match = _NAME.fullmatch(path)
    kind_and_type = None if match is None else _ENDINGS.get(match["ending"].lower())
    if match is None or kind_and_type is None:
        return None
    return MediaFile(match["name"], int(match["step"]), *kind_and_type)


def group_media(listed: Iterable[FileInfo]) -> tuple[list[NamedMedia], int]:
    """Return the files of a listing by name and kind, and how many other files there are."""
    groups: dict[tuple[str, MediaKind], list[MediaEntry]] = {}
    left_out = 0
    for info in listed:
        file = read_media_path(info.path) if info.kind == "file" else None
        if file is not None:
            groups.setdefault((file.name, file.kind), []).append(MediaEntry(file, info))
        else:
            left_out += info.kind != "folder"
    ordered = sorted(groups.items(), key=lambda group: (group[0][0], _KINDS.index(group[0][1])))
    series = [
        NamedMedia(name, kind, sorted(entries, key=lambda entry: (entry.file.step, entry.info.path)))
        for (name, kind), entries in ordered
    ]
    return series, left_out
