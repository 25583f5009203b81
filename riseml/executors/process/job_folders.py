"""The folders of jobs that are processes.

<root>/<experiment>/<job>-a<attempt>/    state.json, log, code/ (see `supervisor`)
<root>/.trash/                           folders that are being removed
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import re
import signal
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from riseml.base.errors import EngineError
from riseml.base.names import JobName
from riseml.executors.logs.log_reader import find_first_output
from riseml.executors.supervision import supervisor
from riseml.executors.supervision.job_processes import end_supervised_job, kill_leftovers
from riseml.executors.supervision.job_records import (
    UNREADABLE_STATE,
    SupervisorRecord,
    load_record,
    load_state,
    parse_state,
    runs_now,
)
from riseml.executors.this_machine.removal import remove_tree
from riseml.model import JobKey

KILLED = 128 + signal.SIGKILL
RESTARTED = "the machine was restarted while it ran"
COPIED = "its folder was copied or restored while it ran, so that its end is not known"

_JOB_FOLDER = re.compile(r"([a-z][a-z-]*(?:\.\d+)?)-a(\d+)")
_TRASH = ".trash"

log = logging.getLogger(__name__)


class ProcessJobFolders:
    """The folders below one root, which belongs to one server.

    Args:
        root: created when it is missing.
        server: id of the server; marks its processes.
    """

    def __init__(self, root: Path, server: str) -> None:
        self.root = root
        self._server = server
        root.mkdir(parents=True, exist_ok=True, mode=0o700)
        (root / _TRASH).mkdir(exist_ok=True, mode=0o700)

    def experiment_folder(self, experiment: int) -> Path:
        """Return the folder that the jobs of an experiment share."""
        return self.root / str(experiment)

    def job_folder(self, key: JobKey) -> Path:
        """Return the folder of one attempt of a job."""
        return self.experiment_folder(key.experiment) / f"{key.job}-a{key.attempt}"

    def log_path(self, key: JobKey) -> Path:
        """Return the file with the output of a job."""
        return self.job_folder(key) / supervisor.LOG_FILE

    def make_marker(self, key: JobKey) -> str:
        """Return the value of `MARKER` in the environment of every process of a job."""
        return f"{self._server}/{key.experiment}/{key.job}/{key.attempt}"

    def list_experiments(self) -> Iterator[int]:
        """Return every experiment that has a folder."""
        return (int(name) for name in os.listdir(self.root) if name.isdigit())

    def list_jobs(self) -> Iterator[JobKey]:
        """Yield every job that has a folder."""
        for experiment in self.list_experiments():
            yield from self._list_jobs_of(experiment)

    def load_job_record(self, key: JobKey) -> SupervisorRecord | None:
        """Return the record of a job; None when no supervisor has claimed the job."""
        return load_record(self.job_folder(key))

    def settle_job_record(self, key: JobKey) -> SupervisorRecord | None:
        """Return the record of a job. If its supervisor was killed, first end the job's processes and write its end."""
        record = self.load_job_record(key)
        if record is None or record.has_ended or runs_now(record):
            return record
        record = self.load_job_record(key)  # the job may have ended or been removed since it was read
        return record if record is None or record.has_ended else self._write_end(key, record)

    def find_last_sign(self, key: JobKey) -> datetime | None:
        """Return when the log of a job last grew; None: it has none."""
        try:
            return datetime.fromtimestamp(self.log_path(key).stat().st_mtime, UTC)
        except OSError:
            return None

    def discard_folder(self, path: Path) -> None:
        """End what runs in the folder of a job or of an experiment, and remove the folder, if it is there.

        Raises:
            EngineError: it cannot be removed.
        """
        _empty_trash(self._move_to_trash(path))

    def sweep_leftovers(self) -> None:
        """Finish removals that were interrupted, and end the jobs that another server left in this root.

        A folder that cannot be removed is named in the log, and stays for the next start.
        """
        for experiment in self.list_experiments():
            with _failure_logged(self.experiment_folder(experiment)):
                for key in list(self._list_jobs_of(experiment)):
                    with _failure_logged(self.job_folder(key)):
                        if not self._is_own_job(key):
                            self._move_to_trash(self.job_folder(key))
        for name in _list_folder(self.root / _TRASH):
            with _failure_logged(self.root / _TRASH / name):
                _empty_trash(self.root / _TRASH / name)

    def _list_jobs_of(self, experiment: int) -> Iterator[JobKey]:
        for name in _list_folder(self.experiment_folder(experiment)):
            match = _JOB_FOLDER.fullmatch(name)
            if match is not None:
                yield JobKey(experiment, JobName(match[1]), int(match[2]))

    def _move_to_trash(self, path: Path) -> Path:
        """Move a folder to the trash so that no supervisor can start in it; return the folder that it is in.

        Raises:
            OSError: the disk is full, for example.
        """
        place = self.root / _TRASH / uuid.uuid4().hex
        place.mkdir(mode=0o700)
        with contextlib.suppress(FileNotFoundError):
            path.rename(place / path.name)
        return place

    def _is_own_job(self, key: JobKey) -> bool:
        record = self.load_job_record(key)
        return record is None or record.server == self._server

    def _write_end(self, key: JobKey, record: SupervisorRecord) -> SupervisorRecord | None:
        """Write the end of a job whose supervisor is gone; None when the job is being removed."""
        kill_leftovers(record, self.make_marker(key))
        error = record.error
        if record.copied:
            error = COPIED
        elif record.boot != supervisor.read_boot_id():
            error = RESTARTED
        elif record.started_at is None:
            error = "its supervisor was killed before the job ran"
        state = load_state(self.job_folder(key)) or {**UNREADABLE_STATE, "server": self._server}
        state.update(error=error)  # and no time of the end, which is not known
        begun = find_first_output(self.log_path(key)) if record.started_at is None else None
        if begun is not None:  # its log must be read before the job is removed
            state.update(started_at=begun)
        if record.started_at is not None or begun is not None:
            state.update(exit_code=KILLED)
        path = self.job_folder(key) / supervisor.STATE_FILE
        fresh = path.with_suffix(".buried")
        try:
            fresh.write_text(json.dumps(state))
            fresh.replace(path)
        except FileNotFoundError:
            return None
        return parse_state(state)


