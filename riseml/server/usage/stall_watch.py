"""Which experiments make no progress any more, by the rhythm of what their jobs print. In memory.

The followers of logs give the output to this watch. A server that starts while jobs run knows no rhythm of theirs yet.
Times are those of the server's monotonic clock.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future

from riseml.analysis.stalls import (
    Rhythm,
    Stall,
    add_sign,
    describe_stall,
    find_stalls,
    is_sign,
    opens_pause,
    skip_time,
)
from riseml.base.names import HostName, JobName
from riseml.base.records import dataclass
from riseml.base.states import JobDuty, State
from riseml.diagnosis.verdicts import StallCause, StallDiagnosis
from riseml.model import Experiment, Frame, HostObservation, Job, JobKey, World
from riseml.spec.config.types import StallRule

_STREAMS = (1, 2)  # stdout and stderr
_MOST_BYTES = 1 << 13  # of the end of what came at once that are searched


Diagnose = Callable[[Experiment, Mapping[JobName, float]], "Future[StallDiagnosis]"]
"""Begins to find out why an experiment makes no progress. Its arguments are the record, and the seconds since the last
sign of each job."""


@dataclass(frozen=True, slots=True)
class KnownStall:
    """A stall, with what is known of its cause."""

    stall: Stall
    sentence: str  # why, for people; empty: it is not known

    def __str__(self) -> str:
        return f"{describe_stall(self.stall)}{': ' if self.sentence else ''}{self.sentence}"


@dataclass(slots=True)
class _StallCase:
    """The stalls of an experiment at this moment."""

    stalls: tuple[Stall, ...] = ()
    jobs: frozenset[JobName | None] = frozenset()  # those of the diagnosis
    diagnosis: Future[StallDiagnosis] | None = None  # None: its rule wants none
    silent: float = 0.0  # seconds of silence when it began

    earlier: StallDiagnosis | None = None  # the last answer, while the next one is found out

    @property
    def answer(self) -> StallDiagnosis | None:
        """What is known of the cause; None: nothing."""
        if self.diagnosis is None or not self.diagnosis.done():
            return self.earlier
        return None if self.diagnosis.exception() is not None else self.diagnosis.result()

    def list_known(self) -> tuple[KnownStall, ...]:
        """Return the stalls that users are told of: not while the first diagnosis goes on, nor when the jobs are at
        work."""
        answer = self.answer
        if answer is None:
            is_open = self.diagnosis is not None and not self.diagnosis.done()
            return () if is_open else tuple(KnownStall(stall, "") for stall in self.stalls)
        if answer.cause is StallCause.WORKS:
            return ()
        return tuple(KnownStall(stall, answer.sentence) for stall in self.stalls)


@dataclass(slots=True)
class _RunRhythm:
    """The signs of one attempt of an experiment."""

    attempt: int
    run: Rhythm
    jobs: dict[JobKey, Rhythm]


class StallWatch:
    """Knows the rhythm of each experiment that runs. Safe from many threads.

    Args:
        is_log_full: returns True for a job whose output is not read any more.
        diagnose: finds out why an experiment is stuck.
        clock: seconds that never go back.
    """

    def __init__(
        self, is_log_full: Callable[[JobKey], bool], diagnose: Diagnose, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._is_log_full = is_log_full
        self._diagnose = diagnose
        self._clock = clock
        self._lock = threading.Lock()
        self._runs: dict[int, _RunRhythm] = {}
        self._cases: dict[int, _StallCase] = {}

    def note_frames(self, key: JobKey, frames: Sequence[Frame]) -> None:
        """Take the next output of a job for a sign of life, unless it only says that something waits."""
        with self._lock:
            followed = self._runs.get(key.experiment)
            if followed is None or key not in followed.jobs:
                return
        data = b"".join([frame.data for frame in frames if frame.stream in _STREAMS])
        if not data or not is_sign(data):
            return
        pause = opens_pause(data[-_MOST_BYTES:])
        with self._lock:
            followed = self._runs.get(key.experiment)
            if followed is None or key not in followed.jobs:
                return
            now = self._clock()
            followed.jobs[key] = add_sign(followed.jobs[key], now, opens_pause=pause)
            followed.run = add_sign(followed.run, now, opens_pause=pause)

    def find_stalled(self, world: World, hosts: Mapping[HostName, HostObservation]) -> dict[int, str]:
        """Return the experiments that make no progress and must end then, with a sentence for each; the others are
        remarked. The loop calls it in each pass: what is not in `world` is forgotten."""
        watched = {experiment.id: experiment for experiment in world.experiments if _is_watched(experiment)}
        with self._lock:
            self._runs = {identity: run for identity, run in self._runs.items() if identity in watched}
            self._cases = {identity: self._judge(experiment, hosts) for identity, experiment in watched.items()}
            return dict(self._list_ends(watched))

    def list_stalls(self, experiment: int) -> tuple[KnownStall, ...]:
        """Return the stalls of an experiment, as of the last pass of the loop."""
        with self._lock:
            case = self._cases.get(experiment)
        return () if case is None else case.list_known()

    def _list_ends(self, watched: Mapping[int, Experiment]) -> Iterator[tuple[int, str]]:
        for identity, case in self._cases.items():
            stalls = case.list_known() if watched[identity].plan.policy.stall.then in _ENDS else ()
            if stalls and stalls[0].stall.job is None:
                yield identity, str(stalls[0])

    def _judge(self, experiment: Experiment, hosts: Mapping[HostName, HostObservation]) -> _StallCase:
        """Return the stalls of an experiment, and begin a diagnosis when another rank has stopped since the last one,
        or the silence is twice as long."""
        stalls = self._look(experiment, hosts)
        before = self._cases.get(experiment.id, _StallCase())
        jobs = frozenset(stall.job for stall in stalls)
        if not stalls or experiment.plan.policy.stall.then is StallRule.REMARK:
            return _StallCase(stalls)
        longest = max(stall.silent for stall in stalls)
        if before.diagnosis is not None:
            is_new = not jobs <= before.jobs or longest >= _AGAIN * before.silent
            if not before.diagnosis.done() or not is_new:
                return _StallCase(stalls, before.jobs, before.diagnosis, before.silent, before.earlier)
        now = self._clock()
        silent = {key.job: now - rhythm.last for key, rhythm in self._runs[experiment.id].jobs.items()}
        return _StallCase(stalls, jobs, self._diagnose(experiment, silent), longest, before.answer)

    def _look(self, experiment: Experiment, hosts: Mapping[HostName, HostObservation]) -> tuple[Stall, ...]:
        now = self._clock()
        jobs = [job for job in experiment.gang if job.state is State.RUNNING and job.part is not JobDuty.WATCHES]
        attempt = max(job.attempt for job in experiment.gang)
        followed = self._runs.get(experiment.id)
        if followed is None or followed.attempt != attempt:
            followed = self._runs[experiment.id] = _RunRhythm(attempt, Rhythm(now), {})
        keys = {experiment.key_of(job): job for job in jobs}
        followed.jobs = {key: followed.jobs.get(key, Rhythm(now)) for key in keys}
        unseen = [key for key, job in keys.items() if not self._is_seen(key, job, hosts)]
        for key in unseen:
            followed.jobs[key] = skip_time(followed.jobs[key], now)
        if unseen or not keys:
            followed.run = skip_time(followed.run, now)
        rhythms = {key.job: rhythm for key, rhythm in followed.jobs.items()}
        return find_stalls(followed.run, rhythms, now, experiment.plan.policy.stall.after) if keys else ()

    def _is_seen(self, key: JobKey, job: Job, hosts: Mapping[HostName, HostObservation]) -> bool:
        host = None if job.host is None else hosts.get(job.host)
        return host is not None and host.silent_since is None and not self._is_log_full(key)


_AGAIN = 2.0  # times the silence of the last diagnosis after which the next one follows
_ENDS = frozenset({StallRule.RETRY, StallRule.FAIL})


def _is_watched(experiment: Experiment) -> bool:
    """Return True for an experiment that runs; a notebook waits for its user."""
    return experiment.state is State.RUNNING and experiment.verdict is None and experiment.plan.companion is None
