"""Read `state.json`, which the supervisor of a job writes, as a record.

A server reads the files of supervisors that an older version of riseml started: fields may be missing, never renamed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from riseml.base.records import dataclass
from riseml.executors.supervision import supervisor
from riseml.executors.supervision.job_files import (
    Check,
    is_count,
    is_text,
    is_time,
    keep_valid,
    read_record,
    says_no_record,
)

UNREADABLE_STATE: Mapping[str, Any] = {"server": "", "pid": 0, "start": 0, "boot": ""}
"""The record for a file that a power cut or the job has damaged: a supervisor from an earlier boot."""

_CHECKS: Mapping[str, Check] = {
    "server": is_text,
    "pid": is_count,
    "start": lambda value: isinstance(value, int),
    "boot": is_text,
    "started_at": is_time,
    "exit_code": is_count,
    "finished_at": is_time,
    "began": is_time,
    "ran": is_time,
    "error": is_text,
    "gpus": lambda value: isinstance(value, list) and all(map(is_text, value)),
    "marker": is_text,
    "main": is_count,
    "folder": is_count,
}


@dataclass(frozen=True, slots=True)
class SupervisorRecord:
    """The record of a supervisor about its job. Pid, start and boot together identify one process for all time."""

    server: str  # id of the server that started it
    pid: int  # process ID of the supervisor
    start: int  # when the supervisor started, in clock ticks since boot
    boot: str  # id of the machine's boot
    started_at: datetime | None = None  # when the job's main process ran; None: it did not
    exit_code: int | None = None  # exit code of the main process, as a shell reports it; None: the job has not ended
    finished_at: datetime | None = None  # None of a job that has ended: the time is not known
    error: str = ""  # why the job could not run, or was aborted
    gpus: tuple[str, ...] = ()  # ids of the job's GPUs
    marker: str = ""  # in the environment of every process of the job
    main: int = 0  # pid of the job's main process; 0: it did not run
    copied: bool = False  # this is a copy of the folder that the supervisor writes into
    began: float | None = None  # seconds since the boot when the main process ran; None: an older version did not say
    ran: float | None = None  # seconds that the job ran; None: it runs, or its end was not recorded

    @property
    def has_ended(self) -> bool:
        """True when this is the last record of the job."""
        return self.exit_code is not None or bool(self.error)


def load_record(folder: Path) -> SupervisorRecord | None:
    """Return the record of the job in a folder; None when no supervisor has claimed it."""
    state = load_state(folder)
    if state is None:
        return None
    record = parse_state(state)
    return replace(record, copied=True) if _is_copied(folder, state) else record


def load_state(folder: Path) -> dict[str, Any] | None:
    """Return the content of a job's `state.json`; None when there is none. Any content can be parsed."""
    try:
        record = read_record(folder / supervisor.STATE_FILE)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except ValueError:
        return dict(UNREADABLE_STATE)
    except OSError as error:
        if not says_no_record(error):
            raise
        return dict(UNREADABLE_STATE)
    is_whole = keep_valid(record, _CHECKS) == record and record.keys() >= UNREADABLE_STATE.keys()
    return record if is_whole else dict(UNREADABLE_STATE)


def parse_state(state: Mapping[str, Any]) -> SupervisorRecord:
    """Return the content of a `state.json` as a record."""
    return SupervisorRecord(
        server=state["server"],
        pid=state["pid"],
        start=state["start"],
        boot=state["boot"],
        started_at=_parse_seconds(state.get("started_at")),
        exit_code=state.get("exit_code"),
        finished_at=_parse_seconds(state.get("finished_at")),
        began=state.get("began"),
        ran=state.get("ran"),
        error=state.get("error", ""),
        gpus=tuple(state.get("gpus", ())),
        marker=state.get("marker", ""),
        main=state.get("main", 0),
    )


def measure_run(record: SupervisorRecord) -> float | None:
    """Return the seconds that a job has run so far, by a monotonic clock; None: they are not known."""
    if record.has_ended or record.began is None or record.boot != supervisor.read_boot_id():
        return record.ran
    return max(0.0, supervisor.read_uptime() - record.began)


def runs_now(record: SupervisorRecord) -> bool:
    """Return True when the supervisor itself runs, and writes into this folder.

    Another process may have its pid now, and the folder may be a copy.
    """
    if record.copied or record.boot != supervisor.read_boot_id():
        return False
    stat_fields = supervisor.read_stat(record.pid)
    return stat_fields is not None and stat_fields[0] not in "ZX" and stat_fields[2] == record.start


def _is_copied(folder: Path, state: Mapping[str, Any]) -> bool:
    """Return True for a copy of a job's folder. The record of a supervisor of an older version does not say."""
    try:
        return state.get("folder", 0) not in (0, folder.stat().st_ino)
    except OSError:  # the folder is being removed
        return False


def _parse_seconds(seconds: float | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)
