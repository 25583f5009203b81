"""`idle_timeout`: when a hang is a verdict, and when another attempt follows."""

from __future__ import annotations

from riseml.base.names import HostName, JobName
from riseml.base.states import Reason, State
from riseml.control.explain import explain_experiment
from riseml.model import Capacity, JobKey
from riseml.spec.config.types import Retry, RetryOn
from tests.unit.control.simulation import job_of, make_experiment, make_plan, make_simulation


def test_an_experiment_is_idle_when_all_its_jobs_are_quiet() -> None:
    simulation = make_simulation(Capacity(8, 8192))
    jobs = ("master", "worker.1", "ps.1", "tensorboard")
    simulation.submit(make_experiment(1, make_plan(*jobs, idle_timeout=60)))
    simulation.settle(5)
    keys = {name: JobKey(1, JobName(name), 1) for name in jobs}
    simulation.quiet = {keys["worker.1"]: 400.0, keys["ps.1"]: 400.0}
    simulation.settle(2)
    assert simulation.state(1) is State.RUNNING, "nothing is known of the master"
    simulation.quiet[keys["master"]] = 59.0
    simulation.settle(2)
    assert simulation.state(1) is State.RUNNING
    simulation.quiet[keys["master"]] = 60.0
    simulation.hosts[HostName("h1")].faults.silent = True
    simulation.settle(2)
    assert simulation.state(1) is State.RUNNING, "a silent host says nothing about its jobs"
    simulation.hosts[HostName("h1")].faults.silent = False
    simulation.settle(8, seconds=10)
    verdict = simulation.stored[1].verdict
    assert verdict is not None
    assert (verdict.reason, verdict.job) == (Reason.IDLE, None)
    assert verdict.message == "it reached idle_timeout of 60 s; worker.1 was quiet first"
    assert not simulation.running()


def test_an_idle_experiment_is_retried_where_retry_says_so() -> None:
    for on, attempts in ((frozenset({RetryOn.IDLE}), 2), (Retry().on, 1)):
        simulation = make_simulation(Capacity(8, 8192))
        simulation.submit(make_experiment(1, make_plan("train", idle_timeout=60, retry=Retry(max=1, on=on))))
        simulation.settle(5)
        simulation.quiet = {JobKey(1, JobName("train"), attempt): 60.0 for attempt in (1, 2)}
        simulation.settle(20)
        assert simulation.stored[1].reason is Reason.IDLE
        assert job_of(simulation, 1, "train").attempt == attempts


def test_an_experiment_that_may_hang_is_explained_before_it_is_ended() -> None:
    simulation = make_simulation(Capacity(8, 8192))
    simulation.submit(make_experiment(1, make_plan("master", "worker.1", idle_timeout=60)))
    simulation.settle(5)

    def explain(*seconds: float) -> str:
        keys = (JobKey(1, JobName(name), 1) for name in ("master", "worker.1"))
        simulation.quiet = dict(zip(keys, seconds, strict=True))
        return explain_experiment(simulation.world(), simulation.observe(), simulation.stored[1])["summary"]

    assert explain(40, 20) == (
        "Running; all of it is on h1; no job has printed or computed anything for 20 s,"
        " and idle_timeout ends it after 60 s"
    )
    assert explain(40, 5) == "Running; all of it is on h1"
