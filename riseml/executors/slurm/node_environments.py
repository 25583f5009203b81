"""Virtual environments that a job on a node makes: the node has the Python and the modules of their later users.

<root>/<digest>.build/     one build, beside the environment that it makes
    order.json             what is made: written last, so that without it there is no build
    project/               the project's files that the install steps may read
    environment_builder.py
    claim, log, end.json   see `environment_builder`
"""

from __future__ import annotations

import json
import logging
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from threading import Event
from typing import Any

from uv import find_uv_bin

from riseml.errors import EngineError, RisemlError
from riseml.executors.base import BuildOrder, Work, WorkReport
from riseml.executors.environments.makers import PROJECT, EnvironmentOrder, unpack_step_files
from riseml.executors.environments.venv_recipe import make_installer_variables
from riseml.executors.removal import remove_tree
from riseml.executors.slurm.job_queue import JobQueue, QueueAnswer
from riseml.executors.slurm.job_script import make_build_script
from riseml.executors.slurm.queue_rows import describe_end, describe_waiting
from riseml.executors.slurm.slurm_commands import SlurmCommands
from riseml.planning.image import make_step_command
from riseml.spec.pool.types import SlurmSpec
from riseml.terminal_text import plain_line

BUILDER = "environment_builder.py"
_INTERVAL = 0.5  # seconds between two reads of the log
_READ_SIZE, _LONGEST_LINE = 1 << 20, 1 << 16  # bytes of the log read at once, and kept of a line without an end
_LATE_END = 10.0  # seconds for the record of a job that Slurm says is over: NFS may show it later
_PASSED_ON = re.compile(
    r"(UV|PIP)_|(https?|no|all)_proxy$|(SSL_CERT|REQUESTS_CA|CURL_CA)_|NO_COLOR$|PYTHONUNBUFFERED$", re.IGNORECASE
)
"""Variables of the server that the installers on a node get; the others may be secrets, or wrong there."""

log = logging.getLogger(__name__)


class NodeMaker:
    """Makes environments by jobs of a cluster. It is an `EnvironmentMaker`.

    Args:
        settings: the section `slurm` of pool.yml.
        commands: the commands of Slurm.
        queue: what Slurm says.
    """

    def __init__(self, settings: SlurmSpec, commands: SlurmCommands, queue: JobQueue) -> None:
        self._settings = settings
        self._commands = commands
        self._queue = queue

    def identify_python(self) -> list[object]:
        return ["node", self._settings.python, list(self._settings.setup)]

    def describe_python(self) -> str:
        return f"{self._settings.python} of the nodes"

    def has_python(self, folder: Path) -> bool:
        return os.path.lexists(folder / "bin" / "python")  # a link that may lead nowhere on this machine

    def make_environment(self, order: EnvironmentOrder, lock: int) -> None:
        name = f"riseml-build-{order.folder.name}"
        place = order.folder.with_suffix(".build")
        job = self._find_job(name) if (place / "order.json").exists() else ""
        if job:
            follower = _BuildFollower(order.build, place, name, job)  # before its first line: it reads what was told
            order.build.emit(f"{_name_build(job)} already")
        else:
            remove_tree(order.folder)
            remove_tree(place)
            _write_build(order, place, self._settings.python)
            job = self._commands.submit(make_build_script(name, str(place), self._settings))
            follower = _BuildFollower(order.build, place, name, job)
            order.build.emit(f"{_name_build(job)} on a node")
        follower.follow(self._queue.read, self._cancel)
        remove_tree(place)

    def _find_job(self, name: str) -> str:
        """Return the job that makes an environment: of another server, or of one whose answer was lost."""
        rows = (row for row in self._queue.ask_now().rows if row.name == name and not row.has_ended)
        return next((row.id for row in rows), "")

    def _cancel(self, job: str) -> None:
        try:
            self._commands.cancel(job)
        except RisemlError as error:
            log.warning("Slurm job %s makes an environment that is not wanted any more: %s", job, error.message)


def _name_build(job: str) -> str:
    """Return how the first line about a job begins, in the log of a build."""
    return f"Slurm job {job} makes it"


