"""Random histories of the ends in one gang, played twice: by the server alone, and by the supervisor of a gang on Slurm
while the server looks now and then. Both must end the same roles at the same time for the same reason, and the server
must conclude the same of both.

The roles of a history end by themselves, some at the same instant, and ignore SIGTERM for a while or for ever. The time
of the gang may be over, and the user may kill it. A history takes no real time, and needs no Slurm.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from riseml.base.names import HostName, JobName
from riseml.base.states import TERMINAL, JobDuty, Reason, State, Wanted
from riseml.control import settle, verdict
from riseml.control.images import ImageLocations
from riseml.control.observation import Observation
from riseml.executors.slurm import gang_records, gang_roles, gang_supervisor
from riseml.executors.slurm.gang_folder import GangFolder, GangKey
from riseml.executors.slurm.gang_roles import ReportedEnd
from riseml.executors.slurm.gang_supervisor import GangSupervisor
from riseml.executors.slurm.gang_view import _make_container
from riseml.model import (
    Capacity,
    ContainerObservation,
    Experiment,
    HostObservation,
    Image,
    JobKey,
    OwnQueue,
    Plan,
    PlannedJob,
)
from riseml.spec.config.types import Limits, Resources, RunPolicy
from tests.unit.control.simulation import START, make_experiment

HOST = HostName("cluster")
STOP_GRACE = 2.0
LAST_TICK = 60
KILLED = 137
_MONOTONIC = 1000.0  # of the supervisor at the start; 0 means that nothing has happened
_NEVER = float("inf")


@dataclass(frozen=True)
class Role:
    """A role of a gang, and how it ends. Times are in seconds after the start."""

    name: JobName
    part: JobDuty
    grace: float
    ends_at: float  # by itself
    code: int
    error: str  # why its host ended it, if it did
    resists: float  # seconds from SIGTERM to its end
    last_code: int  # after SIGTERM
    rank: int  # of ends at the same instant, that of the lower rank is reported first


@dataclass(frozen=True)
class EndHistory:
    """The ends of one gang. The server looks at every second until the user has killed the gang, and then at some."""

    roles: tuple[Role, ...]
    max_duration: float | None
    killed_at: int | None
    looks: frozenset[int]


@dataclass
class Outcome:
    """What came of a history."""

    verdict: tuple[State, Reason, str] | None = None
    jobs: dict[JobName, tuple[State, Reason]] = field(default_factory=dict)
    terminated: dict[JobName, int] = field(default_factory=dict)  # the second of SIGTERM
    killed: dict[JobName, int] = field(default_factory=dict)  # the second of SIGKILL


def draw_history(random: Random) -> EndHistory:
    """Return a random history of a gang of one to five roles."""
    helpers = random.choice((0, 1, 1, 2))
    parts = [*[JobDuty.DECIDES] * random.choice((1, 1, 1, 2)), *[JobDuty.HELPS] * helpers]
    parts += [JobDuty.SERVES] * random.choice((0, 1)) + [JobDuty.WATCHES] * random.choice((0, 0, 1))
    limit = random.choice((None, None, None, 1.0, 3.0, 4.5))
    killed_at = random.choice((None, None, None, 1, 3, 5))
    roles = tuple(_draw_role(random, JobName(f"role.{place}"), part) for place, part in enumerate(parts))
    return EndHistory(roles, limit, killed_at, frozenset(tick for tick in range(20) if random.random() < 0.15))


def _draw_role(random: Random, name: JobName, part: JobDuty) -> Role:
    lasts = part is JobDuty.DECIDES or random.random() < 0.5
    return Role(
        name,
        part,
        grace=random.choice((0.0, 1.0, 2.5)) if part is JobDuty.HELPS else 0.0,
        ends_at=random.choice((0.25, 1.0, 1.5, 1.75, 2.0, 3.0, 3.25, 4.5, 6.0)) if lasts else _NEVER,
        code=random.choice((0, 0, 0, 0, 1, KILLED)),
        error=random.choice(("", "", "", "", "", "node n1 does not answer any more")),
        resists=random.choice((0.25, 0.25, 1.0, 1.5, 3.0, _NEVER)),
        last_code=random.choice((0, 1, 143)),
        rank=random.randrange(100),
    )


class RunningGang:
    """The commands of a gang, which end by themselves or by signals."""

    def __init__(self, history: EndHistory) -> None:
        self.history = history
        self.outcome = Outcome()
        self.tick = 0
        self._roles = {role.name: role for role in history.roles}
        self._ends = {role.name: (role.ends_at, role.code, role.error) for role in history.roles}

    def take_ends(self) -> list[tuple[float, JobName, int, str]]:
        """Return the ends since the last call, the first one first: time, name, exit code and error."""
        due = [(at, name, code, error) for name, (at, code, error) in self._ends.items() if at <= self.tick]
        for _, name, _, _ in due:
            del self._ends[name]
        return sorted(due, key=lambda end: (end[0], self._roles[end[1]].rank))

    def terminate(self, name: JobName) -> None:
        """Send SIGTERM to a role, the first time."""
        if name in self._ends and name not in self.outcome.terminated:
            self.outcome.terminated[name] = self.tick
            role = self._roles[name]
            self._end(name, self.tick + role.resists, role.last_code)

    def kill(self, name: JobName) -> None:
        """Send SIGKILL to a role."""
        if name in self._ends and name not in self.outcome.killed:
            self.outcome.killed[name] = self.tick
            self._end(name, self.tick + 0.25, KILLED)

    def _end(self, name: JobName, at: float, code: int) -> None:
        self._ends[name] = min(self._ends[name], (at, code, ""))


class ServerView:
    """The records of the experiment of a gang in the server, without its executors."""

    def __init__(self, history: EndHistory) -> None:
        self.history = history
        planned = tuple(
            PlannedJob(role.name, role.part, Resources(cpus=1, mem=64), Limits(), ("true",), grace=role.grace)
            for role in history.roles
        )
        policy = RunPolicy(stop_grace=STOP_GRACE, max_duration=history.max_duration)
        plan = Plan("toaster", Image("base"), planned, "roles", (), policy=policy)
        experiment = make_experiment(1, plan, state=State.RUNNING, placed_at=START)
        jobs = [
            replace(job, state=State.FINISHED, host=HOST)
            if job.part is JobDuty.PREPARES
            else replace(job, state=State.RUNNING, reason=Reason.RUNNING, host=HOST, started_at=START)
            for job in experiment.jobs
        ]
        self.experiment: Experiment = replace(experiment, jobs=tuple(jobs), started_at=START)

    def look(self, tick: int, containers: list[ContainerObservation]) -> None:
        """Update the records, as a pass of the loop does."""
        if self.history.killed_at is not None and tick >= self.history.killed_at:
            self.experiment = replace(self.experiment, wanted=Wanted.KILL)
        observed = {container.key: container for container in containers}
        host = HostObservation(Capacity(8, 8192), containers=observed, queue=OwnQueue((), ""))
        observation = Observation(START + timedelta(seconds=tick), {HOST: host})
        settled = settle.settle_jobs(self.experiment, observation, ImageLocations(observation))
        decided = verdict.end_jobs(verdict.add_verdict(settled, observation), observation)
        self.experiment = verdict.conclude_experiment(decided, observation)

    def list_signals(self, tick: int) -> Iterator[tuple[JobName, str]]:
        """Yield the signals that the server sends after a look: TERM, and after the grace KILL."""
        now = START + timedelta(seconds=tick)
        for job in self.experiment.gang:
            if job.ending_at is not None and job.state not in TERMINAL:
                late = now >= verdict.find_kill_time(self.experiment, job, job.ending_at)
                yield job.name, "KILL" if late else "TERM"

    def describe(self, outcome: Outcome) -> Outcome:
        """Return the outcome with what the server concludes."""
        cause = self.experiment.verdict
        outcome.verdict = None if cause is None else (cause.state, cause.reason, str(cause.job))
        outcome.jobs = {job.name: (job.state, job.reason) for job in self.experiment.gang}
        return outcome


def play_server(history: EndHistory) -> Outcome:
    """Play a history on a host whose jobs the server ends itself."""
    gang = RunningGang(history)
    server = ServerView(history)
    containers = {role.name: _make_running(role.name) for role in history.roles}
    while server.experiment.state not in TERMINAL and gang.tick < LAST_TICK:
        gang.tick += 1
        for at, name, code, error in gang.take_ends():
            finished = START + timedelta(seconds=at)
            containers[name] = replace(containers[name], exit_code=code, error=error, finished_at=finished)
        server.look(gang.tick, list(containers.values()))
        for name, signal in server.list_signals(gang.tick):
            (gang.kill if signal == "KILL" else gang.terminate)(name)
    return server.describe(gang.outcome)


def _make_running(name: JobName) -> ContainerObservation:
    return ContainerObservation(JobKey(1, name, 1), name, started=True, started_at=START)


class Clock:
    """The clocks of a supervisor."""

    elapsed = 0.0

    def time(self) -> float:
        return START.timestamp() + self.elapsed

    def monotonic(self) -> float:
        return _MONOTONIC + self.elapsed


class WrapperLines:
    """The connection to the wrapper of a role, which passes signals on to the command."""

    def __init__(self, name: JobName, gang: RunningGang) -> None:
        self.name = name
        self.gang = gang
        self.connection = self  # what is asked of a socket
        self.messages: list[dict[str, Any]] = []

    def send(self, message: dict[str, Any]) -> None:
        (self.gang.kill if message["signal"] == "KILL" else self.gang.terminate)(self.name)

    def receive(self) -> list[dict[str, Any]]:
        return self.messages

    def beat(self) -> None:
        """Send nothing."""

    def is_silent(self) -> bool:
        return False

    def fileno(self) -> int:
        return 0

    def close(self) -> None:
        """Close nothing."""


class SupervisorSite:
    """Makes supervisors that use no clock, no signals and no files of Slurm."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.clock = Clock()
        self._plan: dict[str, Any] = {}
        self._writers: list[int] = []
        (folder / "gang.json").touch()
        clocks = SimpleNamespace(time=self.clock.time, monotonic=self.clock.monotonic)
        for module in (gang_supervisor, gang_roles):
            monkeypatch.setattr(module, "time", clocks)
        monkeypatch.setattr(gang_supervisor, "json", SimpleNamespace(load=lambda _: self._plan))
        monkeypatch.setattr("signal.set_wakeup_fd", self._writers.append)
        monkeypatch.setattr("signal.signal", lambda *_: None)
        monkeypatch.setattr(gang_records, "write_record", lambda *_: None)
        monkeypatch.setattr(gang_records, "find_stop_cause", lambda _: "")
        monkeypatch.setattr(gang_records, "ran_out_of_memory", lambda *_: False)

    @contextmanager
    def make_supervisor(self, gang: RunningGang) -> Iterator[GangSupervisor]:
        """Give the supervisor of a gang whose roles run."""
        history = gang.history
        roles = [{"role": role.name, "part": role.part.value, "grace": role.grace} for role in history.roles]
        self._plan = {"stop_grace": STOP_GRACE, "max_duration": history.max_duration, "roles": roles}
        self.clock.elapsed = 0.0
        supervisor = GangSupervisor(str(self.folder))
        supervisor.go_at = self.clock.monotonic()
        for role in supervisor.roles:
            role.lines = WrapperLines(JobName(role.name), gang)  # type: ignore[assignment]  # what is asked of lines
            role.address = role.name
            role.record["started_at"] = self.clock.time()
            role.began_at = self.clock.monotonic()
        yield supervisor
        supervisor.listener.close()
        for end in (supervisor.signals, self._writers.pop()):
            os.close(end)


