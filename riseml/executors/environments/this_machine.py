"""Virtual environments that this machine makes for its own Python: each build is a tree of processes with a supervisor.

The server only follows: the log and the end of a build are in its folder (`makers`), with what the supervisor writes
(`supervision.supervisor`). So a build survives its server as jobs do.
"""

from __future__ import annotations

import os
import platform
import sys
from pathlib import Path
from threading import Event

from uv import find_uv_bin

from riseml.base.errors import EngineError
from riseml.executors.build_limits import EXCESS_HINTS, PROCESSES, BuildLimits
from riseml.executors.environments.build_log import BuildLog
from riseml.executors.environments.makers import (
    ASIDE_SUFFIX,
    BUILDER,
    SEE_LOG,
    EnvironmentRequest,
    raise_cancelled,
    raise_for_end,
    read_build_end,
    write_build,
)
from riseml.executors.environments.venv_recipe import DOCKER_HINT, make_installer_variables
from riseml.executors.logs.log_reader import JobLogReader
from riseml.executors.supervision import supervisor
from riseml.executors.supervision.job_processes import end_supervised_job, kill_leftovers
from riseml.executors.supervision.job_records import SupervisorRecord, load_record, load_state, runs_now
from riseml.executors.supervision.process_tree import MARKER
from riseml.executors.supervision.start import start_supervisor
from riseml.executors.this_machine import machine
from riseml.executors.this_machine.removal import remove_tree
from riseml.model import LogCursor

_INTERVAL = 0.1  # seconds between two reads of the log; each costs less than 0.1 ms
_MIB = 2**20


class ThisMachineMaker:
    """Makes environments by processes of this machine, for its own Python. It is an `EnvironmentMaker`.

    Args:
        server: id of the server.
        limits: what a build may take.
    """

    def __init__(self, server: str, limits: BuildLimits) -> None:
        self._server = server
        self._limits = limits

    def identify_python(self) -> list[object]:
        return [platform.python_implementation(), *sys.version_info[:2], sys.base_prefix, platform.machine()]

    def describe_python(self) -> str:
        return f"Python {platform.python_version()}"

    def has_python(self, folder: Path) -> bool:
        return (folder / "bin" / "python").exists()

    def make_environment(self, request: EnvironmentRequest) -> None:
        last = request.announcements[-1]  # an earlier server has passed on the lines after it
        passed = next((count for count, line in enumerate(reversed(request.build.read_held())) if line == last), None)
        if not self._can_follow(request.place, has_begun=passed is not None):
            self.end_build(request.place)
            remove_tree(request.folder)
            passed = None
        if passed is None:
            for line in request.announcements:
                request.build.emit(line)
        if load_record(request.place) is None:
            self._start_build(request)
        self._follow(request, BuildLog(request.build, passed or 0))

    def end_build(self, place: Path) -> None:
        aside = place.with_suffix(ASIDE_SUFFIX)
        self._end_in(aside)  # what an interrupted call has left
        if place.is_dir():
            place.rename(aside)  # a supervisor that a killed server has started cannot claim the build any more
            self._end_in(aside)

    def _end_in(self, aside: Path) -> None:
        record = _find_record(aside)
        if record is not None and record.server == self._server:
            end_supervised_job(record)
        remove_tree(aside)

    def _can_follow(self, place: Path, *, has_begun: bool) -> bool:
        """Return True when a build makes the environment now, or made it while no server followed. A build that has
        failed counts only for the experiment that has begun it.
        """
        record = _find_record(place)
        if record is None:
            return False
        end = read_build_end(place)
        if record.has_ended and end is not None:
            return has_begun or not end.get("error")
        return has_begun if record.has_ended else runs_now(record)

    def _start_build(self, request: EnvironmentRequest) -> None:
        place = request.place
        settings = {
            "server": self._server,
            "python": sys.executable,
            "python_name": self.describe_python(),
            "uv": find_uv_bin(),
            "needs_pip": bool(request.packages or request.build.image.install),
            "variables": {},
        }
        write_build(request, settings)
        identity = _identify_folder(place)
        marker = f"{self._server}/build/{request.folder.name}/{identity}"  # a copied home has the same server
        path = os.environ.get("PATH", os.defpath)
        most_mem = machine.read_total_memory() // _MIB
        start_supervisor(
            f"build.{request.folder.name}",
            {
                "folder": str(place),
                "workdir": str(place),
                "command": [sys.executable, "-I", "-S", str(place / BUILDER), str(place)],
                "environment": make_installer_variables({"PATH": path, MARKER: marker}),
                "limits": {
                    "memory": self._limits.find_most_mem(most_mem) * _MIB,
                    "processes": PROCESSES,
                    "seconds": self._limits.seconds,
                },
                "identity": {
                    "server": self._server,
                    "title": f"build.{request.folder.name}",
                    "marker": marker,
                    "place": identity,
                },
            },
            marker,
        )

    def _follow(self, request: EnvironmentRequest, log: BuildLog) -> None:
        """Pass on the log as it grows; return when the environment is complete.

        Raises:
            EngineError: a step failed (permanent), the build was killed, or the request was cancelled.
        """
        cancelled = Event()
        request.build.cancellation.attach(cancelled.set)
        reader = JobLogReader(request.place / supervisor.LOG_FILE, LogCursor())
        while True:
            record = load_record(request.place)  # before the log: the log of a build that has ended is complete
            while frames := reader.read_frames():
                log.add_output(b"".join(frame.data for frame in frames))
            if record is None or record.has_ended or not runs_now(record):
                break
            if cancelled.wait(_INTERVAL):
                raise_cancelled()
        log.end()
        self._judge_end(request.place, record, log)

    def _judge_end(self, place: Path, record: SupervisorRecord | None, log: BuildLog) -> None:
        state = load_state(place) or {}
        if state.get("excess") in EXCESS_HINTS:
            problem, hint = EXCESS_HINTS[state["excess"]]
            raise EngineError(f"{log.name_step()} {problem}", hint, permanent=True)
        end = read_build_end(place)
        if end is not None:
            raise_for_end(end, f"{SEE_LOG}; {DOCKER_HINT}")
            return
        if record is not None and not record.has_ended:
            kill_leftovers(record, record.marker)
        raise EngineError(f"{log.name_step()} was killed", "the server begins again")


def _find_record(place: Path) -> SupervisorRecord | None:
    """Return what the supervisor of a build has written; None when this folder is a copy of the supervisor's."""
    state = load_state(place)
    if state is None or not place.is_dir() or state.get("place") != _identify_folder(place):
        return None
    return load_record(place)


def _identify_folder(folder: Path) -> str:
    """Return what distinguishes a folder from its copies."""
    status = folder.stat()
    return f"{status.st_dev}:{status.st_ino}"
