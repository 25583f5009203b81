"""Where a reader of a job's log has stopped."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import NamedTuple

from riseml.records import dataclass


class FramePosition(NamedTuple):
    """Where a reader has stopped in one stream of a job's log: stdout, stderr or the notes of riseml."""

    at: str  # timestamp of the last frame of the stream that the store holds
    frames_held: int  # frames of the stream with exactly this timestamp that the store holds
    goes_on: bool = False  # the last frame ends no line: the next one has the same timestamp, whenever it comes


@dataclass(frozen=True, slots=True)
class LogCursor:
    """Where a reader of a job's log has stopped, and where the next reader continues.

    Timestamps grow in each stream, and not from one stream to the other: an engine takes the time of a frame before it
    writes the frame, and writes stdout and stderr side by side. Every piece of a long line has the timestamp of the
    first one, so that a progress bar of an hour comes with a timestamp an hour old.
    """

    positions: Mapping[int, FramePosition] = field(default_factory=dict)  # of streams of which the store holds frames