def list_running_jobs(root: Path) -> list[Path]:
    """Return the folders of the jobs below a root whose supervisors run and write into them."""
    folders = [path for path in root.glob("[0-9]*/*-a*") if _JOB_FOLDER.fullmatch(path.name)]
    records = [(folder, load_record(folder)) for folder in folders]
    return [folder for folder, record in records if record is not None and not record.has_ended and runs_now(record)]


@contextlib.contextmanager
def _failure_logged(folder: Path) -> Iterator[None]:
    """Log a failure with a folder and continue: a job decides what is in it, and must not block the server's start."""
    try:
        yield
    except Exception as error:  # noqa: BLE001  # the log says which folder stays
        reason = error.message if isinstance(error, EngineError) else repr(error)
        log.warning("the folder %s was not cleaned up: %s", folder, reason)


def _list_folder(folder: Path) -> list[str]:
    """Return the names in a folder; none when the folder is being removed."""
    try:
        return os.listdir(folder)
    except (FileNotFoundError, NotADirectoryError):
        return []


def _empty_trash(place: Path) -> None:
    """End and remove what was moved to the trash: the folder of a job or of an experiment."""
    for path in (place / name for name in _list_folder(place)):
        for folder in [path] if _JOB_FOLDER.fullmatch(path.name) else [path / name for name in _list_folder(path)]:
            record = load_record(folder)
            if record is not None and not record.has_ended and not record.copied:  # the original's job goes on
                end_supervised_job(record)
    remove_tree(place)
