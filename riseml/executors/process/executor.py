"""Jobs as processes of this machine, without Docker: the same seam, the same laws.

Each job has a supervisor (`wrapper`) that outlives the server; what it writes into the job's folder is all that is
known of the job, so that a server which was killed finds everything again. There is no isolation: jobs run as the
user, see the user's files, share the machine's network, and `limits` hold nobody back.
"""

from __future__ import annotations

import json
import os
import platform
import re
import signal as signals
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from riseml.control.actions import Signal
from riseml.errors import EngineError
from riseml.executors import machine
from riseml.executors.base import BuildOrder, Share
from riseml.executors.capabilities import InventoryItem, InventoryKind
from riseml.executors.gpus import GpuReader, with_gpu_use
from riseml.executors.process import job_folders, supervisor
from riseml.executors.process.job_folders import MARKER, JobFolders
from riseml.executors.process.log_reader import LogReader
from riseml.executors.process.project_files import unpack_project
from riseml.executors.process.venvs import Environments
from riseml.executors.process.watch import Watch
from riseml.model import ContainerSeen, Frame, HostSeen, JobKey, Launch, LogCursor, Sample
from riseml.names import HOST_LABEL, HostName

_SIGNALS = {Signal.TERM: signals.SIGTERM, Signal.KILL: supervisor.KILL_ALL}
_START = 60.0  # seconds that a supervisor may take to say its first word
_AGAIN = 1.0  # seconds after which a follower looks even when it was told nothing
_QUIET = 30.0  # seconds between two looks at whether somebody still listens
_CODE = "code"
_PASSED_ON = re.compile(
    "PATH|LANG|LANGUAGE|LC_ALL|LC_CTYPE|TZ|LD_LIBRARY_PATH|CUDA_HOME|CUDA_PATH|SSL_CERT_FILE|SSL_CERT_DIR"
    "|REQUESTS_CA_BUNDLE|CURL_CA_BUNDLE|http_proxy|https_proxy|no_proxy|HTTP_PROXY|HTTPS_PROXY|NO_PROXY"
)
"""What jobs inherit of the server's environment: where programs and certificates are, and the way out."""


