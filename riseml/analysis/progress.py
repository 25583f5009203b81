"""How far a job is, and how much time is left: what successive readings of its bars and counts mean together. Pure.

Bars nest: a bar that begins while another one is not full is inside of it, and the outermost one tells how far the job
is; what is done of the inner one counts as a part of the outer one's next unit. The rules:

- Nothing comes from a single line: a bar counts once it has moved, or once a bar inside of it has.
- A count of epochs is outside of every bar. Where bars began after `Epoch 1/10`, that epoch is not done yet.
- A bar that is full makes room for the next one. One that begins again (a bar for each epoch of an unknown number) says
  how far its round is, and leaves the time unknown.
- An outer bar that never moved, while one inside of it began again, is none; and so is one that stood still ten times
  as long as ever before, ten minutes at least.
- The time left follows from the rate of the last half of the time, a minute at least, pauses for evaluation included.
  Its spread comes from how much that rate varied. A new estimate moves the end by the spread at most.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from statistics import fmean, pstdev

from riseml.analysis.progress_lines import EPOCH, REPORTED, Reading
from riseml.base.records import dataclass

_MOST_LEVELS = 4  # bars inside of each other
_MOST_FULL = 50  # full bars that are remembered
_MOST_MARKS = 96  # looks from which the rate follows
_FEWEST_MARKS = 4
_SHORTEST = 5.0  # seconds from which a rate follows
_RECENT = 60.0  # seconds; the last half of the time when that is longer
_LEAST_SPREAD = 0.05  # part of the time left
_STILL = 30.0  # seconds without any move after which the time left is not known, or five of the longest pauses so far
_STILL_PAUSES = 5
_ABANDONED = 600.0  # seconds
_ABANDONED_PAUSES = 10


@dataclass(frozen=True, slots=True)
class OpenBar:
    """One bar or count of a job."""

    key: tuple[str, str]
    of: float
    unit: str
    amount: float  # that is done
    first: float  # the first amount
    moves: int = 0  # how often the amount has grown
    rounds: int = 0  # how often it began again
    is_begun: bool = False  # the amount counts the unit that runs, which is not done
    moved_at: float = 0.0  # seconds
    longest_pause: float = 0.0  # seconds between two moves

    @property
    def is_full(self) -> bool:
        """True when nothing is left of it."""
        return self.amount >= self.of and not self.is_begun


@dataclass(frozen=True, slots=True)
class ProgressState:
    """What the readings of one job so far mean."""

    levels: tuple[OpenBar, ...] = ()  # the outermost first
    full: tuple[tuple[str, str], ...] = ()  # keys of bars that were full before, the last ones
    marks: tuple[tuple[float, float], ...] = ()  # seconds, and how much of the outermost was done
    pause: float = 0.0  # the most seconds between two of them, also of those that are not outside
    end_at: float | None = None  # seconds: when it ends; None: not known
    spread: float = 0.0  # seconds by which that may be wrong


NO_PROGRESS = ProgressState()


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a job is."""

    amount: float  # that is done
    of: float
    unit: str  # empty: not known
    fraction: float  # from 0 to 1, with what is done of the bar inside
    per_second: float | None  # units; None: not known
    remaining: float | None  # seconds; None: not known
    spread: float | None  # seconds by which that may be wrong
    rounds: int  # how often the bar began again: it tells how far the round is


def add_readings(state: ProgressState, readings: Iterable[Reading], now: float) -> ProgressState:
    """Return what is known after some more readings.

    Args:
        state: what was known before.
        readings: in the order of the output; those of one line with the outermost first.
        now: seconds of a clock that never goes back; an earlier time counts as the last one.
    """
    now = max(now, state.marks[-1][0]) if state.marks else now
    for reading in readings:
        if reading.of is not None and reading.of > 0:
            state = _add_reading(state, reading, reading.of, now)
    return _estimate(state, now)


