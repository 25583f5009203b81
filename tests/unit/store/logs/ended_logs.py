"""The log of an experiment that has ended."""

from __future__ import annotations

from pathlib import Path

from riseml.base.names import JobName
from riseml.model import Frame, JobKey
from riseml.store.logs.log_store import LogStore, read_all_lines
from tests.unit.store.logs.log_frames import KEY

COUNT = 500
"""Lines of each of its two jobs."""


def fill(folder: Path) -> Path:
    """Write the log of an experiment that has ended, and return its file."""
    logs = LogStore(folder)
    for key in (KEY, JobKey(4, JobName("master"), 1)):
        frames = [Frame(f"2026-08-31T07:23:46.{number:09d}Z", 1, b"line %d\n" % number) for number in range(COUNT)]
        logs.append_frames(key, frames)
        logs.finish_job(key)
    logs.close_experiment(4)
    return folder / "4.log"


def read_texts(logs: LogStore) -> list[str]:
    return [line.text.decode() for line in read_all_lines(logs, 4)]


def notes(lines: list[str]) -> list[str]:
    return [line for line in lines if line.startswith("[riseml: ")]