class ProcessExecutor:
    """This machine as a host.

    Args:
        name: what the pool calls it.
        server: id of the server whose processes are ours.
        home: its folder; jobs and environments are below it.
    """

    contained = False

    def __init__(self, name: HostName, server: str, home: Path) -> None:
        self.name = name
        self._server = server
        self._gpu_reader = GpuReader()
        self._gpus = self._gpu_reader.list_ids()
        self._capacity = machine.read_capacity(self._gpus)
        self._folders = JobFolders(home / "processes", server)
        self._environments = Environments(home / "environments", gpus=bool(self._gpus))
        self._watch = Watch()
        self._folders.sweep()

    def describe(self) -> str:
        return f"processes, Python {platform.python_version()}"

    def observe(self, references: frozenset[str]) -> HostSeen:
        with _translated("RISEML_HOME"):
            networks = dict.fromkeys(self._folders.experiments(), "")
            found = [self._look(key) for key in self._folders.jobs()]
            return HostSeen(
                capacity=self._capacity,
                containers={container.key: container for container in found if container is not None},
                images={reference: self._environments.look(reference) for reference in references},
                networks=networks,
                labels={HOST_LABEL: self.name},
                isolated=False,
                busy_ports=machine.busy_ports(self._server),
            )

    def ensure_image(self, order: BuildOrder) -> None:
        with _translated("the folder of environments"):
            self._environments.ensure(order)

    def prepare(self, share: Share) -> None:
        with _translated("the folder of the experiment"):
            self._folders.experiment(share.experiment).mkdir(mode=0o700, exist_ok=True)

    def start(self, launch: Launch, code: Path | None) -> None:
        if self._folders.read(launch.key) is not None:
            return
        if not self._environments.look(launch.image.reference).present:
            raise EngineError("the environment of the experiment was removed", "train again", permanent=True)
        folder = self._folders.job(launch.key)
        with _translated("the folder of the job"):
            folder.mkdir(mode=0o700, exist_ok=True)
            _put_code(folder, code)
        self._watch.add(folder)
        _spawn(launch.title, self._order(launch, folder), self._folders.marker(launch.key))

    def stop(self, key: JobKey, signal: Signal) -> None:
        record = self._folders.read(key)
        if record is not None and not job_folders.has_ended(record):
            job_folders.send(record, _SIGNALS[signal])
            if signal is Signal.KILL:
                job_folders.send(record, signals.SIGCONT)  # somebody may have stopped it

    def remove(self, key: JobKey) -> None:
        self._watch.forget(self._folders.job(key))
        self._folders.discard(self._folders.job(key))

    def release(self, experiment: int) -> None:
        for key in [key for key in self._folders.jobs() if key.experiment == experiment]:
            self._watch.forget(self._folders.job(key))
        self._folders.discard(self._folders.experiment(experiment))

    def list_inventory(self, references: frozenset[str]) -> list[InventoryItem]:
        with _translated("RISEML_HOME"):
            folders = [
                InventoryItem(InventoryKind.FOLDER, str(number), f"processes/{number}", self._server, number)
                for number in self._folders.experiments()
            ]
            return [*folders, *self._environments.inventory(self._server, references)]

    def discard_item(self, item: InventoryItem) -> None:
        with _translated("RISEML_HOME"):
            if item.kind is InventoryKind.FOLDER:
                self.release(int(item.identity))
            else:
                self._environments.remove(item.identity)

    def read_log(self, key: JobKey, cursor: LogCursor, *, follow: bool) -> Iterator[list[Frame]]:
        folder = self._folders.job(key)
        reader = LogReader(self._folders.log(key), cursor)
        while True:
            counts = self._watch.counts(folder)
            record = self._folders.read(key)  # before the log: when it tells of the end, the log is complete
            frames = reader.read()
            while frames:
                yield frames
                frames = reader.read()
            if not follow or record is None or job_folders.has_ended(record):
                return
            self._watch.wait(folder, counts, _AGAIN)

    def sample(self, key: JobKey) -> Iterator[Sample]:
        folder = self._folders.job(key)
        meter = machine.Meter()
        while True:
            _, count = self._watch.counts(folder)
            record = self._folders.read(key)
            if record is None or job_folders.has_ended(record) or not job_folders.is_alive(record):
                return
            reading = meter.read(job_folders.tree(record))
            if reading is not None:
                yield with_gpu_use(_sample(*reading), self._gpu_reader.read_use(record.gpus))
            self._watch.wait_state(folder, count, _AGAIN)

    def changes(self) -> Iterator[None]:
        return self._changes(self._watch.wait_news(-1, 0))

    def _changes(self, count: int) -> Iterator[None]:
        """News since `count` of them; so they are news since the call, not since somebody first asked for one."""
        while True:
            before, count = count, self._watch.wait_news(count, _QUIET)
            if count != before:
                yield None

    def _look(self, key: JobKey) -> ContainerSeen | None:
        record = self._folders.look(key)
        if record is None:
            return None
        self._watch.add(self._folders.job(key))
        if not job_folders.has_ended(record):
            self._watch.add_process(record.pid)
        return ContainerSeen(
            key=key,
            id=f"{record.pid}-{record.start}",
            started=record.started_at is not None,
            exit_code=record.exit_code,
            error=record.error,
            started_at=record.started_at,
            finished_at=record.finished_at,
        )

    def _order(self, launch: Launch, folder: Path) -> dict[str, object]:
        """What the supervisor is told."""
        marker = self._folders.marker(launch.key)
        inherited = {name: value for name, value in os.environ.items() if _PASSED_ON.fullmatch(name)}
        path = inherited.get("PATH", os.defpath)
        environment = {
            **inherited,
            **self._environments.variables(launch.image.reference, path),
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
        }


@contextmanager
def _translated(what: str) -> Iterator[None]:
    """The operating system's refusals as ours."""
    try:
        yield
    except OSError as error:
        raise EngineError(
            f"{what} cannot be used: {error.strerror}: {error.filename}", "free some space, or change its owner"
        ) from error


def _put_code(folder: Path, code: Path | None) -> None:
    """A copy of the project for this job alone, there whole or not at all."""
    target = folder / _CODE
    if target.exists():
        return
    fresh = Path(tempfile.mkdtemp(dir=folder, prefix=f"{_CODE}."))
    fresh.chmod(0o755)
    if code is not None:
        unpack_project(code, fresh)
    fresh.rename(target)


def _spawn(title: str, order: dict[str, object], marker: str) -> None:
    """Start a supervisor and hear its first word. The order has secrets in it and touches no disk."""
    try:
        done = subprocess.run(
            [sys.executable, "-I", "-S", supervisor.__file__, title],
            input=json.dumps(order).encode(),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={"PATH": os.defpath, MARKER: marker},
            cwd="/",
            start_new_session=True,
            timeout=_START,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise EngineError(f"the supervisor of {title} did not start: {error}") from error
    word = done.stdout.decode("utf-8", "replace")
    if word not in (supervisor.STARTED, supervisor.TAKEN):
        raise EngineError(f"the supervisor of {title} {word or 'ended without a word'}")


def _sample(cpu: float, memory: int) -> Sample:
    at = datetime.fromtimestamp(time.time(), UTC)
    return Sample(at, cpu, memory, machine.total_memory())