def find_progress(state: ProgressState, now: float) -> Progress | None:
    """Return how far a job is; None: not known.

    Args:
        state: what is known.
        now: seconds of the clock of `add_readings`.
    """
    if not _is_confirmed(state.levels):
        return None
    outer = state.levels[0]
    position = state.marks[-1][1] if state.marks else _measure(state.levels)
    rate = find_rate(state.marks)
    remaining: float | None = None
    if state.end_at is not None and state.end_at > now and not stands_still(state.marks, state.pause, now):
        remaining = state.end_at - now
    return Progress(
        outer.amount,
        outer.of,
        outer.unit,
        min(1.0, position / outer.of),
        None if rate is None or stands_still(state.marks, state.pause, now) else rate[0],
        0.0 if outer.is_full else remaining,
        None if remaining is None or outer.is_full else state.spread,
        outer.rounds,
    )


def find_rate(marks: Sequence[tuple[float, float]]) -> tuple[float, float] | None:
    """Return the recent rate, per second, and by which part of itself it varied; None: not known yet.

    Args:
        marks: seconds and amounts, both growing.
    """
    if len(marks) < _FEWEST_MARKS:
        return None
    end, last = marks[-1]
    begin = end - max(_RECENT, (end - marks[0][0]) / 2)
    start = max(0, next(at for at, mark in enumerate(marks) if mark[0] >= begin) - 1)
    recent = marks[start:] if len(marks) - start >= _FEWEST_MARKS else marks[-_FEWEST_MARKS:]
    seconds = end - recent[0][0]
    if seconds < _SHORTEST or last <= recent[0][1]:
        return None
    pauses = _list_unit_seconds(recent)
    varied = pstdev(pauses) / fmean(pauses) if len(pauses) > 1 else 1.0
    return (last - recent[0][1]) / seconds, min(1.0, max(_LEAST_SPREAD, varied))


def add_mark(marks: tuple[tuple[float, float], ...], now: float, amount: float) -> tuple[tuple[float, float], ...]:
    """Return marks with a further one; the older half is thinned out when there are too many.

    Args:
        marks: seconds and amounts, both growing.
        now: seconds; not after the last mark: it takes the place of that.
        amount: above that of the last mark.
    """
    earlier = marks[:-1] if marks and now <= marks[-1][0] else marks
    marks = (*earlier, (now, amount))
    if len(marks) <= _MOST_MARKS:
        return marks
    half = len(marks) // 2
    return (*marks[:half:2], *marks[half:])


def _list_unit_seconds(marks: Sequence[tuple[float, float]]) -> list[float]:
    """Return the seconds for a unit in each quarter of the time."""
    count = len(marks) - 1
    places = sorted({round(count * part / 4) for part in range(5)})
    return [
        (marks[end][0] - marks[start][0]) / (marks[end][1] - marks[start][1])
        for start, end in pairwise(places)
        if marks[end][1] > marks[start][1]
    ]


def _add_reading(state: ProgressState, reading: Reading, of: float, now: float) -> ProgressState:
    levels = state.levels
    if reading.form == REPORTED and (not levels or levels[0].key != reading.key):
        return _begin(state, reading, of, now)
    if levels and levels[0].key[0] == REPORTED and reading.form != REPORTED:
        return state  # the job says itself how far it is
    at = next((at for at, level in enumerate(levels) if level.key == reading.key), None)
    if at is None:
        return _push(_drop_abandoned(state, now), reading, of, now)
    level = levels[at]
    if reading.amount == level.amount and of == level.of:
        return state
    if of != level.of or reading.amount < level.amount:
        again = replace(
            _make_bar(reading, of, now), rounds=level.rounds + 1, moves=level.moves, longest_pause=level.longest_pause
        )
        if at == 0:
            return replace(state, levels=(again,), marks=(), pause=0.0, end_at=None)
        return _drop_still(replace(state, levels=(*levels[:at], again)), now)
    moved = replace(
        level,
        amount=reading.amount,
        moves=level.moves + 1,
        moved_at=now,
        longest_pause=max(level.longest_pause, now - level.moved_at),
    )
    return replace(state, levels=(*levels[:at], moved))


