"""Rows of the tables as records, and back."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import sqlalchemy as sa

from riseml.base.names import HostName
from riseml.base.states import Network, Reason, State, Wanted
from riseml.model import Environment, Experiment, Job, Owner, Plan, Resolved, Verdict
from riseml.store.codec import parse_json, to_json

Texts = tuple[str, ...]
_NOTHING = (None, "null")  # a column without a value, in SQL and in JSON


def select_texts(table: sa.Table) -> list[sa.ColumnElement[Any]]:
    """Return the columns of a table under their names, with the text of JSON ones, which `parse_json` reads at once."""
    return [
        sa.cast(column, sa.Text).label(column.name) if isinstance(column.type, sa.JSON) else column
        for column in table.columns
    ]


def experiment_values(experiment: Experiment) -> dict[str, Any]:
    """Return the columns of an experiment that a decision may change.

    The values of its variables, which may be secrets, are erased once no job of it starts any more.
    """
    erased: dict[str, Any] = {} if experiment.needs_variables else {"environment": []}
    return erased | {
        "resolved": write_resolved(experiment.resolved),
        "state": experiment.state.value,
        "reason": experiment.reason.value,
        "message": experiment.message,
        "verdict": None if experiment.verdict is None else to_json(experiment.verdict),
        "network": experiment.network.value,
        "fabric": experiment.network_host,  # `schema` explains why the column has another name
        "subnet": experiment.subnet,
        "closed": experiment.closed,
        "placed_at": experiment.placed_at,
        "started_at": experiment.started_at,
        "ended_at": experiment.ended_at,
        "waited": experiment.waited,
        "waits_since": experiment.waits_since,
    }


def write_resolved(resolved: Resolved) -> str:
    """Return the resolved base images as a column: JSON in a text column; empty when there are none."""
    return json.dumps(to_json(resolved)) if resolved else ""


def read_resolved(text: str) -> Resolved:
    """Return the resolved base images from their column."""
    return parse_json(text, Resolved) if text else ()


def job_values(experiment: int, position: int, job: Job) -> dict[str, Any]:
    """Return one row of the jobs table."""
    return {"experiment_id": experiment, "name": job.name, "position": position, "record": to_json(job)}


def to_experiment(row: sa.RowMapping, jobs: Iterable[str]) -> Experiment:
    """Return the record of one row of `select_texts` and the JSON of its jobs' records, in the order of the jobs."""
    return Experiment(
        id=row["id"],
        owner=Owner(row["user"], row["uid"], row["gid"]),
        number=row["number"],
        sub=row["sub"],
        set_id=row["set_id"],
        concurrency=row["concurrency"] or 1,
        paused=bool(row["paused"]),
        project=row["project"],
        plan=parse_json(row["plan"], Plan),
        jobs=tuple(parse_json(job, Job) for job in jobs),
        snapshot=row["snapshot"],
        resolved=read_resolved(row["resolved"]),
        environment=parse_json(row["environment"], Environment),
        wanted=Wanted(row["wanted"]),
        state=State(row["state"]),
        reason=Reason(row["reason"]),
        message=row["message"],
        verdict=None if row["verdict"] in _NOTHING else parse_json(row["verdict"], Verdict),
        network=Network(row["network"]),
        network_host=None if row["fabric"] is None else HostName(row["fabric"]),
        subnet=row["subnet"],
        created_at=row["created_at"],
        placed_at=row["placed_at"],
        started_at=row["started_at"],
        ended_at=row["ended_at"],
        waited=row["waited"],
        waits_since=row["waits_since"],
        closed=row["closed"],
        version=row["version"],
        team_project=row["team_project"],
    )
