"""A job that waits (`after`) for one which has ended: when that is a verdict."""

from __future__ import annotations

from riseml.base.names import JobName
from riseml.base.states import Reason, State
from riseml.model import Capacity, JobKey
from tests.unit.control.simulation import make_experiment, make_plan, make_simulation


def test_a_wait_for_a_job_that_has_ended_ends_the_experiment() -> None:
    simulation = make_simulation(Capacity(8, 8192))
    simulation.submit(make_experiment(1, make_plan("master", "worker.1")))
    simulation.settle(5)
    simulation.stuck = {JobKey(1, JobName("master"), 1): JobName("worker.1")}
    simulation.settle(40)
    assert simulation.state(1) is State.RUNNING, "the other job still runs, and may answer"
    simulation.exit(1, "worker.1", 0)
    simulation.settle(5)
    assert simulation.state(1) is State.RUNNING, "the lines of a job that has begun may be late"
    simulation.stuck = {}
    simulation.settle(40)
    assert simulation.state(1) is State.RUNNING, "it has begun"
    simulation.stuck = {JobKey(1, JobName("master"), 1): JobName("worker.1")}
    simulation.settle(40)
    verdict = simulation.stored[1].verdict
    assert verdict is not None
    assert (verdict.reason, verdict.job) == (Reason.AWAITED_ENDED, "master")
    assert verdict.message == "master waits for worker.1, which has ended with exit code 0"
    assert simulation.state(1) is State.FAILED
    assert not simulation.running()
