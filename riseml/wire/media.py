"""Media of an experiment: pictures, sound, videos, texts and tables that its jobs wrote into OUTPUT_DIR/media."""

from __future__ import annotations

from typing import Literal

from typing_extensions import TypedDict


class MediaItem(TypedDict):
    """One file."""

    step: int
    path: str  # below OUTPUT_DIR/media: `samples/400.png`
    size: int  # bytes
    etag: str  # changes when the file does


class MediaSeries(TypedDict):
    """The files of one name and kind."""

    name: str  # `samples`, `val/samples`
    kind: Literal["picture", "sound", "video", "text", "table"]
    items: list[MediaItem]  # by their steps


class MediaView(TypedDict):
    """The media of an experiment."""

    id: str
    media: list[MediaSeries]  # by name
    left_out: int  # files below OUTPUT_DIR/media that are not NAME/STEP.ENDING, or have another ending
    more: bool  # there are further files than the server lists
