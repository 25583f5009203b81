"""Frames of a job's log in which of each progress bar only the last state is left. Pure.

A bar writes a state, and then the next one over it: behind a carriage return, or, where it knows no terminal, as a line
of its own. A state is left out when the next one of the same bar follows it directly, and is at least as far. A line
with a full bar stays: what follows is another bar, such as that of the next epoch. What is no state of a bar is never
left out (`analysis.progress_lines` says what is).
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import replace

from riseml.analysis.progress_lines import LONGEST_STATE, Reading, read_bar
from riseml.base.records import dataclass
from riseml.model import Frame

_HINTS = (b"\r", b"%", "━".encode(), b"=>", b"=]", b".]", b"it [", b"/s")  # output without any of them has no bar
_LONGEST = 4 * LONGEST_STATE  # bytes of a state


class BarRule(enum.Enum):
    """Which states of progress bars a log keeps."""

    LAST = enum.auto()  # the last one of each bar
    LAST_IN_LINE = enum.auto()  # the last one in each line, and every line: patterns search them
    ALL = enum.auto()


@dataclass(frozen=True, slots=True)
class _HeldState:
    """The newest frames, which are nothing but a state of a bar."""

    frames: tuple[Frame, ...]  # one, or a line and its end
    state: Reading
    is_line: bool  # a line of its own, whose end may not have come yet

    @property
    def is_open(self) -> bool:
        """True while the end of the line has not come."""
        return self.is_line and not self.frames[-1].data.endswith(b"\n")


class BarThinner:
    """Thins the frames of one job, in the order of its log.

    The newest frames are held back where they are nothing but a state of a bar: the next one may take its place. So the
    store always holds all frames before those that are held, as far as they are kept, and a reader goes on there.

    Args:
        rule: what is kept.
    """

    def __init__(self, rule: BarRule = BarRule.LAST) -> None:
        self._rule = rule
        self._newest: _HeldState | None = None
        self._open: frozenset[int] = frozenset()  # streams whose line goes on

    def forget(self, open_streams: frozenset[int] = frozenset()) -> None:
        """Drop what is held back, because the log is read again from what the store holds.

        Args:
            open_streams: streams whose line goes on there.
        """
        self._newest = None
        self._open = open_streams

    def thin_frames(self, frames: Sequence[Frame]) -> Sequence[Frame]:
        """Return the frames that may be stored now."""
        if self._rule is BarRule.ALL:
            return frames
        data = b"".join([frame.data for frame in frames])
        if self._newest is None and not any(hint in data for hint in _HINTS):
            self._note_ends(frames)
            return frames
        passed: list[Frame] = []
        for frame in frames:
            self._take_frame(frame, passed)
        return passed

    def flush(self) -> Sequence[Frame]:
        """Return what is held back: the log has ended."""
        newest = self._newest
        self._newest = None
        return () if newest is None else newest.frames

    def _take_frame(self, frame: Frame, passed: list[Frame]) -> None:
        goes_on = frame.stream in self._open
        self._note_ends((frame,))
        before = self._newest
        if before is not None and before.is_open and frame.data == b"\n" and frame.stream == before.frames[0].stream:
            self._newest = replace(before, frames=(*before.frames, frame))
            return
        frame = frame._replace(data=_drop_states(frame.data)) if b"\r" in frame.data else frame
        state = self._find_only_state(frame.data, goes_on=goes_on)
        if before is not None:
            if state is None or not _takes_place(before, frame, state):
                passed += before.frames
            else:  # the number of frames with one time tells where a reader goes on
                passed += [earlier._replace(data=b"") for earlier in before.frames if earlier.at == frame.at]
        self._newest = None if state is None else _HeldState((frame,), state, not frame.data.startswith(b"\r"))
        if state is None:
            passed.append(frame)

    def _find_only_state(self, data: bytes, *, goes_on: bool) -> Reading | None:
        """Return the state that a frame is; None: it has other text, or may go on in the next frame."""
        text = data.strip(b"\r\n")
        is_state = data.startswith(b"\r") and not data.endswith(b"\n")
        is_line = not data.startswith(b"\r") and not goes_on and self._rule is BarRule.LAST
        if not is_state and not is_line:
            return None
        return None if b"\r" in text or b"\n" in text else _read_state(text)

    def _note_ends(self, frames: Sequence[Frame]) -> None:
        last = {frame.stream: frame.data for frame in frames}
        opened = {stream for stream, data in last.items() if data and not data.endswith(b"\n")}
        unchanged = {stream for stream, data in last.items() if not data} & self._open
        self._open = (self._open - last.keys()) | opened | unchanged


def _takes_place(before: _HeldState, frame: Frame, state: Reading) -> bool:
    """Return True when a state takes the place of the one before it."""
    is_line = not frame.data.startswith(b"\r")
    if is_line and before.state.of == before.state.amount:
        return False
    is_next = before.frames[0].stream == frame.stream and before.is_line is is_line and not before.is_open
    return is_next and _is_later(before.state, state)


def _is_later(before: Reading, state: Reading) -> bool:
    """Return True for a state of the same bar that is at least as far."""
    return replace(before, amount=state.amount) == state and before.amount <= state.amount


def _read_state(text: bytes) -> Reading | None:
    return read_bar(text.decode("utf-8", "replace")) if len(text) <= _LONGEST else None


def _drop_states(data: bytes) -> bytes:
    """Return a piece of a line without the states of a bar that another one in it takes the place of."""
    first, *states = data.split(b"\r")
    kept_states: list[bytes] = []
    last: Reading | None = None
    for at, text in enumerate(states):
        state = _read_state(text.rstrip(b"\n"))
        is_blank = not text.strip(b" \x08") and at < len(states) - 1
        if is_blank and last is not None:
            continue  # it erases a bar, and what follows stands alone
        if kept_states and state is not None and last is not None and _is_later(last, state):
            kept_states[-1] = text
        else:
            kept_states.append(text)
        last = state
    return b"\r".join([first, *kept_states])
