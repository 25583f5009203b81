"""Environments that a host already has, and environments that are deleted from outside."""

from __future__ import annotations

from dataclasses import replace

from riseml.base.names import HostName
from riseml.base.states import Reason, State
from riseml.control.actions import Action, EnsureImage, StartJob
from riseml.control.observation import Observation
from riseml.control.settle import GIVE_UP_STARTING
from riseml.model import Capacity, Image
from riseml.spec.config.types import Resources, Retry
from tests.unit.control.pools import GANG, ready, site
from tests.unit.control.simulation import (
    Simulation,
    Witness,
    job_of,
    make_experiment,
    make_plan,
    make_pool,
    make_simulation,
)

JOBS = ("master", "worker.1", "worker.2", "ps.1")


def test_a_cached_environment_skips_building() -> None:
    simulation = make_simulation(Capacity(8, 8192))
    simulation.hosts[HostName("h1")].images.add("base")
    simulation.submit(make_experiment(1, make_plan(*JOBS)))
    simulation.settle()
    assert simulation.history[1] == [State.CREATED, State.STARTING, State.RUNNING]
    assert job_of(simulation, 1, "build").reason is Reason.CACHED


def test_a_tag_that_moves_between_two_attempts_changes_nothing() -> None:
    simulation = make_simulation(Capacity(8, 8192))
    host = simulation.hosts[HostName("h1")]
    simulation.submit(make_experiment(1, make_plan("train", retry=Retry(max=1))))
    simulation.settle()
    host.move_tag("base", 2)
    simulation.exit(1, "train", 1)
    simulation.settle()
    assert [(launch.key.attempt, launch.image.reference) for launch in host.launches] == [(1, "base@1"), (2, "base@1")]
    simulation.submit(make_experiment(2, make_plan("train")))
    simulation.settle()
    assert host.launches[-1].image.reference == "base@2", "another experiment resolves the tag again"


def test_hosts_whose_tags_differ_run_what_the_builder_has() -> None:
    simulation = make_pool(h1=site(1), h2=site(1))
    for number, host in enumerate(simulation.hosts.values(), 1):
        host.images.add("base")
        host.move_tag("base", number)
    needs = {"master": Resources(cpus=1, mem=64), "worker.1": Resources(cpus=1, mem=64)}
    simulation.submit(make_experiment(1, make_plan(*needs, resources=needs)))
    simulation.settle()
    launches = [launch for host in simulation.hosts.values() for launch in host.launches]
    assert {launch.image.reference for launch in launches} == {"base@1"}


def test_a_moved_tag_makes_another_environment() -> None:
    simulation = make_simulation(Capacity(8, 8192))
    host = simulation.hosts[HostName("h1")]
    plan = replace(make_plan("train"), image=Image("base", ("pip install a",), (), "ab" * 32))
    for identity in (1, 2, 3):
        simulation.submit(make_experiment(identity, plan))
        simulation.settle()
        if identity == 2:
            host.move_tag("base", 2)
    one, two, three = (launch.image.reference for launch in host.launches)
    assert one == two != three


def test_the_host_that_has_the_image_builds() -> None:
    simulation = make_simulation(Capacity(8, 8192), Capacity(8, 8192))
    simulation.hosts[HostName("h2")].images.add("base")
    simulation.submit(make_experiment(1, make_plan(*JOBS)))
    simulation.turn()
    assert job_of(simulation, 1, "build").host == "h2"
    assert job_of(simulation, 1, "build").reason is Reason.CACHED


def test_an_environment_that_is_deleted_as_the_jobs_start_is_made_again() -> None:
    simulation = make_simulation(Capacity(8, 8192))
    host = simulation.hosts[HostName("h1")]

    class Thief(Witness):
        def acts(self, action: Action, seen: Observation) -> None:
            if action == StartJob(host.name, simulation.stored[1].key_of(job_of(simulation, 1, "worker.1"))):
                host.images.clear()
                simulation.witness = Witness()

    simulation.witness = Thief()
    simulation.submit(make_experiment(1, make_plan(*JOBS)))
    simulation.settle(15)
    assert isinstance(simulation.witness, Witness) and not isinstance(simulation.witness, Thief), "it was deleted"
    assert host.images, "and made again"
    assert simulation.state(1) is State.RUNNING
    assert len(simulation.running(1)) == len(JOBS)


WORKER_IMAGE = Image("other", ("pip install b",), (), "cd" * 32)


def test_each_environment_is_made_once_and_goes_to_the_hosts_of_its_roles() -> None:
    simulation = make_pool(h1=site(1), h2=site(1), h3=site(1))
    needs = {name: Resources(cpus=1, mem=64) for name in ("master", "worker.1", "worker.2")}
    plan = replace(make_plan(*needs, resources=needs, retry=Retry(max=1)), role_images=(("worker", WORKER_IMAGE),))
    simulation.submit(make_experiment(1, plan))
    simulation.settle()
    assert simulation.state(1) is State.RUNNING
    experiment = simulation.stored[1]
    assert dict(experiment.resolved) == {"base": "base@1", "other": "other@1"}
    for job in experiment.gang:
        host = simulation.hosts[job.host or HostName("none")]
        assert [launch.image for launch in host.launches] == [experiment.image_of(job.name)]
        unneeded = {one.reference for one in experiment.images} - {experiment.image_of(job.name).reference}
        builder = job_of(simulation, 1, "build").host == host.name
        assert builder or not unneeded & host.images, "an environment goes only where a job needs it"
    simulation.exit(1, "worker.1", 1)
    simulation.settle()
    assert simulation.state(1) is State.RUNNING
    assert {job.attempt for job in simulation.stored[1].gang} == {2}
    assert simulation.stored[1].resolved == experiment.resolved


