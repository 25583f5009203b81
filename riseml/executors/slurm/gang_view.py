"""The gangs as the server sees them: the records of their supervisors, completed by what Slurm reports."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from riseml.base.names import JobName
from riseml.base.records import dataclass
from riseml.base.states import Reason
from riseml.executors.logs.log_reader import find_first_output
from riseml.executors.slurm.gang_folder import GangFolder, GangFolders, GangKey
from riseml.executors.slurm.gang_lines import SILENCE
from riseml.executors.slurm.gang_records import ran_out_of_memory
from riseml.executors.slurm.job_queue import JobQueue, QueueAnswer
from riseml.executors.slurm.queue_rows import describe_end, describe_waiting
from riseml.executors.supervision.job_files import is_time
from riseml.model import ContainerObservation, JobKey

LOST = 128 + 9
_LATE_RECORD = 10.0  # seconds to wait for the records of a job that is over according to Slurm: NFS may show them later
_LATE_END = SILENCE + _LATE_RECORD  # seconds, besides its grace, in which a cut-off role ends itself
_DEAD = 90.0  # seconds without a sign of life of a supervisor whose job runs according to Slurm
_LONGEST_LOOK = 10.0  # the most seconds that count between two checks: the shared folder may have hung meanwhile
_LATE_KILL = 15.0  # seconds after which a role that was to be killed makes riseml cancel the whole job


@dataclass(frozen=True, slots=True)
class LateEnd:
    """The end of a Slurm job whose supervisor has written no verdict."""

    why: str
    sure: bool  # False: a role may run on behind a network partition, until it notices that it is alone
    lost: bool  # Slurm or a node ended the job, not its roles
    signalled: bool  # Slurm has signalled its roles: exit code 0 after SIGTERM does not mean that a role finished


@dataclass(frozen=True, slots=True)
class _Life:
    """The last sign of life of a supervisor."""

    stamp: int
    silent: float  # seconds, as far as the server has checked, without another sign of life
    looked_at: float  # by the clock that only grows


class GangWatch:
    """The gangs of one server.

    Args:
        folders: of the gangs.
        queue: what Slurm says.
        name_job: returns the name of the Slurm job of a gang.
        clock: seconds that only grow.
    """

    def __init__(
        self,
        folders: GangFolders,
        queue: JobQueue,
        name_job: Callable[[GangKey], str],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._folders = folders
        self._queue = queue
        self._name_job = name_job
        self._clock = clock
        self._over_since: dict[GangKey, float] = {}  # when Slurm first reported that a job without a verdict is over
        self._lives: dict[GangKey, _Life] = {}
        self._ended: frozenset[JobKey] = frozenset()  # roles that have ended, even if no record says so
        self._kill_since: dict[JobKey, float] = {}
        self._submitted_seen: dict[GangKey, float] = {}  # when this server first saw the id of the job
        self._states: dict[GangKey, tuple[object, dict[str, Any]]] = {}  # the last state of each gang, with its stamp
        self._never = threading.Event()

    def observe(self, answer: QueueAnswer) -> list[ContainerObservation]:
        """Return every role of every gang, with the state of its job in Slurm."""
        gangs = [(folder, folder.read_plan(), self._read_state(folder)) for folder in self._folders.list_gangs()]
        containers: list[ContainerObservation] = []
        for folder, plan, state in gangs:
            if plan:
                shape = str(plan.get("shape", ""))
                containers += (_add_shape(container, shape) for container in self._observe_gang(folder, state, answer))
        self._ended = frozenset(container.key for container in containers if container.exit_code is not None)
        self._forget_others(frozenset(folder.key for folder, _, _ in gangs))
        return containers

    def _forget_others(self, gang_keys: frozenset[GangKey]) -> None:
        """Forget what was noted of gangs whose folders are gone."""
        noted: tuple[dict[GangKey, Any], ...] = (self._over_since, self._lives, self._submitted_seen, self._states)
        for notes in noted:
            for key in list(notes):  # followers of logs note states at the same time
                if key not in gang_keys:
                    notes.pop(key, None)

    def find_dead_jobs(self, answer: QueueAnswer) -> list[str]:
        """Return the Slurm jobs that run according to Slurm, but whose supervisors no longer show signs of life.

        A node that was off and on within seconds has lost its processes, and the controller does not see that. A job
        that is suspended shows no sign of life either, and is left alone.
        """
        return [job for folder in self._folders.list_gangs() if (job := self._find_dead_job(folder, answer))]

    def runs(self, key: JobKey) -> bool:
        """Return True while a role has no end."""
        folder = self._folders.find_gang(key)
        if key in self._ended or not folder.has_role(key.job):
            return False
        record = self._read_state(folder).get("roles", {}).get(key.job, {})
        return _make_container(folder, key.job, record, "").running

    def ignores_kill(self, key: JobKey) -> bool:
        """Return True when a role should have been killed some time ago, but its supervisor has not killed it."""
        since = self._kill_since.setdefault(key, self._clock())
        return self._clock() - since > _LATE_KILL

    def forget(self, key: JobKey) -> None:
        """Forget what was noted of a role that is removed."""
        self._kill_since.pop(key, None)

    def wait(self, seconds: float) -> None:
        """Return after these seconds."""
        self._never.wait(seconds)

    def read_stamps(self) -> dict[str, int]:
        """Return when the records of each gang changed last."""
        stamps = {"squeue": self._queue.find_stamp()}
        for folder in self._folders.list_gangs():
            for name in ("state.json", "verdict.json", "job"):
                path = folder.path / name
                try:
                    stamps[str(path)] = os.stat(path).st_mtime_ns
                except OSError:
                    continue
        return stamps

    def _read_state(self, folder: GangFolder) -> dict[str, Any]:
        """Return the state of a gang, which is read again only when it has changed: each follower of a log asks."""
        stamp = folder.find_state_stamp()
        noted = self._states.get(folder.key)
        if noted is None or noted[0] != stamp:
            noted = self._states[folder.key] = (stamp, folder.read_state())
        return noted[1]

    def _observe_gang(
        self, folder: GangFolder, state: dict[str, Any], answer: QueueAnswer | None
    ) -> Iterator[ContainerObservation]:
        job = str(state.get("job") or folder.find_job())
        over = None if answer is None or "done" in state else self._find_end(folder, job, answer)
        waits = "" if answer is None or not job else self._describe_waiting(folder, job, answer)
        for role in folder.list_roles():
            record = state.get("roles", {}).get(role, {})
            if "finished_at" not in record and over is not None:
                record = {**record, **_make_late_end(folder, role, record, over)}
            yield _make_container(folder, role, record, "" if record.get("started_at") else waits)

    def _find_dead_job(self, folder: GangFolder, answer: QueueAnswer) -> str:
        key = folder.key
        job = folder.find_job()
        row = answer.find(self._name_job(key), job)
        stamp = folder.find_life()
        if (
            answer.trouble
            or row is None
            or row.state != "RUNNING"
            or stamp is None
            or "done" in self._read_state(folder)
        ):
            self._lives.pop(key, None)
            return ""
        life = _look_again(self._lives.get(key), stamp, self._clock())
        is_dead = life.silent > _DEAD
        self._lives[key] = replace(life, silent=0.0) if is_dead else life
        return row.id if is_dead else ""

    def _find_end(self, folder: GangFolder, job: str, answer: QueueAnswer) -> LateEnd | None:
        """Return the end of a gang without a verdict; None while it may go on."""
        key = folder.key
        seen_at = self._submitted_seen.setdefault(key, self._clock()) if job else 0.0
        row = answer.find(self._name_job(key), job)
        ended = row.has_ended if row is not None else bool(job) and answer.asked_at > seen_at
        if not job or answer.trouble or not ended:
            self._over_since.pop(key, None)
            return None
        since = self._clock() - self._over_since.setdefault(key, self._clock())
        if since <= _LATE_RECORD:
            return None
        hidden = row is None or row.may_run_on
        late = _LATE_END + _read_grace(folder) if hidden else _LATE_RECORD
        signalled = row is not None and row.was_signalled
        return LateEnd(describe_end(answer.rows, job), since > late, lost=hidden or signalled, signalled=signalled)

    def _describe_waiting(self, folder: GangFolder, job: str, answer: QueueAnswer) -> str:
        if answer.trouble:
            return f"Slurm job {job}: {answer.trouble}"
        row = answer.find(self._name_job(folder.key), job)
        if row is None or not row.is_pending:
            return f"Slurm job {job} starts"
        return describe_waiting(row)


def _read_grace(folder: GangFolder) -> float:
    """Return how long roles have between SIGTERM and SIGKILL; 0 when the code of a job has changed the plan."""
    grace = folder.read_plan().get("stop_grace")
    return float(grace or 0) if is_time(grace) else 0.0


def _look_again(before: _Life | None, stamp: int, now: float) -> _Life:
    """Return the updated record of a supervisor's last sign of life, from the stamp that the server has read now.

    When the shared folder hangs, neither the supervisor nor the server proceeds, and the server may read an old stamp
    before the supervisor writes the next one.
    """
    if before is None or before.stamp != stamp:
        return _Life(stamp, 0.0, now)
    return _Life(stamp, before.silent + min(now - before.looked_at, _LONGEST_LOOK), now)


def _add_shape(container: ContainerObservation, shape: str) -> ContainerObservation:
    """Add to a waiting role the shape in which its gang has asked for nodes."""
    return replace(container, waits=f"{container.waits}; it asks for {shape}") if container.waits else container


def _make_late_end(folder: GangFolder, role: JobName, record: dict[str, Any], over: LateEnd) -> dict[str, Any]:
    """Return the end of a role that its supervisor did not record: the wrapper's record, otherwise a loss.

    A wrapper that got no signal itself cannot know whether Slurm ended its command. Where Slurm ended the job, the
    wrapper's record does not count as the cause.
    """
    own = folder.read_exit(role)
    memory = ran_out_of_memory(str(folder.path), role)
    started = record.get("started_at") or find_first_output(folder.log_path(role))
    begun = {"started_at": started} if started else {}
    if own:
        doubtful = over.lost if own["exit_code"] else over.signalled
        return {**own, **begun, "error": own.get("error") or (over.why if doubtful else ""), "oom": memory}
    lost = {"exit_code": LOST, "error": over.why, "finished_at": None, **({"outside": over.why} if over.lost else {})}
    if not started:
        return lost
    return {**lost, **begun, "finished_at": max(started, _find_last_life(folder))} if over.sure else {}


def _find_last_life(folder: GangFolder) -> float:
    """Return when the supervisor of a gang last showed a sign of life, in seconds since the epoch; now, if it never
    did."""
    stamp = folder.find_life()
    return time.time() if stamp is None else min(time.time(), stamp / 1e9)


def _make_container(folder: GangFolder, role: JobName, record: dict[str, Any], waits: str) -> ContainerObservation:
    key = JobKey(folder.key.experiment, role, folder.key.attempt)
    started = record.get("started_at")
    ended = "exit_code" in record
    error = str(record.get("error") or record.get("outside") or "") if ended else ""
    return ContainerObservation(
        key=key,
        id=f"{folder.path}/{role}",
        started=started is not None,
        exit_code=record.get("exit_code") if started is not None else None,
        oom=bool(record.get("oom")),
        error=error[:1000],
        started_at=_read_time(started),
        finished_at=_read_time(record.get("finished_at")) if started is not None else None,
        ran=record.get("ran"),
        waits=waits if started is None and not error else "",
        address=record.get("host") if started is not None else None,
        port=record.get("port") if started is not None else None,
        ending=_find_ending(record),
        node=record.get("node") if started is not None else None,
    )


def _read_time(seconds: float | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)


def _find_ending(record: dict[str, Any]) -> Reason | None:
    """Return why the supervisor ended a role, or why a role never started although it could have."""
    if not record.get("started_at"):
        return Reason.ENGINE_STOPPED if "outside" in record else None
    name = record.get("ending")
    return Reason(name) if name in (Reason.CASCADE.value, Reason.NO_LONGER_NEEDED.value) else None
