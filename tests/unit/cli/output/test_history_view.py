"""What jobs have used, as a table with the course of each amount."""

from __future__ import annotations

from typing import Any

import pytest

from riseml.cli.output.history_view import list_past_use
from riseml.cli.output.style import Style
from tests.unit.cli.histories import make_course, make_history


def test_bars_of_all_jobs_have_one_scale_of_time() -> None:
    early = make_course("4.worker.1", [0, 30], cpu=[200.0, 200.0])
    late = make_course("4.worker.2", [60, 90], cpu=[200.0, 200.0])
    found: Any = make_history(early, late)
    first, second = list_past_use(found, Style(), bars=True)[1:3]
    assert "██  " in first
    assert "  ██" in second
    assert list_past_use(make_history(), Style(), bars=True) == []  # type: ignore[arg-type]  # the shape of an answer


@pytest.mark.parametrize(
    "odd",
    [{"time": []}, {"time": [9, 3, 10**15]}, {"cpu": []}, {"time": [5, 5, 5]}],
    ids=["none", "far", "short", "same"],
)
def test_an_odd_answer_is_shown_without_an_error(odd: dict[str, Any]) -> None:
    found: Any = make_history(make_course("4.master", [0, 30, 60], cpu=[1.0, 2.0, 3.0]) | odd)
    list_past_use(found, Style(), bars=True)
