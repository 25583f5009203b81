"""The folders of jobs that are processes, and the processes that belong to them.

    <root>/<experiment>/<job>-a<attempt>/    state.json, log, code/ (see `wrapper`)
    <root>/.trash/                           what is being removed

A process is identified by pid, start time and boot id together, never by its pid alone. Everything that a job starts
inherits a marker in its environment, by which its processes are found when their supervisor was killed.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import re
import select
import shutil
import signal
import stat
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil

from riseml.errors import EngineError
from riseml.executors.process import supervisor
from riseml.model import JobKey
from riseml.names import JobName

MARKER = "RISEML_JOB_KEY"
KILLED = 128 + signal.SIGKILL
RESTARTED = "the machine was restarted while it ran"

_JOB = re.compile(r"([a-z][a-z-]*(?:\.\d+)?)-a(\d+)")
_TRASH = ".trash"
_PATIENCE = 5.0  # seconds that a supervisor is given to end its job before it is killed itself

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Record:
    """What a supervisor wrote about its job."""

    server: str
    pid: int
    start: int
    boot: str
    started_at: datetime | None = None
    exit_code: int | None = None
    finished_at: datetime | None = None
    error: str = ""
    gpus: tuple[str, ...] = ()


class JobFolders:
    """The folders below one root, which belongs to one server.

    Args:
        root: is made when it is missing.
        server: id of the server; marks its processes.
    """

    def __init__(self, root: Path, server: str) -> None:
        self.root = root
        self._server = server
        root.mkdir(parents=True, exist_ok=True, mode=0o700)
        (root / _TRASH).mkdir(exist_ok=True, mode=0o700)

    def experiment(self, experiment: int) -> Path:
        """What the jobs of an experiment share."""
        return self.root / str(experiment)

    def job(self, key: JobKey) -> Path:
        """The folder of one attempt of a job."""
        return self.experiment(key.experiment) / f"{key.job}-a{key.attempt}"

    def log(self, key: JobKey) -> Path:
        """The output of a job."""
        return self.job(key) / supervisor.LOG

    def marker(self, key: JobKey) -> str:
        """The value of `MARKER` in the environment of every process of a job."""
        return f"{self._server}/{key.experiment}/{key.job}/{key.attempt}"

    def experiments(self) -> Iterator[int]:
        """Every experiment that has a folder."""
        return (int(name) for name in os.listdir(self.root) if name.isdigit())

    def jobs(self) -> Iterator[JobKey]:
        """Every job that has a folder."""
        for experiment in self.experiments():
            for name in _list(self.experiment(experiment)):
                found = _JOB.fullmatch(name)
                if found is not None:
                    yield JobKey(experiment, JobName(found[1]), int(found[2]))

    def read(self, key: JobKey) -> Record | None:
        """What is written about a job; None when no supervisor has taken it yet."""
        return _read(self.job(key))

    def look(self, key: JobKey) -> Record | None:
        """The same, brought up to date: a job whose supervisor was killed has ended, and nothing of it is left."""
        record = self.read(key)
        if record is None or has_ended(record) or is_alive(record):
            return record
        record = self.read(key) or record  # it may have ended between the two looks
        return record if has_ended(record) else self._bury(key, record)

    def discard(self, path: Path) -> None:
        """Remove the folder of a job or of an experiment, ending what runs there; one that is gone is no error.

        Raises:
            EngineError: it cannot be removed.
        """
        _empty(self._throw(path))

    def sweep(self) -> None:
        """Finish removals that were cut off, and end what another server left in this root."""
        strangers = [self.job(key) for key in self.jobs() if not self._is_ours(key)]
        for path in strangers:
            self._throw(path)
        for name in _list(self.root / _TRASH):
            try:
                _empty(self.root / _TRASH / name)
            except EngineError as error:
                log.warning("%s", error.message)

    def _throw(self, path: Path) -> Path:
        """Move a folder into the trash, whence no supervisor can begin; its place there."""
        place = self.root / _TRASH / uuid.uuid4().hex
        place.mkdir(mode=0o700)
        with contextlib.suppress(FileNotFoundError):
            path.rename(place / path.name)
        return place

    def _is_ours(self, key: JobKey) -> bool:
        record = self.read(key)
        return record is None or record.server == self._server

    def _bury(self, key: JobKey, record: Record) -> Record:
        """Write the end of a job that nobody else can write any more."""
        end_marked(self.marker(key))
        error = record.error
        if record.boot != supervisor.boot_id():
            error = RESTARTED
        elif record.started_at is None:
            error = "its supervisor was killed before the job ran"
        found = _load(self.job(key)) or {"server": self._server, "pid": 0, "start": 0, "boot": ""}
        found.update(error=error, finished_at=time.time())
        if record.started_at is not None:
            found.update(exit_code=KILLED)
        path = self.job(key) / supervisor.STATE
        fresh = path.with_suffix(".buried")
        fresh.write_text(json.dumps(found))
        fresh.replace(path)
        return _record(found)


def is_alive(record: Record) -> bool:
    """True when the supervisor itself runs: not one that has this pid today."""
    if record.boot != supervisor.boot_id():
        return False
    found = supervisor.read_stat(record.pid)
    return found is not None and found[0] not in "ZX" and found[2] == record.start


def has_ended(record: Record) -> bool:
    """True when the record is the last word about its job."""
    return record.exit_code is not None or bool(record.error)


def send(record: Record, number: int) -> bool:
    """Signal the supervisor; False when it is gone. A recycled pid is never hit."""
    try:
        handle = os.pidfd_open(record.pid)
    except ProcessLookupError:
        return False
    except OSError:  # a kernel before 5.3
        return is_alive(record) and _kill(lambda: os.kill(record.pid, number))
    try:
        return is_alive(record) and _kill(lambda: signal.pidfd_send_signal(handle, number))
    finally:
        os.close(handle)


def end_marked(marker: str) -> None:
    """Kill every process that carries this marker, with all below it, until none is left."""
    wanted = f"{MARKER}={marker}".encode()
    known: set[psutil.Process] = set()
    while True:
        fresh = {process for process in psutil.process_iter() if _carries(process.pid, wanted)} - known
        if not fresh:
            break
        for process in fresh:
            known |= {process, *_below(process)}
        for process in known:
            with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
                process.kill()  # compares the start time first
    for process in known:
        _wait(process.pid)


def tree(record: Record) -> list[psutil.Process]:
    """The processes of a running job, without its supervisor."""
    if not is_alive(record):
        return []
    found = []
    for pid in supervisor.descendants(record.pid):
        with contextlib.suppress(psutil.NoSuchProcess):
            found.append(psutil.Process(pid))
    return found


def remove_tree(folder: Path) -> None:
    """Remove a folder, whatever its files allow.

    Raises:
        EngineError: something in it cannot be removed.
    """

    def allow(function: Callable[..., Any], path: str, _: Any) -> None:
        """A folder that its job made read-only."""
        for place in (os.path.dirname(path), path):
            with contextlib.suppress(OSError):
                os.chmod(place, os.stat(place, follow_symlinks=False).st_mode | stat.S_IRWXU, follow_symlinks=False)
        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(path) if os.path.isdir(path) and not os.path.islink(path) else os.unlink(path)

    try:
        shutil.rmtree(folder, onerror=allow)
    except FileNotFoundError:
        return
    except OSError as error:
        raise EngineError(f"{folder} cannot be removed: {error.strerror}", "remove it by hand") from error


def _list(folder: Path) -> list[str]:
    """What is in a folder; one that is removed in this moment is empty."""
    try:
        return os.listdir(folder)
    except (FileNotFoundError, NotADirectoryError):
        return []


def _empty(place: Path) -> None:
    """End and remove what was moved into the trash: the folder of a job or of an experiment."""
    for path in (place / name for name in _list(place)):
        for folder in [path] if _JOB.fullmatch(path.name) else [path / name for name in _list(path)]:
            _end(folder)
    remove_tree(place)


def _end(folder: Path) -> None:
    """End a job whose folder is in the trash: its supervisor does it, and is killed when it does not."""
    found = _load(folder)
    if found is None:
        return
    record = _record(found)
    if has_ended(record):
        return
    if send(record, supervisor.KILL_ALL):
        send(record, signal.SIGCONT)
        _wait(record.pid)
        send(record, signal.SIGKILL)
    if "marker" in found:
        end_marked(found["marker"])


def _read(folder: Path) -> Record | None:
    found = _load(folder)
    return None if found is None else _record(found)


def _load(folder: Path) -> dict[str, Any] | None:
    """A file that cannot be read is what a power cut leaves: as if the machine had been another one."""
    try:
        found = json.loads((folder / supervisor.STATE).read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return None
    except ValueError:
        return {"server": "", "pid": 0, "start": 0, "boot": ""}
    return found if isinstance(found, dict) else None


def _record(found: dict[str, Any]) -> Record:
    return Record(
        server=found["server"],
        pid=found["pid"],
        start=found["start"],
        boot=found["boot"],
        started_at=_time(found.get("started_at")),
        exit_code=found.get("exit_code"),
        finished_at=_time(found.get("finished_at")),
        error=found.get("error", ""),
        gpus=tuple(found.get("gpus", ())),
    )


def _time(seconds: float | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)


def _kill(signal_it: Callable[[], None]) -> bool:
    try:
        signal_it()
    except ProcessLookupError:
        return False
    return True


def _wait(pid: int) -> None:
    """Wait until a process has ended, whether its parent has heard of it or not; not for ever."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    except OSError:  # a kernel before 5.3
        with contextlib.suppress(psutil.NoSuchProcess, psutil.TimeoutExpired):
            psutil.Process(pid).wait(_PATIENCE)
        return
    ended = select.poll()
    ended.register(handle, select.POLLIN)
    ended.poll(_PATIENCE * 1000)
    os.close(handle)


def _carries(pid: int, marker: bytes) -> bool:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return marker in file.read().split(b"\0")
    except OSError:
        return False


def _below(process: psutil.Process) -> list[psutil.Process]:
    try:
        return process.children(recursive=True)
    except psutil.NoSuchProcess:
        return []