def _push(state: ProgressState, reading: Reading, of: float, now: float) -> ProgressState:
    """Return the state with a further bar, inside of those that are not full."""
    if reading.form == EPOCH:  # outside of every bar
        if state.levels and state.levels[0].key[0] == EPOCH:
            return state
        return _begin(replace(state, full=_note_full(state, state.levels)), reading, of, now)
    outside = state.levels
    while outside and outside[-1].is_full:
        outside = outside[:-1]
    full = _note_full(state, state.levels[len(outside) :])
    level = replace(_make_bar(reading, of, now), rounds=int(reading.key in full))
    if not outside:
        return ProgressState((level,), full)
    outer = outside[0]
    if outer.key[0] == EPOCH and not outer.moves and outer.first == 1 and reading.key not in full:
        outside = (replace(outer, is_begun=True), *outside[1:])
    if len(outside) >= _MOST_LEVELS:
        return replace(state, full=full)
    return replace(state, levels=(*outside, level), full=full)


def _begin(state: ProgressState, reading: Reading, of: float, now: float) -> ProgressState:
    return ProgressState((_make_bar(reading, of, now),), state.full)


def _make_bar(reading: Reading, of: float, now: float) -> OpenBar:
    return OpenBar(reading.key, of, reading.unit, reading.amount, reading.amount, moved_at=now)


def _note_full(state: ProgressState, levels: Iterable[OpenBar]) -> tuple[tuple[str, str], ...]:
    keys = [level.key for level in levels]
    return tuple(dict.fromkeys([*state.full, *keys]))[-_MOST_FULL:]


def _drop_still(state: ProgressState, now: float) -> ProgressState:
    """Return the state without outer bars that never moved while one inside of them began again twice."""
    inner = state.levels[-1]
    still = [level for level in state.levels[:-1] if not level.moves]
    if inner.rounds < 2 or len(still) < len(state.levels) - 1:
        return state
    return ProgressState((replace(inner, moved_at=now),), state.full)


def _drop_abandoned(state: ProgressState, now: float) -> ProgressState:
    if not state.levels:
        return state
    last = max(level.moved_at for level in state.levels)
    pause = max(level.longest_pause for level in state.levels)
    if now - last <= max(_ABANDONED, _ABANDONED_PAUSES * pause):
        return state
    return ProgressState(full=_note_full(state, state.levels))


def _is_confirmed(levels: Sequence[OpenBar]) -> bool:
    """Return True when more than one line speaks for the outermost bar, or the job has reported it."""
    return bool(levels) and (levels[0].key[0] == REPORTED or any(level.moves for level in levels))


def _measure(levels: Sequence[OpenBar]) -> float:
    """Return how much of the outermost bar is done, with the part of its next unit that bars inside have done."""
    if not levels:
        return 0.0
    outer = levels[0]
    amount = outer.amount - (1.0 if outer.is_begun else 0.0)
    inside = min(1.0, _measure(levels[1:]) / levels[1].of) if len(levels) > 1 else 0.0
    return min(outer.of, amount + inside)


def _estimate(state: ProgressState, now: float) -> ProgressState:
    """Return the state with a mark of how far it is now, and with when it ends, as far as that is known."""
    if not _is_confirmed(state.levels):
        return state
    position = _measure(state.levels)
    marks = state.marks
    if marks and position <= marks[-1][1]:
        return state
    pause = max(state.pause, now - marks[-1][0]) if marks else 0.0
    marks = add_mark(marks, now, position)
    state = replace(state, marks=marks, pause=pause)
    rate = find_rate(marks)
    outer = state.levels[0]
    if rate is None or outer.rounds:
        return state
    left = (outer.of - position) / rate[0]
    spread = left * rate[1]
    end_at = now + left
    if state.end_at is not None and math.isfinite(state.end_at):
        allowed = max(spread, 1.0)
        end_at = min(max(end_at, state.end_at - allowed), state.end_at + allowed)
    return replace(state, end_at=end_at, spread=spread)


def stands_still(marks: Sequence[tuple[float, float]], pause: float, now: float) -> bool:
    """Return True when nothing has moved for much longer than ever before.

    Args:
        marks: seconds and amounts, both growing.
        pause: the most seconds between two of them.
        now: seconds.
    """
    return bool(marks) and now - marks[-1][0] > max(_STILL, _STILL_PAUSES * pause)
