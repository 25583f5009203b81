"""What hosts do for environments at this moment."""

from __future__ import annotations

import pytest

from riseml.executors.base import Work, WorkReport
from riseml.server.reconcile.activities import Activities, name_data
from tests.unit.control.simulation import make_experiment, make_plan
from tests.unit.server.memory_pool import H1, H2

EXPERIMENT = make_experiment(4, make_plan("train"))
PULL = WorkReport(Work.PULL, "python:3.11", 5, 9)
INSTALL = WorkReport(Work.INSTALL, "pip install x", 1, 2)
REFERENCE = EXPERIMENT.images[0].reference


def test_an_activity_is_shown_with_its_last_report_until_it_ends() -> None:
    activities = Activities()
    with activities.open_activity(H2, REFERENCE) as report, activities.open_activity(H1, name_data(4)) as fetch:
        assert activities.list_activities(EXPERIMENT) == [], "nothing was reported"
        report(PULL)
        report(INSTALL)
        fetch(PULL)
        assert activities.list_activities(EXPERIMENT) == [(H1, PULL), (H2, INSTALL)]
        assert activities.list_activities(make_experiment(5, make_plan("train"))) == [(H2, INSTALL)]
    assert activities.list_activities(EXPERIMENT) == []


def test_an_action_that_fails_leaves_no_activity() -> None:
    activities = Activities()
    with pytest.raises(InterruptedError), activities.open_activity(H1, REFERENCE) as report:
        report(PULL)
        raise InterruptedError
    assert activities.list_activities(EXPERIMENT) == []
