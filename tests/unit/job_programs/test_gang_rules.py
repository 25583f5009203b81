"""What the end of a job means for the others of its gang, rule by rule."""

from __future__ import annotations

import pytest

from riseml.base.states import JobDuty, Reason, State
from riseml.job_programs import gang_rules
from riseml.job_programs.gang_rules import FAILED, FINISHED, KILLED, Member, fails, find_endings, find_first_cause

RUNS = "RUNNING"
MASTER, WORKER = Member("DECIDES", RUNS), Member("HELPS", RUNS, grace=5.0)
PS, TENSORBOARD = Member("SERVES", RUNS), Member("WATCHES", RUNS)


def end(member: Member, state: str, at: float) -> Member:
    """Return the job after its end."""
    return member._replace(state=state, ended_at=at)


@pytest.mark.parametrize("name", ["DECIDES", "HELPS", "SERVES", "WATCHES"])
def test_the_parts_are_those_of_the_records(name: str) -> None:
    assert JobDuty(getattr(gang_rules, name)).name == name


def test_states_and_reasons_are_those_of_the_records() -> None:
    assert [State(name).name for name in (FINISHED, FAILED, KILLED)] == [FINISHED, FAILED, KILLED]
    assert Reason(gang_rules.CASCADE) is Reason.CASCADE
    assert Reason(gang_rules.NO_LONGER_NEEDED) is Reason.NO_LONGER_NEEDED


@pytest.mark.parametrize(
    ("part", "code", "error", "failure"),
    [
        ("DECIDES", 0, "", False),
        ("DECIDES", 0, "its node is gone", True),
        ("HELPS", 1, "", True),
        ("SERVES", 0, "", True),
        ("WATCHES", 0, "", False),
    ],
)
def test_an_end_fails_by_part_code_and_error(part: str, code: int, error: str, failure: bool) -> None:  # noqa: FBT001  # a table
    assert fails(part, code, error) is failure


def test_what_ended_first_is_the_cause() -> None:
    assert find_first_cause([MASTER, WORKER, PS]) is None
    cause = find_first_cause([end(MASTER, FAILED, 3.0), end(WORKER, FAILED, 2.0), PS])
    assert cause is not None
    assert (cause.place, cause.state, cause.at) == (1, FAILED, 2.0)


def test_of_two_ends_at_the_same_instant_that_of_the_job_that_decides_counts() -> None:
    cause = find_first_cause([end(WORKER, FAILED, 2.0), end(MASTER, FINISHED, 2.0)], over_at=2.0)
    assert cause is not None
    assert (cause.place, cause.state) == (1, FINISHED)


def test_a_success_needs_every_job_that_decides() -> None:
    assert find_first_cause([end(MASTER, FINISHED, 1.0), MASTER]) is None
    cause = find_first_cause([end(MASTER, FINISHED, 1.0), end(MASTER, FINISHED, 4.0)])
    assert cause is not None
    assert (cause.state, cause.at) == (FINISHED, 4.0)
    assert find_first_cause([WORKER]) is None


def test_a_job_that_something_else_ended_or_that_only_watches_is_no_cause() -> None:
    assert find_first_cause([MASTER, end(WORKER, KILLED, 1.0), end(TENSORBOARD, FAILED, 1.0)]) is None


def test_the_time_of_the_gang_is_a_cause_of_its_own() -> None:
    cause = find_first_cause([MASTER, end(WORKER, FAILED, 4.0)], over_at=3.0)
    assert cause is not None
    assert (cause.place, cause.state) == (None, FAILED)


def test_after_a_failure_every_other_job_ends() -> None:
    assert find_endings([end(WORKER, FAILED, 1.0), MASTER, PS, TENSORBOARD], FAILED, 0.0) == ["", *["CASCADE"] * 3]


def test_after_a_success_helpers_have_their_grace_and_then_the_servers_end() -> None:
    master = end(MASTER, FINISHED, 1.0)
    unneeded = "NO_LONGER_NEEDED"
    assert find_endings([master, WORKER, PS, TENSORBOARD], FINISHED, 4.9) == ["", "", "", ""]
    assert find_endings([master, WORKER, PS, TENSORBOARD], FINISHED, 5.0) == ["", unneeded, "", ""]
    worker = end(WORKER, FAILED, 2.0)
    assert find_endings([master, worker, PS, TENSORBOARD], FINISHED, 2.0) == ["", "", unneeded, unneeded]
