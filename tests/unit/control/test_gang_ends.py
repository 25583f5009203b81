"""The server and the supervisor of a gang on Slurm end a gang by the same rules, and report the same cause."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from hypothesis import settings

from riseml.base.states import Reason
from tests.unit.control.gang_ends import SupervisorSite, check_histories, draw_history, play_server

MANY = 10_000


def test_both_callers_of_the_rules_agree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check_histories(settings().max_examples * 5, 1, SupervisorSite(tmp_path, monkeypatch))


@pytest.mark.long
def test_both_callers_of_the_rules_agree_in_ten_thousand_histories(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_histories(MANY, 2, SupervisorSite(tmp_path, monkeypatch))


def test_the_histories_have_every_ending() -> None:
    outcomes = [play_server(draw_history(Random(f"1/{place}"))) for place in range(200)]
    verdicts = {outcome.verdict[1] for outcome in outcomes if outcome.verdict is not None}
    endings = {reason for outcome in outcomes for _, reason in outcome.jobs.values()}
    failures = {Reason.EXIT_CODE, Reason.SIGNAL, Reason.SERVICE_ENDED, Reason.ENGINE_STOPPED}
    assert verdicts == {Reason.COMPLETED, Reason.MAX_DURATION, Reason.KILLED_BY_USER} | failures
    assert {Reason.CASCADE, Reason.NO_LONGER_NEEDED} <= endings
    assert any(outcome.killed for outcome in outcomes)