def play_supervisor(history: EndHistory, site: SupervisorSite) -> Outcome:
    """Play a history on a cluster whose supervisor ends the roles. The server looks when the history says so, every
    second until the user has killed the gang, and once at the end."""
    gang = RunningGang(history)
    server = ServerView(history)
    folder = GangFolder(GangKey(1, 1), site.folder)
    with site.make_supervisor(gang) as supervisor:
        while not all(role.ended for role in supervisor.roles) and gang.tick < LAST_TICK:
            gang.tick += 1
            _report_ends(supervisor, gang, site.clock)
            supervisor._settle_ends()
            supervisor._look_after_roles()
            supervisor._keep_rules()
            if gang.tick in history.looks or gang.tick <= (history.killed_at or 0):
                _look(server, folder, supervisor, gang)
        _look(server, folder, supervisor, gang)
    return server.describe(gang.outcome)


def _report_ends(supervisor: GangSupervisor, gang: RunningGang, clock: Clock) -> None:
    """Let the roles that have ended report it, each at its own time; afterwards it is the time of the gang."""
    roles = {role.name: role for role in supervisor.roles}
    for at, name, code, error in gang.take_ends():
        clock.elapsed = at
        role = roles[name]
        if error:
            supervisor._take_end(ReportedEnd(role, code, error))
        else:
            lines: Any = role.lines
            lines.messages = [{"code": code}]
            supervisor._take_lines(lines)
    clock.elapsed = float(gang.tick)


def _look(server: ServerView, folder: GangFolder, supervisor: GangSupervisor, gang: RunningGang) -> None:
    """Let the server read the records of the supervisor and give its orders."""
    if server.experiment.state in TERMINAL:
        return
    records = supervisor._describe_gang({})["roles"]
    containers = [_make_container(folder, JobName(name), record, "") for name, record in records.items()]
    server.look(gang.tick, containers)
    for name, signal in server.list_signals(gang.tick):
        supervisor._carry_out_order({"role": name, "signal": signal})


def check_histories(count: int, seed: int, site: SupervisorSite) -> None:
    """Play this many histories in both ways; the same seed gives the same histories.

    Raises:
        AssertionError: the outcomes differ; its note is the history.
    """
    for place in range(count):
        history = draw_history(Random(f"{seed}/{place}"))
        try:
            outcome = play_server(history)
            assert outcome.verdict is not None, "every history has an end"
            differing = play_supervisor(history, site)
            assert differing == outcome, f"{differing}\nby the supervisor, but by the server\n{outcome}"
        except AssertionError as error:
            error.add_note(f"seed {seed}, history {place}:\n{history}")
            raise
