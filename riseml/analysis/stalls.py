"""When an experiment that runs makes no progress any more: silence that does not fit its own rhythm. Pure.

A sign of life is a piece of output: a line, a state of a progress bar, a report of metrics, a step, a scalar that was
read in an event file. Lines that say that a job waits are none. The rules:

- **A stall** is silence longer than five minutes and longer than five times the longest gap between two signs so far.
- **A known pause** is silence after output that says so: an evaluation, a checkpoint, a download, a bar that is full.
  It counts for no gap, and is a stall after half an hour, and five times the longest pause so far, at the earliest.
- **A rhythm must be known first**: the signs so far must span as much time as the silence that would be a stall. So a
  program that prints its settings and then computes for hours has no stall, nor has one that prints at its 1st, 10th,
  100th and 1000th step.
- Time in which the server cannot see output (a host that does not answer, a log that is full) counts as no silence,
  nor does as much time after it, in which the output may still come. A host that is away for seconds again and again,
  as a loaded one is, hides no stall for longer than that.
- `after` in riseml.yml takes the place of all that for the run as a whole, from its start on.

A run has the signs of all of its jobs together: in many gangs one rank alone prints. A single rank stalls only by a
rhythm of its own, while others go on.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from riseml.base.names import JobName
from riseml.base.records import dataclass

SHORTEST = 300.0  # seconds of silence: no shorter one is a stall by its rhythm
SHORTEST_PAUSE = 1800.0  # seconds of a known pause: no shorter one is a stall
GAPS = 5.0  # times the longest gap, or the longest pause, so far

_LONGEST_LINE = 400  # bytes at the end of a line that are searched
_OPENS_PAUSE = re.compile(
    rb"\b(?:evaluat\w*|validat\w*|evals?|test(?:s|ing)?|checkpoint\w*|ckpt|sav(?:e|es|ed|ing)|snapshot\w*|restor\w+"
    rb"|download\w*|upload\w*|compil\w+|preprocess\w*|tokeniz\w+|loading)\b|\b100 ?%|(?<![0-9])([0-9]+)/\1(?![0-9])",
    re.IGNORECASE,
)
_IS_WAIT = re.compile(
    rb"\bstall(?:ed|s)?\b|stall_inspector|\b(?:still )?waiting (?:for|on|to)\b|\bwaits for\b|\bwatchdog\b"
    rb"|\bretry(?:ing)? in\b|\bmissing ranks\b|\bnot ready\b|^\s*[0-9]+: \[[\w., /-]*\]\s*$",
    re.IGNORECASE,
)
_IS_WORK = re.compile(rb"\b(?:step|loss|iter(?:ation)?|epoch|batch)\b", re.IGNORECASE)
_PIECE = re.compile(rb"[\r\n]+")
_MOST_SEARCHED = 1 << 12  # bytes of output that are searched for waits; more of it is a sign


@dataclass(frozen=True, slots=True)
class Rhythm:
    """When something has given signs of life so far."""

    last: float  # seconds: when the last sign came, or when it began
    span: float = 0.0  # seconds between the first sign and the last one that the server could see
    gap: float = 0.0  # the longest seconds between two signs, outside of known pauses
    pause: float = 0.0  # the longest seconds of a known pause
    signs: int = 0
    is_in_pause: bool = False  # the last sign began a known pause


@dataclass(frozen=True, slots=True)
class Stall:
    """Silence that is too long."""

    job: JobName | None  # that is silent while others go on; None: the whole run
    silent: float  # seconds
    usual: float  # the longest seconds between two signs before; 0: no two signs
    first: JobName | None = None  # the job that was silent first, where that is known


def add_sign(rhythm: Rhythm, at: float, *, opens_pause: bool = False) -> Rhythm:
    """Return the rhythm after a further sign.

    Args:
        rhythm: so far.
        at: seconds of a clock that never goes back; an earlier time counts as the last one.
        opens_pause: the sign says that something begins which may take long.
    """
    passed = max(0.0, at - rhythm.last)
    if not rhythm.signs:  # what is before the first sign is no gap: a start may take any time
        return replace(rhythm, last=max(at, rhythm.last), signs=1, is_in_pause=opens_pause)
    gap = rhythm.gap if rhythm.is_in_pause else max(rhythm.gap, passed)
    pause = max(rhythm.pause, passed) if rhythm.is_in_pause else rhythm.pause
    return Rhythm(rhythm.last + passed, rhythm.span + passed, gap, pause, rhythm.signs + 1, opens_pause)


def skip_time(rhythm: Rhythm, unseen: float, at: float) -> Rhythm:
    """Return the rhythm after time in which nothing could be seen.

    Args:
        rhythm: so far.
        unseen: seconds.
        at: when they ended.
    """
    return replace(rhythm, last=max(rhythm.last, min(at, rhythm.last + 2 * unseen)))


def find_patience(rhythm: Rhythm, least: float = SHORTEST) -> float | None:
    """Return the seconds of silence that are a stall; None: the rhythm is not known yet.

    Args:
        rhythm: so far.
        least: no shorter silence is a stall.
    """
    patience = max(least, GAPS * rhythm.gap)
    if rhythm.is_in_pause:
        patience = max(patience, SHORTEST_PAUSE, GAPS * rhythm.pause)
    return patience if rhythm.span >= patience else None


def find_stalls(
    run: Rhythm, jobs: Mapping[JobName, Rhythm], now: float, after: float | None = None
) -> tuple[Stall, ...]:
    """Return the stalls of an experiment at this moment: that of the whole run alone, or those of single jobs.

    Args:
        run: the signs of all jobs together.
        jobs: the signs of each job that runs.
        now: seconds.
        after: seconds of silence of the whole run that are a stall, as riseml.yml says; None: by its rhythm.
    """
    patience = find_patience(run) if after is None else after
    silent = now - run.last
    if patience is not None and silent >= patience:
        return (Stall(None, silent, run.gap, _find_first(jobs)),)
    if len(jobs) < 2:
        return ()
    least = max(SHORTEST, after or 0.0)
    limits = {name: find_patience(rhythm, least) for name, rhythm in jobs.items()}
    return tuple(
        Stall(name, now - rhythm.last, rhythm.gap, name)
        for name, rhythm in jobs.items()
        if (limit := limits[name]) is not None and now - rhythm.last >= limit
    )


def describe_stall(stall: Stall) -> str:
    """Return a stall in words: `no sign of progress for 12 m, after 4 s at most before; worker.2 was silent first`."""
    text = f"no sign of progress for {_format_time(stall.silent)}"
    if stall.usual:
        text += f", after {_format_time(stall.usual)} at most before"
    if stall.job is not None:
        return f"{text}, while other jobs go on"
    return text if stall.first is None else f"{text}; {stall.first} was silent first"


def opens_pause(output: bytes) -> bool:
    """Return True when the last line of some output says that something begins which may take long."""
    pieces = [piece for piece in _PIECE.split(output[-2 * _LONGEST_LINE :]) if piece.strip()]
    return bool(pieces) and _OPENS_PAUSE.search(pieces[-1][-_LONGEST_LINE:]) is not None


def is_sign(output: bytes) -> bool:
    """Return False for output whose lines all say that something waits, as those of Horovod about stalled ranks do."""
    if len(output) > _MOST_SEARCHED:
        return True
    return any(piece.strip() and not _says_wait(piece) for piece in _PIECE.split(output))


def _says_wait(line: bytes) -> bool:
    return _IS_WAIT.search(line) is not None and _IS_WORK.search(line) is None


def _format_time(seconds: float) -> str:
    if seconds < 120:
        return f"{max(1, round(seconds))} s"
    return f"{round(seconds / 60)} m" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def _find_first(jobs: Mapping[JobName, Rhythm]) -> JobName | None:
    """Return the job that was silent first: earlier than any other one by more than its own longest gap; None: there is
    none such, or fewer than two jobs have a rhythm."""
    heard = sorted((rhythm.last, name) for name, rhythm in jobs.items() if rhythm.signs > 1)
    if len(heard) < 2:
        return None
    name = heard[0][1]
    return name if heard[1][0] - heard[0][0] > max(1.0, jobs[name].gap) else None
