"""How far the jobs that run are, as their output says. In memory: one record for each job.

The follower of a job's log gives each piece of output to this tracker. A server that starts while jobs run begins with
their last lines. Times are those of the server's monotonic clock: timestamps of an engine may jump, and all states of a
progress bar have the time of its first one.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace

from riseml.analysis.progress import NO_PROGRESS, Progress, ProgressState, add_readings, find_progress
from riseml.analysis.progress_lines import LONGEST_STATE, REPORTED, Reading, read_line
from riseml.analysis.rates import Rate, StepMarks, add_step, find_rates, read_report_step, read_told_rates
from riseml.analysis.remarks import Remark, check_rate
from riseml.base.records import dataclass
from riseml.job_programs.reports import DONE_METRIC, OF_METRIC
from riseml.model import Frame, JobKey
from riseml.store.logs.report_lines import MARKER

_STREAMS = (1, 2)  # stdout and stderr
_MOST_BYTES = 1 << 16  # of the end of what came at once that are searched
_MOST_PIECES = 60  # lines and states among those that are read
_HINTS = (b"/", b"%", b" of ", DONE_METRIC.encode())  # output without any of them has no progress
_PIECE = re.compile(rb"[\r\n]+")
_CANDIDATE = re.compile(rb"[0-9] ?(?:/|of|%|[a-zA-Z]{1,12} \[)|riseml\.done")
_LAST_REPORTS = 4096  # bytes of the reports among those that are read
_REPORTED = re.compile(rb'"(riseml\.done|riseml\.of)": *(-?[0-9.eE+-]{1,40})')


@dataclass(slots=True)
class _ReadOutput:
    """What is known of one job."""

    state: ProgressState = NO_PROGRESS
    steps: StepMarks = StepMarks()
    told_rates: dict[str, tuple[float, float]] = field(
        default_factory=dict
    )  # rates by unit, behind when they were told
    tails: dict[int, bytes] = field(default_factory=dict)  # by stream: the beginning of a line, or of a state


class ProgressTracker:
    """Reads the progress in the output of jobs. Safe from many threads, one thread a job.

    Args:
        clock: seconds that never go back.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._jobs: dict[JobKey, _ReadOutput] = {}

    def note_frames(self, key: JobKey, frames: Sequence[Frame]) -> None:
        """Read the next output of a job."""
        readings: list[Reading] = []
        with self._lock:
            tails = self._jobs[key].tails if key in self._jobs else {}
        left: dict[int, bytes] = {}
        for stream in _STREAMS:
            data = b"".join([frame.data for frame in frames if frame.stream == stream])
            if not data:
                continue
            data = tails.get(stream, b"") + data[-_MOST_BYTES:]
            self._note_report(key, data)
            if any(hint in data for hint in _HINTS):
                some, left[stream] = _read_pieces(data)
                readings += some
            else:
                left[stream] = b"" if data.endswith((b"\n", b"\r")) else _find_tail(data)
        if not readings and left == {stream: tails.get(stream, b"") for stream in left}:
            return
        with self._lock:
            if key not in self._jobs and not readings and not any(left.values()):
                return
            followed = self._jobs.setdefault(key, _ReadOutput())
            followed.tails |= left
            if readings:
                followed.state = add_readings(followed.state, readings, self._clock())

    def _note_report(self, key: JobKey, data: bytes) -> None:
        """Read what the last reports in some output say about the rate of their job."""
        if MARKER not in data:
            return
        step: int | None = None
        new_rates: dict[str, float] = {}
        for line in data[-_LAST_REPORTS:].split(b"\n"):
            if MARKER in line:
                last = read_report_step(line)
                step = step if last is None else last
                new_rates |= read_told_rates(line) if b"s_per_second" in line else {}
        if step is None and not new_rates:
            return
        now = self._clock()
        with self._lock:
            followed = self._jobs.setdefault(key, _ReadOutput())
            if step is not None:
                followed.steps = add_step(followed.steps, step, now)
            followed.told_rates |= {unit: (now, rate) for unit, rate in new_rates.items()}

    def find_rates(self, key: JobKey) -> tuple[Rate, ...]:
        """Return how fast a job is; empty: not known."""
        with self._lock:
            followed = self._jobs.get(key)
            if followed is None:
                return ()
            now = self._clock()
            return find_rates(find_progress(followed.state, now), followed.steps, followed.told_rates, now)

    def drop_jobs(self, present: frozenset[JobKey]) -> None:
        """Forget all jobs but these."""
        with self._lock:
            self._jobs = {key: followed for key, followed in self._jobs.items() if key in present}

    def check_rate(self, key: JobKey) -> Remark | None:
        """Return a remark about a job whose rate has dropped; its `since` is in seconds before now."""
        with self._lock:
            followed = self._jobs.get(key)
            state = NO_PROGRESS if followed is None else followed.state
            steps = StepMarks() if followed is None else followed.steps
        now = self._clock()
        progress = find_progress(state, now)
        if progress is not None and progress.fraction >= 1:
            return None
        marks, pause = (steps.marks, steps.pause) if progress is None else (state.marks, state.pause)
        remark = check_rate(marks, now, pause) if marks else None
        return None if remark is None or remark.since is None else replace(remark, since=now - remark.since)

    def find_job(self, key: JobKey) -> Progress | None:
        """Return how far a job is; None: not known."""
        with self._lock:
            followed = self._jobs.get(key)
            return None if followed is None else find_progress(followed.state, self._clock())


def _read_pieces(data: bytes) -> tuple[list[Reading], bytes]:
    """Return what the lines and the states of bars say, and the piece at the end that may go on."""
    *whole, last = _PIECE.split(data)
    candidates = [piece for piece in whole if _CANDIDATE.search(piece[:LONGEST_STATE])]
    readings: list[Reading] = []
    for piece in candidates[-_MOST_PIECES:]:
        readings += _read_piece(piece, whole=True)
    if _CANDIDATE.search(last[:LONGEST_STATE]):
        readings += _read_piece(last, whole=False)
    return readings, _find_tail(last)


def _find_tail(data: bytes) -> bytes:
    """Return the end of output that may be the beginning of a state; nothing where it is too long to be one."""
    tail = data[max(data.rfind(b"\n"), data.rfind(b"\r")) + 1 :]
    return tail if len(tail) <= 4 * LONGEST_STATE else b""


def _read_piece(piece: bytes, *, whole: bool) -> Sequence[Reading]:
    if DONE_METRIC.encode() not in piece:
        return read_line(piece.decode("utf-8", "replace"), whole=whole)
    amounts = _read_report(piece) if whole else {}
    amount = amounts.get(DONE_METRIC)
    of = amounts.get(OF_METRIC)
    return [] if amount is None or of is None or not 0 <= amount <= of else [Reading(REPORTED, "", amount, of, "")]


def _read_report(piece: bytes) -> Mapping[str, float]:
    amounts: dict[str, float] = {}
    for name, text in _REPORTED.findall(piece):
        try:
            amounts[name.decode()] = float(text)
        except ValueError:
            return {}
    return amounts
