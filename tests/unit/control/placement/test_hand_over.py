"""Hosts with a queue of their own: what riseml hands over to them, and what it shows of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from riseml.base.names import HostName, JobName
from riseml.base.states import Network, Reason, State
from riseml.control.explain import explain_experiment
from riseml.control.placement.refusal import describe_refusal
from riseml.model import Capacity, JobKey
from riseml.spec.config.types import Resources, Retry, RetryOn, RetryScope
from tests.support.memory_cluster import PREEMPTED, WAITS, MemoryCluster
from tests.unit.control.simulation import Simulation, job_of, make_experiment, make_plan

TWO_CORES = Resources(cpus=2, mem=64)
SLURM = HostName("slurm")


def make_cluster(cpus: int = 4) -> tuple[Simulation, MemoryCluster]:
    """Return a simulation of one cluster."""
    cluster = MemoryCluster(SLURM, Capacity(cpus, 8192))
    return Simulation({SLURM: cluster}), cluster


def submit_gang(simulation: Simulation, identity: int, retry: Retry | None = None) -> None:
    """Submit a master and a worker, which need four cores together."""
    needs = {"master": TWO_CORES, "worker.1": TWO_CORES}
    simulation.submit(make_experiment(identity, make_plan(*needs, resources=needs, retry=retry)))


def test_a_gang_is_handed_over_at_once_and_waits_in_the_queue_of_the_cluster() -> None:
    simulation, cluster = make_cluster()
    submit_gang(simulation, 1)
    submit_gang(simulation, 2)
    simulation.settle()
    assert simulation.state(1) is State.RUNNING
    second = simulation.stored[2]
    assert (second.state, second.reason, second.message) == (State.STARTING, Reason.IN_QUEUE, WAITS)
    said = explain_experiment(simulation.world(), simulation.observe(), second)["summary"]
    assert said == f"Waits in the queue of its cluster ({WAITS}); all of it is on slurm"
    assert len(cluster.gangs) == 2


def test_the_place_of_each_job_is_learned_when_it_starts() -> None:
    simulation, _ = make_cluster()
    submit_gang(simulation, 1)
    simulation.settle()
    master = job_of(simulation, 1, "master")
    assert (master.host, master.address, master.port) == ("slurm", "slurm", 40000)
    assert simulation.stored[1].network is Network.HOST


def test_jobs_that_the_cluster_ended_after_the_first_cause_are_not_causes() -> None:
    simulation, _ = make_cluster()
    submit_gang(simulation, 1)
    simulation.settle()
    simulation.exit(1, "worker.1", 7)
    simulation.settle()
    found = simulation.stored[1]
    assert (found.state, found.reason, found.verdict and found.verdict.job) == (
        State.FAILED,
        Reason.EXIT_CODE,
        "worker.1",
    )
    assert (job_of(simulation, 1, "master").state, job_of(simulation, 1, "master").reason) == (
        State.KILLED,
        Reason.CASCADE,
    )


@pytest.mark.parametrize("order", [("master", "worker.1"), ("worker.1", "master")])
@pytest.mark.parametrize("code", [0, 1, 143])
def test_a_gang_that_its_cluster_preempts_is_lost_whatever_its_roles_answer(order: tuple[str, str], code: int) -> None:
    """Exit code 0 is not a success then: a job may answer SIGTERM with it."""
    simulation, cluster = make_cluster()
    submit_gang(simulation, 1, Retry(max=1, on=frozenset({RetryOn.HOST_LOST})))
    simulation.settle()
    for attempt in (1, 2):
        for name in order:
            cluster.preempt(JobKey(1, JobName(name), attempt), code)
            simulation.turn()
        simulation.settle()
    found = simulation.stored[1]
    assert (found.state, found.reason, found.message) == (State.FAILED, Reason.ENGINE_STOPPED, PREEMPTED)


def test_a_gang_that_its_cluster_gives_up_before_the_start_is_lost_too() -> None:
    simulation, cluster = make_cluster()
    submit_gang(simulation, 1)
    submit_gang(simulation, 2, Retry(max=1, on=frozenset({RetryOn.HOST_LOST})))
    simulation.settle()
    for name in ("master", "worker.1"):
        cluster.preempt(JobKey(2, JobName(name), 1), 143)
    simulation.settle()
    assert job_of(simulation, 2, "master").attempt == 2


def test_a_role_that_fails_there_is_retried_with_its_whole_gang() -> None:
    simulation, cluster = make_cluster()
    submit_gang(simulation, 1, Retry(max=1, scope=RetryScope.ROLE))
    simulation.settle()
    simulation.exit(1, "worker.1", 7)
    simulation.settle()
    assert {key.attempt for key in cluster.containers} == {2}
    assert simulation.state(1) is State.RUNNING


def test_a_kill_takes_a_gang_out_of_the_queue_of_the_cluster() -> None:
    simulation, cluster = make_cluster()
    submit_gang(simulation, 1)
    submit_gang(simulation, 2)
    simulation.settle()
    simulation.kill(2)
    simulation.settle()
    assert simulation.state(2) is State.KILLED
    assert {key.experiment for key in cluster.containers} == {1}


def test_a_cluster_in_trouble_gets_nothing_and_explain_says_why() -> None:
    simulation, cluster = make_cluster()
    cluster.trouble = "Slurm's controller does not answer"
    submit_gang(simulation, 1)
    simulation.settle()
    found = simulation.stored[1]
    assert found.state is State.PENDING
    said = explain_experiment(simulation.world(), simulation.observe(), found)["summary"]
    assert said == "no reachable host accepts new jobs; slurm: Slurm's controller does not answer"


def test_what_no_node_could_ever_hold_is_refused_with_the_reason() -> None:
    simulation, _ = make_cluster()
    seen = simulation.observe()
    assert describe_refusal({JobName("train"): TWO_CORES}, seen) == ()
    (too_large,) = describe_refusal({JobName("train"): replace(TWO_CORES, mem=9000)}, seen)[:1]
    assert too_large == (
        "slurm: train needs 2 cpus, 9000 MiB and 0 gpus on one node, and its nodes have 4 cpus, 8192 MiB, 0 gpus"
    )
    many = {JobName(f"worker.{number}"): TWO_CORES for number in range(3)}
    assert describe_refusal(many, seen) == ("slurm: the 3 jobs together need 6 cpus, and all nodes together have 4",)
    labelled = replace(TWO_CORES, labels=(("disk", "fast"),), gpu="a100", gpus=1)
    assert any("constraint" in reason for reason in describe_refusal({JobName("train"): labelled}, seen))
    assert any("disk=fast" in reason for reason in describe_refusal({JobName("train"): labelled}, seen))
