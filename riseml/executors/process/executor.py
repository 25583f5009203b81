"""Jobs as processes of this machine, without Docker: an `executors.base.Executor` with the same laws.

Each job has a supervisor that outlives the server. The server knows about a job only what its supervisor writes into
the job's folder, so after a kill the next server finds everything again. There is no isolation: jobs run as the user,
see the user's files, share the machine's network, and `limits` limit nothing.
"""

from __future__ import annotations

import os
import platform
import re
import signal as signals
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from riseml.base.errors import EngineError
from riseml.base.names import HOST_LABEL, HostName
from riseml.base.stream_messages import CommandRequest
from riseml.control.actions import Signal
from riseml.diagnosis.stacks import ProcessStacks
from riseml.executors.base import BuildRequest, CheckStart, HostSetup, NotThere, allow_start
from riseml.executors.build_limits import BuildLimits
from riseml.executors.capabilities import Capabilities, DiskUse, GpuReading, InventoryItem, InventoryKind, never
from riseml.executors.environments.project_files import copy_files
from riseml.executors.environments.this_machine import ThisMachineMaker
from riseml.executors.environments.venvs import VirtualEnvironments
from riseml.executors.gpus.nvml import GpuReader
from riseml.executors.job_stacks import ProfileRequest, RecordedProfile, StackRequest
from riseml.executors.job_streams import JobStream
from riseml.executors.logs.log_reader import JobLogReader
from riseml.executors.process.job_commands import open_process_command, open_process_port
from riseml.executors.process.job_folders import ProcessJobFolders
from riseml.executors.process.job_stacks import read_process_stacks, record_process_profile
from riseml.executors.process.process_use import JobProcessMeter, read_processor_time
from riseml.executors.process.reflinked_code import ReflinkedCode
from riseml.executors.process.secret_files import SecretFiles
from riseml.executors.process.watch import JobWatch
from riseml.executors.supervision import supervisor
from riseml.executors.supervision.job_processes import list_job_processes, signal_supervisor
from riseml.executors.supervision.job_records import measure_run, runs_now
from riseml.executors.supervision.process_tree import MARKER
from riseml.executors.supervision.start import SupervisorStarter
from riseml.executors.supervision.working_folder import read_written_files
from riseml.executors.this_machine import machine
from riseml.executors.this_machine.disk_use import measure_disk
from riseml.executors.this_machine.removal import fill_new_folder
from riseml.executors.written_files import Unread, WrittenFile, WrittenRequest
from riseml.files.archives.project_files import ProjectFiles
from riseml.job_programs import OWN_FOLDER
from riseml.model import ContainerObservation, Frame, HostObservation, JobKey, Launch, LogCursor, Sample

_SIGNALS = {Signal.TERM: signals.SIGTERM, Signal.KILL: supervisor.KILL_ALL}
_LOG_INTERVAL = 1.0  # seconds after which a follower reads the log again without a hint from the watch
_SAMPLE_INTERVAL = 1.0  # seconds between two samples
_CHANGES_INTERVAL = 30.0  # seconds of one wait for a change; then the next wait begins
_CODE = "code"
_STAMP = "code-written"  # an empty file: `code` is complete, and the job has not begun
_INHERITED = re.compile(
    "PATH|LANG|LANGUAGE|LC_ALL|LC_CTYPE|TZ|LD_LIBRARY_PATH|CUDA_HOME|CUDA_PATH|SSL_CERT_FILE|SSL_CERT_DIR"
    "|REQUESTS_CA_BUNDLE|CURL_CA_BUNDLE|http_proxy|https_proxy|no_proxy|HTTP_PROXY|HTTPS_PROXY|NO_PROXY"
)
"""The variables of the server that jobs inherit: where programs and certificates are, and the proxies."""


