"""A job that runs as a process of this machine, without a server."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from riseml.executors.supervision.job_processes import end_supervised_job
from riseml.executors.supervision.job_records import SupervisorRecord, load_record
from riseml.executors.supervision.start import start_supervisor


@contextmanager
def run_job(folder: Path, script: str, **environment: str) -> Iterator[SupervisorRecord]:
    """Give the record of a job that runs a script of the shell, and end the job."""
    status = folder.stat()
    marker = f"m{folder}"  # no other test ends what has it
    place = f"{status.st_dev}:{status.st_ino}"  # as the build of an environment has it
    order: dict[str, object] = {
        "folder": str(folder),
        "workdir": str(folder),
        "command": ("/bin/sh", "-c", script),
        "environment": {"PATH": os.environ["PATH"], **environment},
        "identity": {"server": "s", "title": "ann.4.train", "marker": marker, "gpus": (), "place": place},
    }
    start_supervisor("ann.4.train", order, marker)
    record = load_record(folder)
    assert record is not None
    try:
        yield record
    finally:
        end_supervised_job(record)
