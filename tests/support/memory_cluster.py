"""A cluster in memory: the fake for hosts that place jobs themselves, with the behaviour that was measured on Slurm.

A gang waits in the queue of the cluster until all of it fits, and then starts as a whole. Its roles end each other by
`job_programs.gang_rules`, with or without a server. Removing a role that has not ended cancels the whole gang.
"""

from __future__ import annotations

from dataclasses import replace

from riseml.base.errors import EngineError
from riseml.base.names import HostName
from riseml.base.states import JobDuty, Reason
from riseml.control.actions import Signal
from riseml.executors.capabilities import Capabilities
from riseml.executors.gangs import GangRequest, GangRole
from riseml.files.archives.project_files import ProjectFiles
from riseml.model import Capacity, ContainerObservation, HostObservation, JobKey, Launch, NodeKind, OwnQueue
from tests.support.memory_executor import KILLED, TERMINATED, MemoryExecutor

WAITS = "the nodes that it needs are not free yet"
CANCELLED = "the job was cancelled"
PREEMPTED = "another job preempted it"
_PORT = 40000  # port of the first role that starts; each role has another port


class MemoryCluster(MemoryExecutor):
    """One cluster in memory. It can do what a host in memory can, and starts gangs."""

    def __init__(self, name: HostName, capacity: Capacity, site: HostObservation | None = None) -> None:
        super().__init__(name, capacity, site)
        self.gangs: dict[tuple[int, int], GangRequest] = {}  # by experiment and attempt, in the order of the queue
        self.trouble = ""  # why the cluster takes no gangs now
        self._ordered: set[JobKey] = set()  # jobs that the server has stopped
        self._decided: set[tuple[int, int]] = set()  # gangs that a role has ended

    @property
    def capabilities(self) -> Capabilities:
        return replace(super().capabilities, gangs=self)

    def observe(self, references: frozenset[str]) -> HostObservation:
        self._demand_answer()
        self.start_waiting()
        size = NodeKind(1, int(self.capacity.cpus), self.capacity.mem, len(self.capacity.gpus))
        return replace(super().observe(references), isolated=False, queue=OwnQueue((size,), self.trouble))

    def start(self, launch: Launch, code: ProjectFiles | None) -> None:
        raise EngineError("a cluster starts gangs, and no single jobs", permanent=True)

    def start_gang(self, gang: GangRequest, code: ProjectFiles | None) -> None:
        self._begin_write()
        if self.faults.bad_starts:
            self.faults.bad_starts -= 1
            raise EngineError("the cluster refuses the gang", permanent=True)
        self.gangs[gang.experiment, gang.attempt] = gang
        missing = [role.launch.key for role in gang.roles if role.launch.key not in self.containers]
        for key in missing:  # only a part of the gang: a test has removed a role from it
            container = ContainerObservation(key, str(key), started=False, waits=WAITS)
            self.containers[key] = (
                container if len(missing) == len(gang.roles) else replace(container, waits="", error=CANCELLED)
            )
        self._end_write()

    def stop(self, key: JobKey, signal: Signal) -> None:
        self._ordered.add(key)
        super().stop(key, signal)

    def remove(self, key: JobKey) -> None:
        self._begin_write()
        container = self.containers.pop(key, None)
        if container is not None and (container.running or container.waits):
            self._cancel(key)
        self._end_write()

    def exit(self, key: JobKey, code: int, *, oom: bool = False) -> None:
        super().exit(key, code, oom=oom)
        identity = key.experiment, key.attempt
        gang = self.gangs.get(identity)
        if gang is not None:
            self._apply_rules(gang, next(role for role in gang.roles if role.launch.key == key), code)

    def preempt(self, key: JobKey, code: int) -> None:
        """Preempt a job, as Slurm ends each role of a gang: the job exits with this code after SIGTERM."""
        container = self.containers[key]
        if container.waits:
            self.containers[key] = replace(container, waits="", error=PREEMPTED, ending=Reason.ENGINE_STOPPED)
        elif container.running:
            super().exit(key, code)
            self.containers[key] = replace(self.containers[key], error=PREEMPTED)

    def start_waiting(self) -> None:
        """Start the gangs that fit, in the order of the queue; a gang that does not fit blocks the later ones."""
        for gang in self.gangs.values():
            waiting = [role for role in gang.roles if self._waits(role.launch.key)]
            if waiting and not self._fits(waiting):
                return
            for role in waiting:
                key = role.launch.key
                port = _PORT + len(self.launches)
                self.launches.append(role.launch)
                self.containers[key] = replace(
                    self.containers[key], started=True, started_at=self.now, waits="", address=self.name, port=port
                )

    def _waits(self, key: JobKey) -> bool:
        container = self.containers.get(key)
        return container is not None and bool(container.waits)

    def _fits(self, roles: list[GangRole]) -> bool:
        launches = {launch.key: launch for launch in self.launches}
        running = [launches[key].resources for key, container in self.containers.items() if container.running]
        needs = [role.launch.resources for role in roles] + running
        cpus = sum(need.cpus for need in needs)
        gpus = sum(need.gpus for need in needs)
        return cpus <= self.capacity.cpus and gpus <= len(self.capacity.gpus)

    def _cancel(self, removed: JobKey) -> None:
        """End the other roles of a gang, as Slurm does with a job that is cancelled."""
        for key, container in self.containers.items():
            if (key.experiment, key.attempt) != (removed.experiment, removed.attempt):
                continue
            if container.running:
                super().exit(key, KILLED)
                self.containers[key] = replace(self.containers[key], error=CANCELLED)
            elif container.waits:
                self.containers[key] = replace(container, waits="", error=CANCELLED)

    def _apply_rules(self, gang: GangRequest, role: GangRole, code: int) -> None:
        """End other roles because of the end of a role, as the gang's supervisor does."""
        identity = gang.experiment, gang.attempt
        bad = role.part is JobDuty.SERVES or (role.part in (JobDuty.DECIDES, JobDuty.HELPS) and code != 0)
        if identity not in self._decided and role.launch.key not in self._ordered and bad:
            self._decided.add(identity)
            self._end_roles(gang, Reason.CASCADE)
        deciders = [self.containers.get(member.launch.key) for member in gang.roles if member.part is JobDuty.DECIDES]
        if identity not in self._decided and all(
            container is not None and container.exit_code == 0 for container in deciders
        ):
            self._decided.add(identity)
        working = [member for member in gang.roles if member.part in (JobDuty.DECIDES, JobDuty.HELPS)]
        if identity in self._decided and not any(self._runs(member) for member in working):
            self._end_roles(gang, Reason.NO_LONGER_NEEDED)

    def _runs(self, role: GangRole) -> bool:
        container = self.containers.get(role.launch.key)
        return container is not None and container.running

    def _end_roles(self, gang: GangRequest, ending: Reason) -> None:
        """End the roles of a gang that still run; with `ignores_term` they run until the server kills them."""
        for role in gang.roles:
            key = role.launch.key
            if self._runs(role) and not self.faults.ignores_term:
                super().exit(key, TERMINATED)
                self.containers[key] = replace(self.containers[key], ending=ending)