class _BuildFollower:
    """Shows the log of one build until it has ended; each line once, also after a restart of the server."""

    def __init__(self, build: BuildOrder, place: Path, name: str, job: str) -> None:
        self._build = build
        self._place = place
        self._name = name
        self._job = job
        self._read = 0  # bytes of the log
        self._line = b""  # the beginning of a line whose end has not arrived yet
        self._steps = 0  # install steps that have begun
        held = build.read_held()
        written = next((at for at, line in enumerate(held) if line.startswith(_name_build(job))), len(held))
        self._held = iter(held[written:])  # what an earlier server has written about this job
        waits = [line for line in held[written:] if line.startswith(f"Slurm job {job} waits")]
        self._waits = waits[-1] if waits else ""  # why the job waits, as last shown
        self._over = 0.0  # seconds since Slurm first reported that the job is over

    def follow(self, read_queue: Callable[[], QueueAnswer], cancel: Callable[[str], None]) -> None:
        """Emit the log as it grows; return when the environment is complete.

        Raises:
            EngineError: a step failed (permanent), Slurm ended the job, or the order was cancelled, with the job.
        """
        cancelled, begun = Event(), read_queue().asked_at
        self._build.cancellation.attach(cancelled.set)
        while True:
            end = self._read_end()  # before the log: the log of a build that has ended is complete
            self._emit_log()
            if end is not None:
                self._emit_lines(self._line)
                break
            if cancelled.wait(_INTERVAL):
                cancel(self._job)
                self._build.cancellation.check()
            self._look_at_job(read_queue(), begun)
        if end["error"]:
            raise EngineError(end["error"], "the lines above say why: `riseml logs` shows them", permanent=True)

    def _look_at_job(self, answer: QueueAnswer, begun: float) -> None:
        row = answer.find(self._name, self._job)
        if row is not None and row.is_pending and describe_waiting(row) != self._waits:
            self._waits = describe_waiting(row)
            self._build.emit(self._waits)
        ended = row.has_ended if row is not None else answer.asked_at > begun and not answer.trouble
        self._over = self._over + _INTERVAL if ended else 0.0
        if self._over > _LATE_END:
            raise EngineError(f"no environment was made: {describe_end(answer.rows, self._job)}")

    def _read_end(self) -> dict[str, Any] | None:
        try:
            found = json.loads((self._place / "end.json").read_bytes())
        except (OSError, ValueError):
            return None
        return found if isinstance(found, dict) else None

    def _emit_log(self) -> None:
        try:
            with (self._place / "log").open("rb") as file:
                file.seek(self._read)
                while data := file.read(_READ_SIZE):
                    self._read += len(data)
                    whole, _, rest = (self._line + data).rpartition(b"\n")
                    self._line = rest[-_LONGEST_LINE:]
                    self._emit_lines(whole)
        except FileNotFoundError:  # the job waits
            return

    def _emit_lines(self, data: bytes) -> None:
        for line in data.split(b"\n"):
            text = plain_line(line.decode("utf-8", "replace"))
            if text.startswith("--> "):
                self._steps += 1
                self._build.report(
                    WorkReport(Work.INSTALL, text.removeprefix("--> "), self._steps, len(self._build.image.install))
                )
            if text.strip() and text not in self._held:  # each search continues where the last one stopped
                self._build.emit(text)


def _write_build(order: EnvironmentOrder, place: Path, python: str) -> None:
    place.mkdir(mode=0o700)
    unpack_step_files(order.build, place / PROJECT)
    image = order.build.image
    shutil.copyfile(Path(__file__).with_name(BUILDER), place / BUILDER)
    content = {
        "target": str(order.folder),
        "python": python,
        "uv": str(_share_uv(place.parent)),
        "packages": list(order.packages),
        "steps": [(line, make_step_command(line, image.shell)) for line in image.install],
        "variables": {name: value for name, value in make_installer_variables({}).items() if _PASSED_ON.match(name)},
    }
    fresh = place / "order.new"
    with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600), "w") as file:
        json.dump(content, file)
    fresh.rename(place / "order.json")


def _share_uv(root: Path) -> Path:
    """Copy this machine's uv into the shared folder, and return its path there."""
    own = Path(find_uv_bin())
    found = own.stat()
    shared = root / f".uv-{found.st_size}-{int(found.st_mtime)}"
    if not shared.exists():
        fresh = shared.with_name(f"{shared.name}.{os.getpid()}")
        shutil.copyfile(own, fresh)
        fresh.chmod(0o700)
        fresh.replace(shared)
    return shared
