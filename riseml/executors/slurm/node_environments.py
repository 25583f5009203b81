"""Virtual environments that a job on a node makes: the node has the Python and the modules of their later users.

The folder of a build is on the shared file system (`environments.makers`). Its log is the output of the job.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from threading import Event
from typing import Any

from uv import find_uv_bin

from riseml.base.errors import EngineError
from riseml.executors.build_limits import BuildLimits
from riseml.executors.environments.build_log import BuildLog
from riseml.executors.environments.makers import (
    EnvironmentRequest,
    raise_cancelled,
    raise_for_end,
    read_build_end,
    read_order,
    write_build,
)
from riseml.executors.environments.venv_recipe import make_installer_variables
from riseml.executors.slurm.job_queue import JobQueue, QueueAnswer
from riseml.executors.slurm.job_script import make_build_script
from riseml.executors.slurm.queue_rows import describe_end, describe_waiting
from riseml.executors.slurm.slurm_commands import SlurmCommands
from riseml.executors.this_machine.removal import remove_tree
from riseml.spec.pool.types import SlurmSpec

_INTERVAL = 0.5  # seconds between two reads of the log
_READ_SIZE = 1 << 20  # bytes of the log read at once
_LATE_END = 10.0  # seconds for the record of a job that Slurm says is over: NFS may show it later
_PASSED_ON = re.compile(
    r"(UV|PIP)_|(https?|no|all)_proxy$|(SSL_CERT|REQUESTS_CA|CURL_CA)_|NO_COLOR$|PYTHONUNBUFFERED$", re.IGNORECASE
)
"""Variables of the server that the installers on a node get; the others may be secrets, or wrong there."""


class NodeMaker:
    """Makes environments by jobs of a cluster. It is an `EnvironmentMaker`.

    Args:
        server: id of the server.
        settings: the section `slurm` of pool.yml.
        commands: the commands of Slurm.
        queue: what Slurm says.
        limits: what a build may take; its memory is that of its Slurm job.
    """

    def __init__(
        self, server: str, settings: SlurmSpec, commands: SlurmCommands, queue: JobQueue, limits: BuildLimits
    ) -> None:
        self._server = server
        self._limits = limits
        self._settings = settings
        self._commands = commands
        self._queue = queue

    def identify_python(self) -> list[object]:
        return ["node", self._settings.python, list(self._settings.setup)]

    def describe_python(self) -> str:
        return f"{self._settings.python} of the nodes"

    def has_python(self, folder: Path) -> bool:
        return os.path.lexists(folder / "bin" / "python")  # a link that may lead nowhere on this machine

    def make_environment(self, request: EnvironmentRequest) -> None:
        name = _name_job(request.folder.name)
        job = self._find_job(name) if read_order(request.place) is not None else ""
        if job:
            follower = _BuildFollower(
                request, name, job
            )  # made before the next emit: it reads the lines emitted so far
            request.build.emit(f"{_name_build(job)} already")
        else:
            remove_tree(request.folder)
            remove_tree(request.place)
            for line in request.announcements:
                request.build.emit(line)
            write_build(request, self._make_settings(request))
            job = self._commands.submit(make_build_script(name, str(request.place), self._settings))
            follower = _BuildFollower(request, name, job)
            request.build.emit(f"{_name_build(job)} on a node")
        follower.follow(self._queue.read)

    def end_build(self, place: Path) -> None:
        if not place.is_dir():
            return
        job = "" if read_build_end(place) is not None else self._find_job(_name_job(place.stem))
        if job:
            self._commands.cancel(job)
            raise EngineError(f"Slurm has not ended job {job} yet")
        remove_tree(place)

    def _make_settings(self, request: EnvironmentRequest) -> dict[str, Any]:
        """Return what the builder on a node needs to know."""
        variables = make_installer_variables({})
        return {
            "server": self._server,
            "python": self._settings.python,
            "python_name": "the Python of the nodes",
            "uv": str(_share_uv(request.place.parent)),
            "needs_pip": False,
            "seconds": self._limits.seconds,
            "variables": {name: value for name, value in variables.items() if _PASSED_ON.match(name)},
        }

    def _find_job(self, name: str) -> str:
        """Return the job that makes an environment: of another server, or of one whose answer was lost."""
        rows = (row for row in self._queue.ask_now().rows if row.name == name and not row.has_ended)
        return next((row.id for row in rows), "")


def _name_job(environment: str) -> str:
    """Return the name of the Slurm job that makes an environment."""
    return f"riseml-build-{environment}"


def _name_build(job: str) -> str:
    """Return how the first line about a job begins, in the log of a build."""
    return f"Slurm job {job} makes it"


class _BuildFollower:
    """Passes on the log of one build until it has ended; each line once, also after a restart of the server."""

    def __init__(self, request: EnvironmentRequest, name: str, job: str) -> None:
        self._request = request
        self._name = name
        self._job = job
        self._read = 0  # bytes of the log
        log_lines = request.build.read_held()
        begun = next((at for at, line in enumerate(log_lines) if line.startswith(_name_build(job))), len(log_lines))
        self._log = BuildLog(request.build, sum(not line.startswith(f"Slurm job {job} ") for line in log_lines[begun:]))
        waits = [line for line in log_lines if line.startswith(f"Slurm job {job} waits")]
        self._waits = waits[-1] if waits else ""  # why the job waits, as last shown
        self._over = 0.0  # seconds since Slurm first reported that the job is over

    def follow(self, read_queue: Callable[[], QueueAnswer]) -> None:
        """Emit the log as it grows; return when the environment is complete.

        Raises:
            EngineError: a step failed (permanent), Slurm ended the job, or the order was cancelled.
        """
        cancelled = Event()
        begun = read_queue().asked_at
        self._request.build.cancellation.attach(cancelled.set)
        while True:
            end = read_build_end(self._request.place)  # before the log: the log of a build that has ended is complete
            self._read_log()
            if end is not None:
                self._log.end()
                break
            if cancelled.wait(_INTERVAL):
                raise_cancelled()
            self._look_at_job(read_queue(), begun)
        raise_for_end(end)

    def _look_at_job(self, answer: QueueAnswer, begun: float) -> None:
        row = answer.find(self._name, self._job)
        if row is not None and row.is_pending and describe_waiting(row) != self._waits:
            self._waits = describe_waiting(row)
            self._request.build.emit(self._waits)
        ended = row.has_ended if row is not None else answer.asked_at > begun and not answer.trouble
        self._over = self._over + _INTERVAL if ended else 0.0
        if self._over > _LATE_END:
            raise EngineError(f"no environment was made: {describe_end(answer.rows, self._job)}")

    def _read_log(self) -> None:
        try:
            with (self._request.place / "log").open("rb") as file:
                file.seek(self._read)
                while data := file.read(_READ_SIZE):
                    self._read += len(data)
                    self._log.add_output(data)
        except FileNotFoundError:  # the job waits
            return


def _share_uv(root: Path) -> Path:
    """Copy this machine's uv into the shared folder, and return its path there."""
    own = Path(find_uv_bin())
    status = own.stat()
    shared = root / f".uv-{status.st_size}-{int(status.st_mtime)}"
    if not shared.exists():
        fresh = shared.with_name(f"{shared.name}.{os.getpid()}")
        shutil.copyfile(own, fresh)
        fresh.chmod(0o700)
        fresh.replace(shared)
    return shared
