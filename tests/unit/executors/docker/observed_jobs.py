"""One job on an engine: what the engine lists and says of it, and what is reported."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from riseml.base.names import JobName
from riseml.executors.docker import labels
from riseml.model import ContainerObservation, JobKey

KEY = JobKey(4, JobName("master"), 1)
AT = datetime(2026, 8, 31, 7, 23, 46, 500_000, tzinfo=UTC)
CREATED = ContainerObservation(KEY, "abc", started=False)
LATE = ContainerObservation(KEY, "abc", started=True, late=True)
RUNS = ContainerObservation(KEY, "abc", started=True, started_at=AT - timedelta(minutes=1))


def ended(code: int, **fields: Any) -> ContainerObservation:
    return replace(RUNS, exit_code=code, finished_at=AT, **fields)


def event(action: str) -> dict[str, Any]:
    attributes = {"name": "riseml-4-master", "exitCode": "137"}
    return {"Action": action, "Actor": {"ID": "abc", "Attributes": attributes}, "timeNano": 1_788_161_026_500_000_000}


MARKS = labels.job_labels(KEY, "5e17e4", "paul.4.master")


def inspection(**state: Any) -> dict[str, Any]:
    plain = {
        "Status": "exited",
        "Running": False,
        "ExitCode": 0,
        "OOMKilled": False,
        "Error": "",
        "StartedAt": "2026-08-31T07:22:46.5Z",
        "FinishedAt": "2026-08-31T07:23:46.5Z",
    }
    return {"Id": "abc", "State": plain | state}
