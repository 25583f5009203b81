"""What one observation reports of a container: named cases over the list, the last observation and the events."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import pytest

from riseml.executors.docker import labels
from riseml.executors.docker.exit_events import ContainerEvents
from riseml.executors.docker.observation import (
    ContainerRow,
    Merged,
    is_outdated,
    merge_inspection,
    merge_late,
    merge_row,
    parse_inspection,
    parse_row,
)
from riseml.executors.docker.outages import STOPPED, Outages
from riseml.model import ContainerObservation
from tests.unit.executors.docker.observed_jobs import AT, CREATED, KEY, LATE, MARKS, RUNS, ended, inspection


def exit_event(code: int, **fields: Any) -> ContainerEvents:
    return ContainerEvents(changed=True, exit_code=code, finished_at=AT, **fields)


CHANGED = ContainerEvents(changed=True)
QUIET = ContainerEvents()
LISTED_AS_RUNNING = ContainerRow(KEY, "abc", running=True)
LISTED_AS_ENDED = ContainerRow(KEY, "abc", running=False)
LISTED_AS_CREATED = ContainerRow(KEY, "abc", running=False, begun=False)
NEVER_AWAY = Outages()
AWAY_AROUND_IT = Outages(AT - timedelta(seconds=5), AT + timedelta(seconds=5))
AWAY_JUST_BEFORE = Outages(AT - timedelta(seconds=20), AT - timedelta(seconds=3))
AWAY_BEFORE = Outages(AT - timedelta(hours=2), AT - timedelta(hours=1))


@dataclass(frozen=True)
class Row:
    """A case that the list and the events decide. `reported` None: the container has to be inspected."""

    known: ContainerObservation | None
    row: ContainerRow
    events: ContainerEvents
    reported: Merged | None
    outages: Outages = NEVER_AWAY


ROWS = {
    "a container that is new is inspected": Row(None, LISTED_AS_RUNNING, QUIET, None),
    "a container that has not started is inspected": Row(CREATED, LISTED_AS_ENDED, QUIET, None),
    "a container that runs on is not asked about": Row(RUNS, LISTED_AS_RUNNING, QUIET, Merged(RUNS)),
    "a running row after an event is not believed": Row(RUNS, LISTED_AS_RUNNING, CHANGED, None),
    "a container that ended without an event is inspected": Row(RUNS, LISTED_AS_ENDED, QUIET, None),
    "exit code 0 is taken from its event": Row(RUNS, LISTED_AS_RUNNING, exit_event(0), Merged(ended(0))),
    "a failure is inspected": Row(RUNS, LISTED_AS_RUNNING, exit_event(1), None),
    "exit code 0 after an out-of-memory event is inspected": Row(
        RUNS, LISTED_AS_RUNNING, exit_event(0, out_of_memory=True), None
    ),
    "an end that the server asked for, with an open question whether the engine stops": Row(
        RUNS, LISTED_AS_RUNNING, exit_event(143, signalled=True), Merged(ended(143), needs_ping=True)
    ),
    "an end that the server asked for while the engine was away": Row(
        RUNS, LISTED_AS_RUNNING, exit_event(143, signalled=True), Merged(ended(143, error=STOPPED)), AWAY_AROUND_IT
    ),
    "a known end is final": Row(ended(137), LISTED_AS_ENDED, CHANGED, Merged(ended(137))),
    "a known end is final when the list says that it runs": Row(ended(0), LISTED_AS_RUNNING, CHANGED, Merged(ended(0))),
    "a known end is not explained again": Row(ended(137), LISTED_AS_ENDED, CHANGED, Merged(ended(137)), AWAY_AROUND_IT),
}


@pytest.mark.parametrize("name", ROWS)
def test_row(name: str) -> None:
    case = ROWS[name]
    assert merge_row(case.row, case.known, case.events, case.outages) == case.reported


@dataclass(frozen=True)
class Inspection:
    """A case that an inspection decides."""

    found: ContainerObservation
    events: ContainerEvents
    reported: Merged
    outages: Outages = NEVER_AWAY


INSPECTIONS = {
    "a container that runs": Inspection(RUNS, CHANGED, Merged(RUNS)),
    "a failure": Inspection(ended(1), exit_event(1), Merged(ended(1))),
    "a failed start": Inspection(
        replace(CREATED, error="exit code 127"), QUIET, Merged(replace(CREATED, error="exit code 127"))
    ),
    "SIGKILL, and the engine says out of memory": Inspection(
        ended(137, oom=True), exit_event(137, settles_in=0.5), Merged(ended(137, oom=True))
    ),
    "SIGKILL, and the out-of-memory event has arrived": Inspection(
        ended(137), exit_event(137, out_of_memory=True, settles_in=0.3), Merged(ended(137, oom=True))
    ),
    "a failure of a shell whose program the kernel killed, and its event has arrived after the exit": Inspection(
        ended(1), exit_event(1, out_of_memory=True), Merged(ended(1, oom=True))
    ),
    "SIGKILL, and the out-of-memory event may still arrive: the end is held back": Inspection(
        ended(137), exit_event(137, settles_in=0.3), Merged(RUNS, settles_in=0.3)
    ),
    "SIGKILL, and the out-of-memory event has not arrived in time": Inspection(
        ended(137), exit_event(137), Merged(ended(137), needs_ping=True)
    ),
    "SIGKILL without any event": Inspection(ended(137), QUIET, Merged(ended(137), needs_ping=True)),
    "SIGTERM is not held back": Inspection(
        ended(143), exit_event(143, settles_in=0.5), Merged(ended(143), needs_ping=True)
    ),
    "SIGKILL while the engine was away": Inspection(
        ended(137), QUIET, Merged(ended(137, error=STOPPED)), AWAY_AROUND_IT
    ),
    "SIGTERM just after the engine was back, while it still ended containers": Inspection(
        ended(143), QUIET, Merged(ended(143, error=STOPPED)), AWAY_JUST_BEFORE
    ),
    "SIGKILL long after the engine was away": Inspection(
        ended(137), QUIET, Merged(ended(137), needs_ping=True), AWAY_BEFORE
    ),
    "out of memory while the engine was away is out of memory": Inspection(
        ended(137, oom=True), QUIET, Merged(ended(137, oom=True)), AWAY_AROUND_IT
    ),
    "a failure while the engine was away is its own": Inspection(ended(1), QUIET, Merged(ended(1)), AWAY_AROUND_IT),
}


@pytest.mark.parametrize("name", INSPECTIONS)
def test_inspection(name: str) -> None:
    case = INSPECTIONS[name]
    assert merge_inspection(case.found, case.events, case.outages) == case.reported


@pytest.mark.parametrize(
    ("state", "row"),
    [
        ("running", LISTED_AS_RUNNING),
        ("paused", LISTED_AS_RUNNING),
        ("restarting", LISTED_AS_RUNNING),
        ("created", LISTED_AS_CREATED),
        ("exited", LISTED_AS_ENDED),
    ],
)
def test_a_row_names_its_job(state: str, row: ContainerRow) -> None:
    assert parse_row({"Id": "abc", "State": state, "Labels": MARKS}) == row


@pytest.mark.parametrize("row", [LISTED_AS_RUNNING, LISTED_AS_ENDED, LISTED_AS_CREATED])
@pytest.mark.parametrize(("known", "reported"), [(None, LATE), (CREATED, LATE), (RUNS, RUNS)])
def test_nothing_is_concluded_of_a_container_while_its_engine_has_not_answered(
    row: ContainerRow, known: ContainerObservation | None, reported: ContainerObservation
) -> None:
    assert merge_late(row, known).container == reported


def test_an_answer_from_before_the_start_of_a_container_does_not_count() -> None:
    assert is_outdated(LISTED_AS_RUNNING, CREATED)
    assert is_outdated(LISTED_AS_ENDED, CREATED)
    assert not is_outdated(LISTED_AS_CREATED, CREATED)
    assert not is_outdated(LISTED_AS_ENDED, RUNS), "it ended meanwhile, and is asked about again"


@pytest.mark.parametrize(
    ("state", "marks"),
    [
        ("removing", MARKS),
        ("dead", MARKS),
        ("running", {}),
        ("running", None),
        ("running", MARKS | {labels.ATTEMPT: "first"}),
    ],
)
def test_a_row_that_is_not_a_job_is_left_out(state: str, marks: dict[str, str] | None) -> None:
    assert parse_row({"Id": "abc", "State": state, "Labels": marks}) is None


@pytest.mark.parametrize(
    ("state", "found"),
    [
        ({}, ended(0)),
        ({"ExitCode": 137, "OOMKilled": True}, ended(137, oom=True)),
        ({"Status": "running", "Running": True, "FinishedAt": "0001-01-01T00:00:00Z"}, RUNS),
        (
            {"Status": "created", "StartedAt": "0001-01-01T00:00:00Z", "ExitCode": 127, "Error": "exec: no such file"},
            replace(CREATED, error="exec: no such file"),
        ),
        (
            {"Status": "created", "StartedAt": "0001-01-01T00:00:00Z", "ExitCode": 126},
            replace(CREATED, error="exit code 126"),
        ),
        ({"Status": "created", "StartedAt": "0001-01-01T00:00:00Z", "ExitCode": 128, "Error": "engine"}, CREATED),
    ],
)
def test_an_inspection_tells_how_a_container_is(state: dict[str, Any], found: ContainerObservation) -> None:
    assert parse_inspection(KEY, inspection(**state)) == found
