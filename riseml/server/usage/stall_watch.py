"""Which experiments make no progress any more, by the rhythm of what their jobs print. In memory.

The followers of logs give the output to this watch. A server that starts while jobs run knows no rhythm of theirs yet.
Times are those of the server's monotonic clock.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import field, replace

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


@dataclass(frozen=True, slots=True)
class _StallCase:
    """The stalls of an experiment at this moment, and what is found out about them."""

    stalls: tuple[Stall, ...] = ()
    signs: Mapping[JobName | None, int] = field(default_factory=dict)  # of the run (None) and of each job at that time
    jobs: frozenset[JobName | None] = frozenset()  # those of the diagnosis; empty: it is about an earlier stall
    diagnosis: Future[StallDiagnosis] | None = None  # None: its rule wants none
    silent: float = 0.0  # seconds of silence when it began
    earlier: StallDiagnosis | None = None  # the last answer, while the next one is found out

    @property
    def is_open(self) -> bool:
        """True while a diagnosis goes on."""
        return self.diagnosis is not None and not self.diagnosis.done()

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
            return () if self.is_open else tuple(KnownStall(stall, "") for stall in self.stalls)
        if answer.cause is StallCause.WORKS:
            return ()
        return tuple(KnownStall(stall, answer.sentence) for stall in self.stalls)


_NO_CASE = _StallCase()


@dataclass(slots=True)
class _RunRhythm:
    """The signs of one attempt of an experiment, and its stalls."""

    attempt: int
    looked: float  # when the watch looked last
    run: Rhythm
    jobs: dict[JobKey, Rhythm] = field(default_factory=dict)
    case: _StallCase = _NO_CASE

    def count_signs(self) -> dict[JobName | None, int]:
        """Return how many signs the run, as None, and each of its jobs have given."""
        return {None: self.run.signs, **{key.job: rhythm.signs for key, rhythm in self.jobs.items()}}


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
            for experiment in watched.values():
                self._judge(experiment, hosts)
            return dict(self._list_ends(watched))

    def list_stalls(self, experiment: int) -> tuple[KnownStall, ...]:
        """Return the stalls of an experiment, as of the last pass of the loop."""
        with self._lock:
            followed = self._runs.get(experiment)
        return () if followed is None else followed.case.list_known()

    def _list_ends(self, watched: Mapping[int, Experiment]) -> Iterator[tuple[int, str]]:
        for identity, followed in self._runs.items():
            stalls = followed.case.list_known() if watched[identity].plan.policy.stall.then in _ENDS else ()
            if stalls and stalls[0].stall.job is None:
                yield identity, str(stalls[0])

    def _judge(self, experiment: Experiment, hosts: Mapping[HostName, HostObservation]) -> None:
        """Find the stalls of an experiment, and begin a diagnosis when another rank has stopped since the last one, or
        the silence is twice as long. An experiment has one diagnosis at a time."""
        stalls = self._look(experiment, hosts)
        followed = self._runs[experiment.id]
        before = followed.case
        signs = followed.count_signs()
        if not stalls:
            followed.case = _StallCase(diagnosis=before.diagnosis) if before.is_open else _NO_CASE
            return
        if experiment.plan.policy.stall.then is StallRule.REMARK:
            followed.case = _StallCase(stalls, signs)
            return
        jobs = frozenset(stall.job for stall in stalls)
        longest = max(stall.silent for stall in stalls)
        is_known = before.diagnosis is not None and jobs <= before.jobs and longest < _AGAIN * before.silent
        if before.is_open or is_known:
            followed.case = replace(before, stalls=stalls, signs=signs)
            return
        now = self._clock()
        silent = {key.job: now - rhythm.last for key, rhythm in followed.jobs.items()}
        earlier = before.answer if before.jobs else None
        followed.case = _StallCase(stalls, signs, jobs, self._diagnose(experiment, silent), longest, earlier)

    def _look(self, experiment: Experiment, hosts: Mapping[HostName, HostObservation]) -> tuple[Stall, ...]:
        """Take the time that has passed into the rhythms of an experiment, and return its stalls."""
        now = self._clock()
        jobs = [job for job in experiment.gang if job.state is State.RUNNING and job.part is not JobDuty.WATCHES]
        attempt = max(job.attempt for job in experiment.gang)
        followed = self._runs.get(experiment.id)
        if followed is None or followed.attempt != attempt:
            followed = self._runs[experiment.id] = _RunRhythm(attempt, now, Rhythm(now))
        passed, followed.looked = now - followed.looked, now
        keys = {experiment.key_of(job): job for job in jobs}
        followed.jobs = {key: followed.jobs.get(key, Rhythm(now)) for key in keys}
        unseen = [key for key, job in keys.items() if not self._is_seen(key, job, hosts)]
        for key in unseen:
            followed.jobs[key] = skip_time(followed.jobs[key], passed, now)
        if unseen or not keys:
            followed.run = skip_time(followed.run, passed, now)
        if not keys or any(map(self._is_log_full, keys)):
            return ()
        rhythms = {key.job: rhythm for key, rhythm in followed.jobs.items()}
        stalls = find_stalls(followed.run, rhythms, now, experiment.plan.policy.stall.after)
        return _keep_lasting(stalls, followed)

    def _is_seen(self, key: JobKey, job: Job, hosts: Mapping[HostName, HostObservation]) -> bool:
        host = None if job.host is None else hosts.get(job.host)
        return host is not None and host.silent_since is None and not self._is_log_full(key)


_AGAIN = 2.0  # times the silence of the last diagnosis after which the next one follows
_ENDS = frozenset({StallRule.RETRY, StallRule.FAIL})


def _keep_lasting(stalls: tuple[Stall, ...], followed: _RunRhythm) -> tuple[Stall, ...]:
    """Return the stalls with those before that no sign has ended: a host that does not answer hides them, and they go
    on."""
    signs = followed.count_signs()
    stalled = {stall.job for stall in stalls}
    lasting = [
        stall
        for stall in followed.case.stalls
        if stall.job in signs and signs[stall.job] == followed.case.signs[stall.job] and stall.job not in stalled
    ]
    of_run = [stall for stall in (*stalls, *lasting) if stall.job is None]
    return tuple(of_run or (*stalls, *lasting))


def _is_watched(experiment: Experiment) -> bool:
    """Return True for an experiment that runs; a notebook waits for its user."""
    return experiment.state is State.RUNNING and experiment.verdict is None and experiment.plan.companion is None
