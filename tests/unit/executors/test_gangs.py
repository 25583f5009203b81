"""The order for a host that starts whole gangs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from riseml.base.states import JobDuty
from riseml.executors.gangs import make_gang_request
from riseml.planning.launch import LaunchTarget, StorageRoots
from tests.unit.control.simulation import make_experiment, make_plan

TARGET = LaunchTarget("5e7a", StorageRoots("/srv/output", "/srv/data"))
PLAN = make_plan("master", "worker.1", "ps.1")


def test_an_order_has_every_job_with_what_its_end_means() -> None:
    order = make_gang_request(make_experiment(4, PLAN), TARGET)
    duties = [(role.launch.key.job, role.part) for role in order.roles]
    assert duties == [("master", JobDuty.DECIDES), ("worker.1", JobDuty.HELPS), ("ps.1", JobDuty.SERVES)]
    assert (order.experiment, order.attempt) == (4, 1)


def test_what_no_record_has_is_added_to_every_launch() -> None:
    order = make_gang_request(make_experiment(4, PLAN), TARGET, lambda launch: replace(launch, title="complete"))
    assert {role.launch.title for role in order.roles} == {"complete"}


@pytest.mark.parametrize(
    ("idle_timeout", "every"),
    [(None, 5.0), (600.0, 5.0), (20.0, 2.0), (1.0, 0.5)],
    ids=["none", "long", "short", "tiny"],
)
def test_jobs_are_measured_several_times_within_their_idle_timeout(idle_timeout: float | None, every: float) -> None:
    plan = replace(PLAN, policy=replace(PLAN.policy, idle_timeout=idle_timeout))
    assert make_gang_request(make_experiment(4, plan), TARGET).measure_every == every
