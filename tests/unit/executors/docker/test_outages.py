"""When an engine was away, and which ends of containers count as its own doing."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from riseml.executors.docker.outages import STOPPED, Outages, is_doubtful
from tests.unit.executors.docker.observed_jobs import AT, RUNS, ended


def seconds(count: float) -> timedelta:
    return timedelta(seconds=count)


@pytest.mark.parametrize(
    ("code", "oom", "doubtful"),
    [
        (137, False, True),
        (143, False, True),
        (255, False, True),
        (0, False, False),
        (1, False, False),
        (137, True, False),
    ],
)
def test_only_an_end_by_a_signal_without_a_cause_is_doubtful(code: int, *, oom: bool, doubtful: bool) -> None:
    assert is_doubtful(ended(code, oom=oom)) is doubtful


@pytest.mark.parametrize(
    ("since", "until", "stopped"),
    [
        (-5, 5, True),
        (30, 40, True),
        (30.1, 40, False),
        (-60, -10, True),
        (-60, -10.1, False),
        (-60, None, True),
        (None, None, False),
    ],
    ids=["around", "it stops containers first", "after", "it starts and ends them", "before", "still away", "never"],
)
def test_an_end_around_an_outage_is_that_of_the_engine(
    since: float | None, until: float | None, *, stopped: bool
) -> None:
    away = Outages(None if since is None else AT + seconds(since), None if until is None else AT + seconds(until))
    assert away.explain_end(ended(137)) == (ended(137, error=STOPPED) if stopped else ended(137))


def test_a_container_that_runs_or_failed_by_itself_is_not_explained() -> None:
    away = Outages(AT - seconds(1), None)
    for container in (RUNS, ended(1), replace(ended(137), finished_at=None)):
        assert away.explain_end(container) == container


def test_an_outage_begins_with_the_first_silence_and_ends_with_the_first_answer() -> None:
    outages = Outages().mark_back(AT)
    assert outages == Outages()
    outages = outages.mark_away(AT).mark_away(AT + seconds(9))
    assert outages == Outages(AT)
    outages = outages.mark_back(AT + seconds(10)).mark_back(AT + seconds(99))
    assert outages == Outages(AT, AT + seconds(10))
    assert outages.mark_away(AT + seconds(100)) == Outages(AT + seconds(100))


def test_an_engine_that_did_not_see_an_end_does_not_know_when_it_was() -> None:
    """After a power cut it dates the end at its own start."""
    away = Outages(AT - seconds(60), AT)
    assert away.explain_end(ended(255)) == replace(ended(255, error=STOPPED), finished_at=None)
