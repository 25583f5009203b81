"""A Slurm cluster as a host: it places jobs itself, and starts a gang as a whole.

The server knows about roles only what the supervisors of their gangs write into the shared folder. It asks Slurm only
why a job waits, and whether a job without a recorded end is over. So a controller that is down or frozen ends nothing,
and after a kill the next server finds everything again.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from riseml.base.errors import EngineError
from riseml.base.names import HOST_LABEL, HostName, JobName
from riseml.control.actions import Signal
from riseml.executors.base import BuildRequest, HostSetup
from riseml.executors.build_limits import BuildLimits
from riseml.executors.capabilities import Capabilities, DiskUse, InventoryItem, InventoryKind, never
from riseml.executors.environments.makers import EnvironmentMaker
from riseml.executors.environments.project_files import copy_files, unpack_project
from riseml.executors.environments.this_machine import ThisMachineMaker
from riseml.executors.environments.venvs import VirtualEnvironments
from riseml.executors.gangs import GangRequest, GangRole
from riseml.executors.gpus.nvidia_smi import make_query
from riseml.executors.logs.log_reader import JobLogReader
from riseml.executors.slurm.cluster_check import ClusterHostCheck
from riseml.executors.slurm.gang_folder import GangFolder, GangFolders, GangKey, translate_os_errors
from riseml.executors.slurm.gang_view import GangWatch
from riseml.executors.slurm.job_queue import JobQueue
from riseml.executors.slurm.job_script import JobScriptRequest, make_job_name, make_script, make_step_options
from riseml.executors.slurm.node_environments import NodeMaker
from riseml.executors.slurm.role_access import RoleAccess
from riseml.executors.slurm.role_stacks import RoleStacks
from riseml.executors.slurm.shape import GangShape, RoleNeed, choose_shape, make_need
from riseml.executors.slurm.slurm_commands import SlurmCommands
from riseml.executors.supervision.process_tree import MARKER
from riseml.executors.supervision.working_folder import read_written_files
from riseml.executors.this_machine.disk_use import measure_disk
from riseml.executors.written_files import Unread, WrittenFile, WrittenRequest
from riseml.files.archives.project_files import ProjectFiles
from riseml.model import Capacity, Frame, HostObservation, JobKey, Launch, LogCursor, OwnQueue, Sample
from riseml.planning.launch import make_address_tokens
from riseml.spec.pool.types import BuildPlace, SlurmSpec

_INTERVAL = 0.5  # seconds between two checks: a shared file system reports no changes by other machines


class SlurmExecutor:
    """One Slurm cluster.

    Args:
        name: of the cluster in the pool.
        server: id of the server; the executor sees the gangs of this server only.
        settings: the section `slurm` of pool.yml.
        commands: the commands of Slurm.
        build_limits: what the build of an environment may take; None: the defaults.
    """

    contained = False
    url = ""
    is_local = True

    def __init__(
        self,
        name: HostName,
        server: str,
        settings: SlurmSpec,
        commands: SlurmCommands | None = None,
        build_limits: BuildLimits | None = None,
    ) -> None:
        build_limits = build_limits or BuildLimits()
        self.name = name
        self._server = server
        self.settings = settings
        self._commands = commands or SlurmCommands()
        self._queue = JobQueue(self._commands, settings.partition)
        root = Path(settings.folder)
        self._folders = GangFolders(root / "gangs" / server[:12])
        self._access = RoleAccess(self._folders, self._commands.site.connect, self.describe)
        if settings.build_on is BuildPlace.NODE:
            maker: EnvironmentMaker = NodeMaker(server, settings, self._commands, self._queue, build_limits)
        else:
            maker = ThisMachineMaker(server, build_limits)
        self._environments = VirtualEnvironments(root / "environments", server, maker, gpus=settings.gpu_packages)
        self._gangs = GangWatch(self._folders, self._queue, lambda key: self._name_job(key))
        self._starting = threading.Lock()  # one sbatch at a time: each looks for a lost answer first
        self.capabilities = Capabilities(
            access=self._access,
            builds=self._environments,
            check=ClusterHostCheck(settings, self._commands),
            disk=self,
            gangs=self,
            inventory=self,
            machines=self._access,
            packages=self._environments,
            reviewer=self._environments,
            stacks=RoleStacks(self._access, self._folders, settings.python),
            use=self._access,
            written=self,
        )

    def describe(self) -> str:
        return self._commands.read_version()

    def reconnect(self) -> None:
        self._commands.site.reconnect()

    def close(self) -> None:
        self._commands.site.close()

    def observe(self, references: frozenset[str]) -> HostObservation:
        answer = self._queue.read()
        nodes = answer.nodes
        gpus = sum(node.gpus * node.count for node in nodes)
        with translate_os_errors(self.settings.folder):
            containers = self._gangs.observe(answer)
            for job in self._gangs.find_dead_jobs(answer):
                self._queue.cancel_beside(job)
            return HostObservation(
                capacity=Capacity(
                    sum(node.cpus * node.count for node in nodes),
                    sum(node.mem * node.count for node in nodes),
                    tuple(map(str, range(gpus))),
                ),
                containers={container.key: container for container in containers},
                images={reference: self._environments.observe_environment(reference) for reference in references},
                networks=dict.fromkeys(self._folders.list_experiments(), ""),
                labels={HOST_LABEL: self.name},
                isolated=False,
                queue=OwnQueue(nodes, answer.trouble),
            )

    def ensure_image(self, request: BuildRequest) -> None:
        with translate_os_errors("the folder of environments"):
            self._environments.ensure_environment(request)

    def prepare(self, share: HostSetup) -> None:
        with translate_os_errors(self.settings.folder):
            self._folders.make_experiment(share.experiment)

    def start(self, launch: Launch, code: ProjectFiles | None) -> None:
        raise EngineError("Slurm starts gangs, and no single jobs", permanent=True)

    def start_gang(self, gang: GangRequest, code: ProjectFiles | None) -> None:
        key = GangKey(gang.experiment, gang.attempt)
        folder = self._folders.open_gang(key)
        with self._starting, translate_os_errors(self.settings.folder):
            if folder.find_job():
                return
            self._refuse_beside_earlier(key)
            shape = self._choose_shape(gang)
            if not folder.read_plan():
                self._write_gang(folder, gang, shape, code)
            name = self._name_job(key)
            job = self._find_submitted(folder, name)
            if not job:
                request = JobScriptRequest(name, gang.title, str(folder.path), shape, self.settings, gang.max_duration)
                job = self._commands.submit(make_script(request))
            folder.write_job(job)

    def stop(self, key: JobKey, signal: Signal) -> None:
        folder = self._folders.find_gang(key)
        try:
            with translate_os_errors(self.settings.folder):
                if folder.read_plan():
                    folder.order_stop(key.job, signal)
        except EngineError:  # the shared folder is full: Slurm itself ends the job
            if signal is not Signal.KILL:
                raise
            self._cancel(folder)
        if signal is Signal.KILL and self._gangs.ignores_kill(key):
            self._cancel(folder)

    def remove(self, key: JobKey) -> None:
        folder = self._folders.find_gang(key)
        with self._starting, translate_os_errors(self.settings.folder):
            if folder.path.exists():
                if folder.may_be_submitted() and not _has_ended(folder.read_state(), key.job):
                    self._cancel(folder)
                folder.remove_role(key.job)
        self._gangs.forget(key)

    def release(self, experiment: int) -> None:
        with translate_os_errors(self.settings.folder):
            self._folders.remove_experiment(experiment)

    def list_inventory(self, references: frozenset[str]) -> list[InventoryItem]:
        with translate_os_errors(self.settings.folder):
            folders = [
                InventoryItem(InventoryKind.FOLDER, str(number), f"gangs/{number}", self._server, number)
                for number in self._folders.list_experiments()
            ]
            return [*folders, *self._environments.list_environments(self._server, references)]

    def discard_item(self, item: InventoryItem, is_needed: Callable[[], bool] = never) -> None:
        with translate_os_errors(self.settings.folder):
            if item.kind is InventoryKind.FOLDER:
                self.release(int(item.identity))
            else:
                self._environments.remove_environment(item.identity, is_needed)

    def read_disk(self) -> DiskUse | None:
        with translate_os_errors("the folder of environments"):
            return measure_disk(Path(self.settings.folder))

    def sample(self, key: JobKey) -> Iterator[Sample]:
        return self._access.sample(key)

    def read_log(self, key: JobKey, cursor: LogCursor, *, follow: bool) -> Iterator[list[Frame]]:
        folder = self._folders.find_gang(key)
        reader = JobLogReader(folder.log_path(key.job), cursor)
        while True:
            runs = self._gangs.runs(key)  # before the log: the log of a role that has ended is complete
            frames = reader.read_frames()
            while frames:
                yield frames
                frames = reader.read_frames()
            if not runs:
                reader.check_end()
            if not follow or not runs:
                return
            self._gangs.wait(_INTERVAL)

    def read_written(self, request: WrittenRequest) -> Iterator[WrittenFile | Unread]:
        folder = self._folders.find_gang(request.key)
        with translate_os_errors(self.settings.folder):
            yield from read_written_files(folder.code_path(request.key.job), folder.plan_path, request)

    def changes(self) -> Iterator[None]:
        before = self._gangs.read_stamps()
        while True:
            self._gangs.wait(_INTERVAL)
            after = self._gangs.read_stamps()
            if after != before:
                before = after
                yield None

    def _name_job(self, key: GangKey) -> str:
        return make_job_name(self._server, key.experiment, key.attempt)

    def _choose_shape(self, gang: GangRequest) -> GangShape:
        needs = [make_need(role.launch.key.job, role.launch.resources) for role in gang.roles]
        return choose_shape(needs, self._queue.read().nodes)

    def _refuse_beside_earlier(self, key: GangKey) -> None:
        """Refuse to start an attempt while Slurm still runs a part of an earlier one: both would write one output."""
        if key.attempt == 1:
            return
        earlier = {self._name_job(GangKey(key.experiment, number)) for number in range(1, key.attempt)}
        for row in self._queue.ask_now().rows:
            if row.name in earlier and not row.has_ended:
                raise EngineError(f"Slurm has not ended job {row.id} of the attempt before yet ({row.state})")

    def _write_gang(self, folder: GangFolder, gang: GangRequest, shape: GangShape, code: ProjectFiles | None) -> None:
        folder.make()
        needs = {role.name: role for component in shape.components for role in component}
        token = secrets.token_hex(16)
        orders: dict[JobName, dict[str, Any]] = {}
        for role in gang.roles:
            launch = role.launch
            _copy_project(folder, launch.key.job, code, self._environments.made_files_folder(launch.image.reference))
            orders[launch.key.job] = self._order_role(folder, role, gang, token)
        plan = {
            "token": token,
            "python": self.settings.python,
            "prefix": list(self.settings.prefix),
            "stop_grace": gang.stop_grace,
            "max_duration": gang.max_duration,
            "shape": shape.describe(),
            "roles": [self._plan_role(role, shape, needs[role.launch.key.job]) for role in gang.roles],
        }
        folder.write_gang(plan, orders)

    def _plan_role(self, role: GangRole, shape: GangShape, need: RoleNeed) -> dict[str, Any]:
        """Return the part of the supervisor's plan about a role."""
        return {
            "role": need.name,
            "mem": need.mem,
            "part": role.part.value,
            "grace": role.grace,
            "srun": make_step_options(shape, need, self.settings),
        }

    def _order_role(self, folder: GangFolder, role: GangRole, gang: GangRequest, token: str) -> dict[str, Any]:
        """Return the order for the wrapper of a role."""
        launch = role.launch
        variables = self._environments.make_variables(launch.image.reference, "")
        return {
            "token": token,
            "command": launch.command,
            "environment": {
                **dict(launch.environment),
                "VIRTUAL_ENV": variables["VIRTUAL_ENV"],
                MARKER: f"{self._name_job(folder.key)}/{launch.key.job}",
            },
            "path": variables["PATH"].rstrip(":"),
            "workdir": str(folder.code_path(launch.key.job)),
            "events": launch.describe_reader(),
            "stop_grace": gang.stop_grace,
            "every": gang.measure_every,
            "gpu_query": list(make_query(mig=False)) if launch.resources.gpus else [],
            "tokens": {other.launch.key.job: make_address_tokens(other.launch.key.job) for other in gang.roles},
        }

    def _find_submitted(self, folder: GangFolder, name: str) -> str:
        """Return the job of an sbatch whose answer was lost; empty without an sbatch, or when Slurm has no such job."""
        if not folder.mark_submitting():
            return ""
        rows = [row for row in self._queue.ask_now().rows if row.name == name]
        return rows[-1].id if rows else ""

    def _cancel(self, folder: GangFolder) -> None:
        """End the Slurm jobs of a gang; return when Slurm runs nothing of it any more.

        Raises:
            Unreachable: the controller does not answer.
            EngineError: Slurm has not ended them yet.
        """
        name = self._name_job(folder.key)
        going = [row for row in self._queue.ask_now().rows if row.name == name and not row.has_ended]
        for row in going:
            if row.state != "COMPLETING":
                self._commands.cancel(row.id)
        if going:
            raise EngineError(f"Slurm has not ended job {going[0].id} yet ({going[0].state})")


def _has_ended(state: dict[str, Any], role: JobName) -> bool:
    """Return True when the supervisor has written the end of a role."""
    return "done" in state or "finished_at" in state.get("roles", {}).get(role, {})


def _copy_project(folder: GangFolder, role: JobName, code: ProjectFiles | None, additions: Path) -> None:
    """Unpack the project for one role, and add the files that install steps made; a complete folder stays as it is."""
    target = folder.code_path(role)
    if target.exists():
        return
    fresh = target.with_name(f"{role}.{secrets.token_hex(4)}")
    fresh.mkdir(mode=0o755)
    if code is not None:
        unpack_project(code, fresh)
    copy_files(additions, fresh)
    fresh.rename(target)
