"""Interpret one observation of an engine's containers. Pure, so that every case is a row of a test.

riseml calls the engine as rarely as possible. Its list of containers is one call; an inspection is one call for each
container, and blocks while the engine removes the network of an ended container. So riseml inspects a container only
when the list, the last observation and the events are not enough.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any

from riseml.base.records import dataclass
from riseml.executors.docker import labels
from riseml.executors.docker.exit_events import ContainerEvents
from riseml.executors.docker.outages import Outages, is_doubtful
from riseml.executors.logs.timestamps import to_datetime, to_nanoseconds
from riseml.model import ContainerObservation, JobKey

# errors of the command; 128 is an error of the engine, and may be temporary
_START_FAILURES = frozenset({125, 126, 127})
_ON_ITS_WAY_OUT = frozenset({"removing", "dead"})  # states of a container that the engine is removing
_KILLED = 128 + 9
_ASK_AGAIN = 0.5  # seconds until an observation looks for a late answer


@dataclass(frozen=True, slots=True)
class ContainerRow:
    """One job's container in the engine's list."""

    key: JobKey
    id: str
    running: bool  # the list may lag behind the events
    begun: bool = True  # False: it has not started yet, or could not start


@dataclass(frozen=True, slots=True)
class Merged:
    """One container as this observation reports it."""

    container: ContainerObservation
    settles_in: float | None = None  # seconds until the next observation may know more; None: nothing is awaited
    needs_ping: bool = False  # accept the end only if the engine accepts a new connection


def parse_row(listed: dict[str, Any]) -> ContainerRow | None:
    """Return an entry of `GET /containers/json`; None when it is not a job, or is being removed."""
    key = labels.parse_job_key(listed["Labels"] or {})
    if key is None or listed["State"] in _ON_ITS_WAY_OUT:
        return None
    state = listed["State"]
    return ContainerRow(key, listed["Id"], state in ("running", "paused", "restarting"), begun=state != "created")


def parse_inspection(key: JobKey, inspection: dict[str, Any]) -> ContainerObservation:
    """Return the answer of `GET /containers/{id}/json` as an observation."""
    state = inspection["State"]
    started_at = _parse_time(state["StartedAt"])
    finished_at = _parse_time(state["FinishedAt"])
    started = started_at is not None and state["Status"] != "created"
    ended = started and not state["Running"]
    failed = not started and state["ExitCode"] in _START_FAILURES
    return ContainerObservation(
        key=key,
        id=inspection["Id"],
        started=started,
        exit_code=state["ExitCode"] if ended else None,
        oom=bool(state["OOMKilled"]),
        error=(state["Error"] or f"exit code {state['ExitCode']}") if failed else "",
        started_at=started_at if started else None,
        finished_at=finished_at if ended else None,
    )


def merge_row(
    row: ContainerRow, last_observation: ContainerObservation | None, events: ContainerEvents, outages: Outages
) -> Merged | None:
    """Return the container from the list, the last observation and the events; None: it must be inspected."""
    if last_observation is None or not last_observation.started:
        return None
    if not last_observation.running or (row.running and not events.changed):
        return Merged(last_observation)
    if events.finished_at is None or not events.tells_everything:
        return None
    return _explain_end(replace(last_observation, exit_code=events.exit_code, finished_at=events.finished_at), outages)


def merge_late(row: ContainerRow, last_observation: ContainerObservation | None) -> Merged:
    """Return a container about which its engine has not answered yet: as it was known, if it has started.

    Otherwise nothing may be concluded, and above all not that it has never started: riseml would end its job as
    vanished, and remove it with the lines that no server has read. A server that has just started knows no container.
    """
    if last_observation is not None and last_observation.started:
        return Merged(last_observation)
    return Merged(ContainerObservation(row.key, row.id, started=True, late=True), _ASK_AGAIN)


def is_outdated(row: ContainerRow, container: ContainerObservation) -> bool:
    """Return True when a container has started since the engine gave this answer."""
    return row.begun and not container.started


def merge_inspection(container: ContainerObservation, events: ContainerEvents, outages: Outages) -> Merged:
    """Return the container from an inspection and the events.

    An end by SIGKILL may be an out-of-memory kill whose event has not arrived. As long as it may still arrive, the
    container is reported as running, and `settles_in` asks for another observation.
    """
    if container.exit_code is not None and events.out_of_memory:
        container = replace(container, oom=True)
    elif container.exit_code == _KILLED and not container.oom and events.settles_in > 0:
        return Merged(replace(container, exit_code=None, finished_at=None), events.settles_in)
    return _explain_end(container, outages)


def _explain_end(container: ContainerObservation, outages: Outages) -> Merged:
    """Find out whether the engine ended a container. An engine that shuts down ends its jobs like a `kill`. It refuses
    new connections before it ends the first job, but still answers on old connections. So riseml accepts such an end
    only after a ping on a new connection.
    """
    explained = outages.explain_end(container)
    return Merged(explained, needs_ping=is_doubtful(explained) and not explained.error)


def _parse_time(text: str) -> datetime | None:
    """Return the engine's RFC 3339 time; its zero time, year 1, means never."""
    return None if text.startswith("0001") else to_datetime(to_nanoseconds(text))
