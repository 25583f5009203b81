"""The places of gangs: all of their jobs or none, on few hosts, with devices, labels, swarms and addresses."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from riseml.base.states import JobDuty, Network, State
from riseml.control.placement.candidates import CandidateHost
from riseml.control.placement.fit import Gang, find_hosts, make_gang
from riseml.control.placement.free import FreeResources
from riseml.control.placement.place import PlacementPass, place_gangs
from riseml.control.placement.refusal import describe_refusal
from riseml.model import HostObservation, World
from riseml.spec.config.types import Resources
from tests.unit.control.pools import (
    A100,
    GANG,
    GANG_NEEDS,
    GPU,
    H1,
    H2,
    ONE,
    TESLA_T4,
    gang_of,
    gpu_site,
    hosts_of,
    look,
    place_all,
    ready,
    site,
)


def test_a_gang_that_fits_on_one_host_uses_a_bridge_there() -> None:
    found = place_all(look(h1=site(8), h2=site(8)), ready(1, GANG))[1]
    assert set(hosts_of(found).values()) == {"h1"}
    assert (found.network, found.network_host, found.subnet) == (Network.BRIDGE, None, "10.213.0.0/26")
    assert gang_of(found)["master"].address == "10.213.0.2"


def test_a_gang_over_several_hosts_has_an_overlay_and_addresses_from_its_top() -> None:
    found = place_all(look(h1=site(3, manager=False), h2=site(3)), ready(1, GANG))[1]
    assert set(hosts_of(found).values()) == {"h1", "h2"}
    assert (found.network, found.network_host) == (Network.OVERLAY, "h2")
    assert found.subnet == "10.213.0.0/26"
    assert [job.address for job in gang_of(found).values()] == [f"10.213.0.{last}" for last in (62, 61, 60, 59)]


def test_the_next_attempt_has_other_addresses() -> None:
    jobs = tuple(replace(job, attempt=2) for job in ready(1, GANG).jobs)
    again = ready(1, GANG, subnet="10.213.0.0/26", network=Network.OVERLAY)
    build = next(job for job in again.jobs if job.part is JobDuty.PREPARES)
    again = replace(again, jobs=(build, *(job for job in jobs if job.part is not JobDuty.PREPARES)))
    found = place_all(look(h1=site(3), h2=site(3)), again)[1]
    assert [job.address for job in gang_of(found).values()] == [f"10.213.0.{last}" for last in (58, 57, 56, 55)]


@pytest.mark.parametrize(
    "hosts",
    [
        {"h1": site(3, swarm="a"), "h2": site(3, swarm="b")},
        {"h1": site(3, swarm=""), "h2": site(3, swarm="")},
        {"h1": site(3, manager=False), "h2": site(3, manager=False)},
    ],
    ids=["two swarms", "no swarm", "no manager"],
)
def test_hosts_that_are_not_connected_do_not_share_a_gang(hosts: dict[str, HostObservation]) -> None:
    assert place_all(look(**hosts), ready(1, GANG))[1].state is State.PENDING
    why = describe_refusal(GANG_NEEDS, look(**hosts))
    assert why[1] == "it needs several hosts, but they are not in one swarm that has a manager"


def test_a_device_is_never_given_twice() -> None:
    found = place_all(look(h1=site(8, "a", "b", "c")), ready(1, {"train": GPU}), ready(2, {"master": GPU, "ps.1": GPU}))
    given = [gpu for one in found.values() for job in gang_of(one).values() for gpu in job.gpus]
    assert sorted(given) == ["a", "b", "c"]
    first = replace(found[1], jobs=tuple(replace(job, state=State.FAILED) for job in found[1].jobs))
    world = World((first, found[2], ready(3, {"train": GPU})))
    third = place_gangs(world, look(h1=site(8, "a", "b", "c"))).experiments[-1]
    assert gang_of(third)["train"].gpus == gang_of(found[1])["train"].gpus


def test_a_cpu_only_gang_leaves_gpu_hosts_alone() -> None:
    pool = look(h1=site(4, "a"), h2=site(16))
    assert hosts_of(place_all(pool, ready(1, {"train": ONE}))[1]) == {"train": "h2"}
    assert hosts_of(place_all(look(h1=site(4, "a")), ready(1, {"train": ONE}))[1]) == {"train": "h1"}


def test_a_ps_goes_beside_its_gpu_workers() -> None:
    needs = {"master": GPU, "worker.1": GPU, "worker.2": GPU, "ps.1": ONE}
    pool = look(h1=site(4, "a", "b"), h2=site(4, "c", "d"), h3=site(16))
    hosts = hosts_of(place_all(pool, ready(1, needs))[1])
    assert "h3" not in hosts.values()
    assert set(hosts.values()) == {"h1", "h2"}


def test_a_gang_stays_on_few_hosts() -> None:
    pool = look(h1=site(1), h2=site(2), h3=site(3), h4=site(1))
    assert set(hosts_of(place_all(pool, ready(1, GANG))[1]).values()) == {"h3", "h1"}


def test_a_gang_that_barely_fits_gets_its_place() -> None:
    """The quick search puts the small job beside the large one, where a middle one should be."""
    needs = [Resources(cpus=c, mem=1) for c in (6, 5, 5, 4)]
    room = {H1: FreeResources(10, 100, ()), H2: FreeResources(10, 100, ())}
    sites = {H1: CandidateHost({}, 0, (), "s"), H2: CandidateHost({}, 0, (), "s")}
    found = find_hosts(make_gang(needs), room, sites)
    assert found is not None
    assert sum(need.cpus for need, host in zip(needs, found, strict=True) if host == H1) == 10


@pytest.mark.parametrize("wanted", ["a100", "t4"])
def test_labels_choose_the_host(wanted: str) -> None:
    pool = look(h1=site(8, labels={"gpu": "a100"}), h2=site(8, labels={"gpu": "t4"}))
    need = Resources(cpus=1, mem=64, labels=(("gpu", wanted),))
    found = place_all(pool, ready(1, {"train": need}))[1]
    assert hosts_of(found) == {"train": "h1" if wanted == "a100" else "h2"}


def test_jobs_of_one_gang_may_want_different_labels() -> None:
    pool = look(h1=site(8, labels={"gpu": "a100"}), h2=site(8, labels={"gpu": "t4"}))
    needs = {
        name: Resources(cpus=1, mem=64, labels=(("gpu", gpu),)) for name, gpu in (("master", "t4"), ("ps.1", "a100"))
    }
    assert hosts_of(place_all(pool, ready(1, needs))[1]) == {"master": "h2", "ps.1": "h1"}


@pytest.mark.parametrize(
    ("wanted", "host"),
    [
        ({"gpu": "a100"}, "h1"),
        ({"gpu": "T4"}, "h2"),
        ({"gpu_mem": 40960}, "h1"),
        ({"gpu_mem": 15000}, "h2"),
        ({"gpu": "tesla t4", "gpu_mem": 15360}, "h2"),
        ({"gpu": "a10"}, None),
        ({"gpu": "t4", "gpu_mem": 16384}, None),
        ({"gpu": "h100"}, None),
    ],
)
def test_models_and_memory_choose_the_host(wanted: dict[str, Any], host: str | None) -> None:
    pool = look(h1=gpu_site(A100, A100), h2=gpu_site(TESLA_T4), h3=site(8, "0"), h4=gpu_site(TESLA_T4, A100))
    need = Resources(cpus=1, mem=64, gpus=1, **wanted)
    found = place_all(pool, ready(1, {"train": need}))[1]
    assert hosts_of(found) == {"train": host}


def test_a_job_without_gpus_goes_anywhere() -> None:
    need = Resources(cpus=1, mem=64, gpu="a100", gpu_mem=40960)  # a ps that has it from train.resources
    assert hosts_of(place_all(look(h1=site(8)), ready(1, {"train": need}))[1]) == {"train": "h1"}


def test_jobs_of_one_gang_may_want_different_gpus() -> None:
    pool = look(h1=gpu_site(A100, A100), h2=gpu_site(TESLA_T4, TESLA_T4))
    needs = {
        "master": Resources(cpus=1, mem=64, gpus=1, gpu="t4"),
        "worker.1": Resources(cpus=1, mem=64, gpus=2, gpu="a100"),
        "ps.1": Resources(cpus=1, mem=64),
    }
    found = hosts_of(place_all(pool, ready(1, needs))[1])
    assert (found["master"], found["worker.1"]) == ("h2", "h1")


def test_placing_is_deterministic() -> None:
    hosts = {f"h{n}": site(4, "a", labels={"n": str(n)}) for n in range(5)}
    experiments = [ready(n, GANG) for n in range(1, 5)]
    first = place_all(look(**hosts), *experiments)
    assert first == place_all(look(**dict(reversed(hosts.items()))), *experiments)


def test_a_pass_is_a_room_addresses_and_a_head() -> None:
    pool = look(h1=site(8))
    running = place_all(pool, ready(1, {"train": Resources(6, 64)}))[1]
    head, small = ready(2, {"train": Resources(8, 64)}), ready(3, {"train": ONE})
    placement = PlacementPass(World((running, head, small)), pool)
    served = placement.serve_queue([head])
    assert placement.head is not None
    assert placement.head.experiment is head
    assert served[2].placed_at is None
    gang: Gang = placement.gang_of(small)
    assert placement.room.find_hosts(gang) == (H1,)
    assert placement.room.find_hosts_beside(placement.head.reserve, gang) is None
    assert gang_of(running)["train"].host == H1