def test_images_that_only_one_host_has_are_found_there() -> None:
    simulation = make_pool(h1=site(1), h2=site(1))
    for name, image in (("h1", "other"), ("h2", "base")):
        simulation.hosts[HostName(name)].images.add(image)
        simulation.hosts[HostName(name)].faults.no_registry = True
    needs = {name: Resources(cpus=1, mem=64) for name in ("master", "worker.1")}
    plan = replace(make_plan(*needs, resources=needs), role_images=(("worker", Image("other")),))
    simulation.submit(make_experiment(1, plan))
    simulation.settle(30)
    assert simulation.state(1) is State.RUNNING
    launches = [launch for host in simulation.hosts.values() for launch in host.launches]
    assert {launch.key.job: launch.image.reference for launch in launches} == {
        "master": "base@1",
        "worker.1": "other@1",
    }


def test_an_environment_that_no_host_can_get_fails_the_build() -> None:
    simulation = make_simulation(Capacity(8, 8192))
    host = simulation.hosts[HostName("h1")]
    host.images.add("base")
    host.faults.no_registry = True
    plan = replace(make_plan(*JOBS), role_images=(("worker", Image("other")),))
    simulation.submit(make_experiment(1, plan))
    simulation.settle()
    assert simulation.state(1) is State.FAILED
    assert "other" in job_of(simulation, 1, "build").message


def test_a_tag_that_has_not_moved_takes_no_further_pass() -> None:
    simulation = make_simulation(Capacity(8, 8192))
    host = simulation.hosts[HostName("h1")]
    plan = replace(make_plan("train"), image=Image("base", ("pip install a",), (), "ab" * 32))
    simulation.submit(make_experiment(1, plan))
    simulation.settle()
    simulation.submit(make_experiment(2, plan))
    simulation.turn()
    assert simulation.stored[2].placed_at is not None, "the first pass finds the environment and gives the place"
    simulation.settle()
    host.move_tag("base", 2)
    simulation.submit(make_experiment(3, plan))
    simulation.turn()
    assert simulation.stored[3].placed_at is None, "the tag stands for something else, whose environment is not there"
    simulation.settle()
    assert dict(simulation.stored[3].resolved) == {"base": "base@2"}
    assert host.launches[-1].image.resolved == "base@2"


def begin_build_that_breaks(simulation: Simulation) -> None:
    """Submit an experiment whose build breaks with its connection a second after it began."""
    simulation.submit(make_experiment(1, make_plan("train")))
    simulation.slow = 1
    simulation.turn()
    simulation.hosts[HostName("h1")].faults.silent = True
    simulation.finish()
    assert not simulation.problems[EnsureImage(HostName("h1"), 1, "base")].permanent


def test_a_second_try_of_a_build_may_take_longer_than_starts_may_fail() -> None:
    simulation = make_simulation(Capacity(8, 8192))
    begin_build_that_breaks(simulation)
    simulation.hosts[HostName("h1")].faults.silent = False
    simulation.slow = 1
    simulation.settle(3, GIVE_UP_STARTING.total_seconds())
    assert simulation.state(1) is State.BUILDING
    simulation.finish()
    simulation.settle()
    assert simulation.state(1) is State.RUNNING


def test_a_build_is_tried_again_on_a_host_that_was_away_for_long() -> None:
    simulation = make_simulation(Capacity(8, 8192))
    begin_build_that_breaks(simulation)
    simulation.settle(3, GIVE_UP_STARTING.total_seconds())
    simulation.hosts[HostName("h1")].faults.silent = False
    simulation.settle()
    assert simulation.state(1) is State.RUNNING


def test_a_build_fails_once_its_tries_have_failed_for_long() -> None:
    simulation = make_simulation(Capacity(8, 8192))
    begin_build_that_breaks(simulation)
    faults = simulation.hosts[HostName("h1")].faults
    states = []
    for _ in range(3):
        faults.silent, simulation.slow = False, 1
        simulation.turn(seconds=GIVE_UP_STARTING.total_seconds() / 2)
        states.append(simulation.state(1))
        faults.silent = True
        simulation.finish()
    assert states == [State.BUILDING, State.BUILDING, State.FAILED]
    assert job_of(simulation, 1, "build").reason is Reason.BUILD_FAILED


def test_an_environment_that_no_host_has_any_more_is_built_again_and_shared() -> None:
    simulation = make_pool(h1=site(3), h2=site(3))
    simulation.submit(make_experiment(1, make_plan(*GANG, resources=GANG)))
    simulation.turn()
    simulation.turn()
    for host in simulation.hosts.values():
        host.images.clear()
    simulation.settle(6)
    assert simulation.state(1) is State.RUNNING
    assert all("base@1" in host.images for host in simulation.hosts.values())


def test_a_host_that_was_not_asked_for_the_image_is_asked_at_once() -> None:
    simulation = make_pool(h1=site(4))
    simulation.submit(replace(ready(1, GANG), state=State.PENDING, reason=Reason.NO_ROOM))
    decision = simulation.turn()
    assert decision.wake_at == simulation.now
    simulation.settle(4)
    assert simulation.state(1) is State.RUNNING
