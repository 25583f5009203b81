"""Frames of a job's log without known secret values, also where a value is cut between two frames. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from operator import itemgetter

from riseml.base.masks import MASK, Masker, Span
from riseml.model import Frame

_LAST_BYTE = itemgetter(-1)
_ENDS = {ord("\n")}  # the last byte of each frame that ends its line


class FrameMasker:
    """Masks the frames of one job, in the order of its log.

    A frame that ends no line, and ends with what may be the beginning of a value, is held back until the next frame of
    its stream comes: its line has not ended, so that no reader waits for it. Frames of other streams pass it.
    """

    def __init__(self) -> None:
        self._held: dict[int, list[Frame]] = {}  # by stream: frames of one line

    @property
    def holds_frames(self) -> bool:
        """True while frames are held back."""
        return bool(self._held)

    def forget(self) -> None:
        """Drop what is held back, because the log is read again from what the store holds."""
        self._held.clear()

    def mask_frames(self, frames: Sequence[Frame], masker: Masker) -> Sequence[Frame]:
        """Return the frames that may be stored now. Their number and times stay those of the host's log."""
        pieces = [frame.data for frame in frames]
        is_clean = not masker.may_hold(b"".join(pieces))
        if is_clean and not self._held and b"" not in pieces and set(map(_LAST_BYTE, pieces)) == _ENDS:
            return frames
        passed: list[Frame] = []
        for frame in frames:
            ends_line = frame.data.endswith(b"\n")
            if ends_line and frame.stream not in self._held and (is_clean or not masker.may_hold(frame.data)):
                passed.append(frame)
                continue
            line = [*self._held.pop(frame.stream, ()), frame]
            held_frames = 0 if ends_line else self._hold_back(line, masker)
            passed += _mask_line(line[: len(line) - held_frames], masker)
        return passed

    def flush(self, masker: Masker) -> Sequence[Frame]:
        """Return what is held back: the log has ended."""
        passed = [frame for line in self._held.values() for frame in _mask_line(line, masker)]
        self._held.clear()
        return passed

    def _hold_back(self, line: list[Frame], masker: Masker) -> int:
        """Hold the last frames of an open line back if a value may go on behind them; return how many."""
        data = b"".join(frame.data for frame in line)
        first = masker.find_open_start(data)
        if first == len(data):
            return 0
        starts = _list_starts(line)
        at = bisect_right(starts, first) - 1
        for start, end in reversed(masker.find_spans(data)):
            if end > starts[at]:  # a value and its mask stay together
                at = min(at, bisect_right(starts, start) - 1)
        self._held[line[0].stream] = line[at:]
        return len(line) - at


def _list_starts(line: Sequence[Frame]) -> list[int]:
    return [0, *accumulate(len(frame.data) for frame in line)][:-1]


def _mask_line(line: Sequence[Frame], masker: Masker) -> Iterator[Frame]:
    """Yield frames of one line; a value that is cut between them is masked in the first one."""
    spans = masker.find_spans(b"".join(frame.data for frame in line)) if line else []
    start = 0
    for frame in line:
        end = start + len(frame.data)
        yield frame._replace(
            data=_cut_spans(frame.data, start, [span for span in spans if span[0] < end and span[1] > start])
        )
        start = end


def _cut_spans(data: bytes, start: int, spans: Sequence[Span]) -> bytes:
    """Return the part of a line from `start` on, with each mask where its value begins."""
    pieces: list[bytes] = []
    position = 0
    for first, last in spans:
        pieces += (data[position : max(0, first - start)], MASK if first >= start else b"")
        position = last - start
    return b"".join([*pieces, data[position:]])
