"""How long jobs run when the time of day is set meanwhile, and their hosts know nothing else."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from riseml.base.names import HostName, JobName
from riseml.base.states import State
from riseml.model import Capacity, ContainerObservation, HostObservation, JobKey, World
from riseml.server.reconcile.run_times import RunTimes
from tests.unit.control.simulation import START, make_experiment, make_plan

H1 = HostName("h1")
KEY = JobKey(1, JobName("train"), 1)
RUNS = ContainerObservation(KEY, "c", started=True, started_at=START)


def make_world() -> World:
    experiment = make_experiment(1, make_plan("train"))
    job = replace(experiment.jobs[1], host=H1, state=State.RUNNING, started_at=START)
    return World((replace(experiment, jobs=(experiment.jobs[0], job)),))


class Clock:
    """A server that looks at one job from second 2 of its run on."""

    def __init__(self) -> None:
        self.uptime = 1000.0
        self.times = RunTimes(lambda: self.uptime)
        self.look(RUNS, 2)

    def look(self, container: ContainerObservation, seconds: float) -> float | None:
        """Return the seconds that it has run, after so many by the time of day."""
        host = HostObservation(Capacity(1, 1), containers={KEY: container})
        seen = self.times.measure(make_world(), {H1: host}, START + timedelta(seconds=seconds))
        return seen[H1].containers[KEY].ran


@pytest.mark.parametrize("jump", [0, 3600, -3600])
def test_a_job_that_runs_is_measured_whatever_the_time_of_day_is(jump: float) -> None:
    clock = Clock()
    clock.uptime += 10
    assert clock.look(RUNS, 12 + jump) == 12


@pytest.mark.parametrize("jump", [3600, -3600])
@pytest.mark.parametrize("late", [0, 600], ids=["noticed at once", "noticed late"])
def test_an_end_by_a_clock_that_was_set_is_mended(jump: float, late: float) -> None:
    clock = Clock()
    clock.uptime += 10 + late
    ended = replace(RUNS, exit_code=0, finished_at=START + timedelta(seconds=12 + jump))
    assert clock.look(ended, 12 + late + jump) == 12


@pytest.mark.parametrize("jump", [0, 3600, -3600])
def test_the_times_of_a_host_count_where_only_the_clock_of_the_server_was_set(jump: float) -> None:
    clock = Clock()
    clock.uptime += 610
    ended = replace(RUNS, exit_code=0, finished_at=START + timedelta(seconds=12))
    assert clock.look(ended, 612 + jump) is None, "finished_at - started_at"


def test_what_a_host_measures_itself_is_left_alone() -> None:
    clock = Clock()
    assert clock.look(replace(RUNS, ran=7.0), 12) == 7.0
    assert clock.look(ContainerObservation(KEY, "c", started=True, late=True), 12) is None


def test_a_server_that_saw_no_start_changes_no_end() -> None:
    times = RunTimes(lambda: 5.0)
    ended = replace(RUNS, exit_code=0, finished_at=START + timedelta(hours=9))
    host = HostObservation(Capacity(1, 1), containers={KEY: ended})
    assert times.measure(make_world(), {H1: host}, START)[H1].containers[KEY] == ended