class ProcessExecutor:
    """This machine as a host.

    Args:
        name: of the machine in the pool.
        server: id of the server; the executor sees the processes of this server only.
        home: RISEML_HOME; jobs and environments are below it.
        build_limits: what the build of an environment may take; None: the defaults.
        check_start: see `executors.base.CheckStart`.
    """

    contained = False
    url = ""
    is_local = True

    def __init__(
        self,
        name: HostName,
        server: str,
        home: Path,
        build_limits: BuildLimits | None = None,
        check_start: CheckStart = allow_start,
    ) -> None:
        self.name = name
        self._server = server
        self._home = home
        self._gpu_reader = GpuReader()
        self._devices = {reading.gpu.id: reading.gpu for reading in self._gpu_reader.read_all()}
        self._gpus = tuple(self._devices)
        self._capacity = machine.read_capacity(self._gpus)
        self._ports = machine.PortReader(server)
        self._folders = ProcessJobFolders(home / "processes", server)
        maker = ThisMachineMaker(server, build_limits or BuildLimits())
        self._environments = VirtualEnvironments(home / "environments", server, maker, gpus=bool(self._gpus))
        self._code = ReflinkedCode()
        self._watch = JobWatch()
        self._starter = SupervisorStarter()
        self._check_start = check_start
        self._secrets = SecretFiles(self._folders.root, os.environ)
        self._folders.sweep_leftovers()
        self._secrets.remove_others(self._folders.list_jobs())
        self.capabilities = Capabilities(
            access=self,
            builds=self._environments,
            disk=self,
            gpus=self,
            inventory=self,
            packages=self._environments,
            reviewer=self._environments,
            secret_files=True,
            stacks=self,
            use=self,
            written=self,
        )

    def reconnect(self) -> None:
        pass  # there is no connection

    def close(self) -> None:
        self._watch.close()
        self._starter.close()

    def describe(self) -> str:
        return f"processes, Python {platform.python_version()}"

    def observe(self, references: frozenset[str]) -> HostObservation:
        with _translate_os_errors("RISEML_HOME"):
            networks = dict.fromkeys(self._folders.list_experiments(), "")
            containers = [self._observe_job(key) for key in self._folders.list_jobs()]
            return HostObservation(
                capacity=self._capacity,
                containers={container.key: container for container in containers if container is not None},
                images={reference: self._environments.observe_environment(reference) for reference in references},
                networks=networks,
                labels={HOST_LABEL: self.name},
                isolated=False,
                devices=self._devices,
                busy_ports=self._ports.read_busy_ports(),
            )

    def read_gpus(self) -> tuple[GpuReading, ...]:
        return self._gpu_reader.read_all()

    def ensure_image(self, request: BuildRequest) -> None:
        with _translate_os_errors("the folder of environments"):
            self._environments.ensure_environment(request)

    def prepare(self, share: HostSetup) -> None:
        with _translate_os_errors("the folder of the experiment"):
            self._folders.experiment_folder(share.experiment).mkdir(mode=0o700, exist_ok=True)

    def start(self, launch: Launch, code: ProjectFiles | None) -> None:
        if self._folders.load_job_record(launch.key) is not None:
            return
        if not self._environments.observe_environment(launch.image.reference).present:
            raise EngineError("the environment of the experiment was removed", "train again", permanent=True)
        folder = self._folders.job_folder(launch.key)
        with _translate_os_errors("the folder of the job"):
            folder.mkdir(mode=0o700, exist_ok=True)
            self._write_code(folder, code, self._environments.made_files_folder(launch.image.reference))
            (folder / _STAMP).touch(mode=0o600)
            secrets = self._secrets.write_files(launch.key, launch.secrets) if launch.secrets else None
        self._watch.add_folder(folder)
        self._check_start()
        if secrets is not None:
            variables = (*launch.environment, ("RISEML_SECRETS", str(secrets)))
            launch = replace(launch, environment=variables)
        self._starter.start(launch.title, self._make_order(launch, folder), self._folders.make_marker(launch.key))

    def stop(self, key: JobKey, signal: Signal) -> None:
        record = self._folders.load_job_record(key)
        if record is not None and not record.has_ended:
            signal_supervisor(record, _SIGNALS[signal])
            if signal is Signal.KILL:
                signal_supervisor(record, signals.SIGCONT)  # a stopped supervisor kills nothing

    def remove(self, key: JobKey) -> None:
        self._watch.forget_folder(self._folders.job_folder(key))
        with _translate_os_errors("the folder of the job"):
            self._folders.discard_folder(self._folders.job_folder(key))
        self._secrets.remove_files(key)

    def release(self, experiment: int) -> None:
        for key in [key for key in self._folders.list_jobs() if key.experiment == experiment]:
            self._watch.forget_folder(self._folders.job_folder(key))
        with _translate_os_errors("the folder of the experiment"):
            self._folders.discard_folder(self._folders.experiment_folder(experiment))

    def list_inventory(self, references: frozenset[str]) -> list[InventoryItem]:
        with _translate_os_errors("RISEML_HOME"):
            folders = [
                InventoryItem(InventoryKind.FOLDER, str(number), f"processes/{number}", self._server, number)
                for number in self._folders.list_experiments()
            ]
            return [*folders, *self._environments.list_environments(self._server, references)]

    def discard_item(self, item: InventoryItem, is_needed: Callable[[], bool] = never) -> None:
        with _translate_os_errors("RISEML_HOME"):
            if item.kind is InventoryKind.FOLDER:
                self.release(int(item.identity))
            else:
                self._environments.remove_environment(item.identity, is_needed)

    def read_disk(self) -> DiskUse | None:
        with _translate_os_errors("the folder of environments"):
            return measure_disk(self._home)

    def read_log(self, key: JobKey, cursor: LogCursor, *, follow: bool) -> Iterator[list[Frame]]:
        folder = self._folders.job_folder(key)
        reader = JobLogReader(self._folders.log_path(key), cursor)
        while True:
            counts = self._watch.read_counts(folder)
            record = self._folders.load_job_record(key)  # before the log: the log of a job that has ended is complete
            frames = reader.read_frames()
            while frames:
                yield frames
                frames = reader.read_frames()
            if record is not None and record.has_ended:
                reader.check_end()
            if not follow or record is None or record.has_ended:
                return
            self._watch.wait_for_change(folder, counts, _LOG_INTERVAL)

    def sample(self, key: JobKey) -> Iterator[Sample]:
        folder = self._folders.job_folder(key)
        meter = self.open_meter(key)
        while True:
            counts = self._watch.read_counts(folder)
            try:
                sample = meter.read_use()
            except NotThere:
                return
            if sample is not None:
                yield sample
            self._watch.wait_for_state(folder, counts, _SAMPLE_INTERVAL)

    def open_meter(self, key: JobKey) -> JobProcessMeter:
        return JobProcessMeter(lambda: self._folders.load_job_record(key), self._gpu_reader)

    def measure_processor_time(self, key: JobKey) -> float:
        record = self._folders.load_job_record(key)
        if record is None or record.has_ended or not runs_now(record):
            raise NotThere("the job does not run")
        return read_processor_time(list_job_processes(record))

    def open_command(self, key: JobKey, request: CommandRequest) -> JobStream:
        with _translate_os_errors("the folder of the job"):
            folder = self._folders.job_folder(key) / _CODE
            return open_process_command(self._folders.load_job_record(key), folder, request)

    def read_written(self, request: WrittenRequest) -> Iterator[WrittenFile | Unread]:
        folder = self._folders.job_folder(request.key)
        with _translate_os_errors("the folder of the job"):
            yield from read_written_files(folder / _CODE, folder / _STAMP, request)

    def read_stacks(self, key: JobKey, request: StackRequest) -> tuple[ProcessStacks, ...]:
        folder = self._folders.job_folder(key) / _CODE
        return read_process_stacks(self._folders.load_job_record(key), key.job, folder, request)

    def record_profile(self, key: JobKey, request: ProfileRequest) -> RecordedProfile:
        folder = self._folders.job_folder(key) / _CODE
        return record_process_profile(self._folders.load_job_record(key), key.job, folder, request)

    def open_port(self, key: JobKey, port: int) -> JobStream:
        return open_process_port(self._folders.load_job_record(key), port)

    def changes(self) -> Iterator[None]:
        return self._yield_changes(self._watch.wait_for_any_state(-1, 0))

    def _yield_changes(self, count: int) -> Iterator[None]:
        """Yield once for all changes since `count`. `changes` takes the count, so that none is lost between its call
        and the first `next()`.
        """
        while True:
            before, count = count, self._watch.wait_for_any_state(count, _CHANGES_INTERVAL)
            if count != before:
                yield None

    def _write_code(self, folder: Path, code: ProjectFiles | None, additions: Path) -> None:
        """Write the project for this job alone, and add what install steps made; the folder appears when complete."""
        target = folder / _CODE
        if target.exists():
            return
        with fill_new_folder(target) as fresh:
            fresh.chmod(0o755)
            if code is not None:
                self._code.write_project(code, fresh, folder.parent)
            copy_files(additions, fresh)
            with suppress(FileExistsError):
                (fresh / OWN_FOLDER).mkdir(0o755)

    def _observe_job(self, key: JobKey) -> ContainerObservation | None:
        record = self._folders.settle_job_record(key)
        if record is None:
            return None
        self._watch.add_folder(self._folders.job_folder(key))
        if record.has_ended:
            self._secrets.remove_files(key)
        else:
            self._watch.add_process(record.pid)
        return ContainerObservation(
            key=key,
            id=f"{record.pid}-{record.start}",
            started=record.started_at is not None,
            exit_code=record.exit_code,
            error=record.error,
            started_at=record.started_at,
            finished_at=record.finished_at,
            ran=measure_run(record),
            last_sign=self._folders.find_last_sign(key) if record.has_ended and record.finished_at is None else None,
        )

    def _make_order(self, launch: Launch, folder: Path) -> dict[str, object]:
        """Return the order for the supervisor of a job (see `Supervisor`)."""
        marker = self._folders.make_marker(launch.key)
        inherited = {name: value for name, value in os.environ.items() if _INHERITED.fullmatch(name)}
        path = inherited.get("PATH", os.defpath)
        environment = {
            **inherited,
            **self._environments.make_variables(launch.image.reference, path),
            **dict(launch.environment),
            MARKER: marker,
        }
        if self._gpus:
            environment |= {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": ",".join(launch.gpus)}
        return {
            "folder": str(folder),
            "workdir": str(folder / _CODE),
            "command": launch.command,
            "environment": environment,
            "identity": {
                "server": launch.server,
                "title": launch.title,
                "marker": marker,
                "gpus": launch.gpus,
            },
            "events": launch.describe_reader(),
        }


@contextmanager
def _translate_os_errors(subject: str) -> Iterator[None]:
    """Turn errors of the operating system into `EngineError`."""
    try:
        yield
    except OSError as error:
        raise EngineError(
            f"{subject} cannot be used: {error.strerror}: {error.filename}", "free some space, or change its owner"
        ) from error
