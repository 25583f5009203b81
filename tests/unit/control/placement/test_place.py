"""The places of gangs: all of their jobs or none, on few hosts, with devices, labels, swarms and addresses."""

from __future__ import annotations

import ipaddress
import itertools
from dataclasses import replace
from typing import Any

import pytest

from riseml.base.names import JobName
from riseml.base.states import JobDuty, Network, State
from riseml.control.placement.addresses import PORTS, SubnetAllocator, choose_addresses, count_addresses
from riseml.control.placement.candidates import CandidateHost
from riseml.control.placement.fit import find_hosts, make_gang
from riseml.control.placement.free import FreeResources
from riseml.control.placement.gpu_models import matches_model
from riseml.control.placement.place import place_gangs
from riseml.control.placement.refusal import describe_refusal, suggest_remedy
from riseml.model import Gpu, HostObservation, World
from riseml.spec.config.types import Resources
from tests.unit.control.pools import GANG, GPU, H1, H2, ONE, gang_of, hosts_of, look, place_all, ready, site


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


@pytest.mark.parametrize("jobs", [1, 20, 21, 61, 62, 200])
def test_two_attempts_and_the_swarm_share_no_address(jobs: int) -> None:
    subnet = SubnetAllocator("10.213.0.0/16", []).take(count_addresses(Network.OVERLAY, jobs))
    assert subnet is not None
    attempts = [set(choose_addresses(subnet, Network.OVERLAY, jobs, attempt)) for attempt in range(1, 8)]
    assert all(len(found) == jobs for found in attempts)
    assert all(one.isdisjoint(other) for one, other in itertools.pairwise(attempts))
    swarm = set(list(map(str, ipaddress.ip_network(subnet).hosts()))[1 : jobs + 1])  # the gateway has the first
    assert all(swarm.isdisjoint(found) for found in attempts)


def test_an_overlay_leaves_room_for_an_address_on_every_host() -> None:
    needs = {"master": ONE, **{f"worker.{n}": ONE for n in range(1, 40)}}
    hosts = {f"h{n}": site(10) for n in range(4)}
    found = place_all(look(**hosts), ready(1, needs))[1]
    assert found.subnet == "10.213.0.0/25"
    assert len({job.address for job in gang_of(found).values()}) == 40


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


GANG_NEEDS = {JobName(name): need for name, need in GANG.items()}


def test_a_refusal_names_what_is_missing() -> None:
    apart = replace(look(h1=site(3), h2=site(3)), shared_output=False)
    assert place_all(apart, ready(1, GANG))[1].state is State.PENDING
    assert "it needs several hosts, but they share no output" in describe_refusal(GANG_NEEDS, apart)
    wanted = {JobName("train"): Resources(cpus=1, mem=64, labels=(("gpu", "a100"),))}
    hosts = look(h1=site(3), h2=site(3, labels={"gpu": "t4"}))
    assert describe_refusal(wanted, hosts) == (
        "the job needs 1 cpus, 64 MiB and 0 gpus, on hosts with gpu=a100",
        "host h1 has 3 cpus, 8192 MiB and 0 gpus, and not gpu=a100",
        "host h2 has 3 cpus, 8192 MiB and 0 gpus, and not gpu=a100",
    )
    assert describe_refusal(wanted, look(h1=site(3, labels={"gpu": "a100"}, taking=False))) == ()


def test_a_host_network_gives_every_job_its_hosts_address_and_a_port() -> None:
    pool = look(Network.HOST, h1=site(2, address="192.0.2.1"), h2=site(2, address="192.0.2.2"))
    found = place_all(pool, ready(1, GANG))[1]
    assert (found.network, found.subnet, found.network_host) == (Network.HOST, None, None)
    places = [(job.address, job.port) for job in gang_of(found).values()]
    assert len(set(places)) == 4
    assert {address for address, _ in places} == {"192.0.2.1", "192.0.2.2"}
    assert {port for _, port in places} <= set(PORTS)


def test_a_port_in_use_is_not_given() -> None:
    pool = look(Network.HOST, h1=site(8, address="192.0.2.1", busy_ports=frozenset(PORTS) - {20007, 20011, 20012}))
    found = place_all(pool, ready(1, {"train": ONE}), ready(2, {"train": ONE}), ready(3, {"train": ONE}))
    assert [gang_of(found[n])["train"].port for n in (1, 2, 3)] == [20007, 20011, 20012]
    assert found[1].network is Network.HOST
    later = place_gangs(World((*found.values(), ready(4, {"train": ONE}))), pool).experiments[-1]
    assert later.state is State.PENDING


def test_a_host_without_an_address_uses_a_bridge() -> None:
    found = place_all(look(Network.HOST, h1=site(8)), ready(1, GANG))[1]
    assert (found.network, found.subnet) == (Network.BRIDGE, "10.213.0.0/26")


def test_jobs_without_containers_share_the_loopback() -> None:
    found = place_all(look(Network.BRIDGE, h1=site(8, isolated=False)), ready(1, GANG))[1]
    assert {job.address for job in gang_of(found).values()} == {"127.0.0.1"}
    assert len({job.port for job in gang_of(found).values()}) == 4


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


A100 = Gpu("0", "GPU-a", "NVIDIA A100-SXM4-40GB", 40960)
TESLA_T4 = Gpu("0", "GPU-b", "Tesla T4", 15360)


def gpu_site(*gpus: Gpu) -> HostObservation:
    """Return a host with these GPUs."""
    ids = [str(index) for index in range(len(gpus))]
    return site(8, *ids, devices=dict(zip(ids, gpus, strict=True)))


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


def test_a_refusal_names_the_gpus_that_hosts_have() -> None:
    wanted = {JobName("train"): Resources(cpus=1, mem=64, gpus=1, gpu="a100", gpu_mem=81920)}
    assert describe_refusal(wanted, look(h1=gpu_site(A100), h2=site(3))) == (
        "the job needs 1 cpus, 64 MiB and 1 gpus (a100 with 81920 MiB or more)",
        "host h1 has 8 cpus, 8192 MiB and 1 gpus (NVIDIA A100-SXM4-40GB (40960 MiB))",
        "host h2 has 3 cpus, 8192 MiB and 0 gpus",
    )
    unknown = describe_refusal(wanted, look(h1=site(3, "0")))
    assert unknown[1] == "no host knows the models of its GPUs, and `riseml pool check` says why"
    assert "(GPUs of unknown model)" in unknown[2]


@pytest.mark.parametrize(
    ("name", "wanted", "matches"),
    [
        ("NVIDIA A100-SXM4-40GB", "a100", True),
        ("NVIDIA A100-SXM4-40GB", "A100-SXM4", True),
        ("NVIDIA A100-SXM4-40GB", "a10", False),
        ("NVIDIA A10", "a100", False),
        ("NVIDIA GeForce RTX 3090", "rtx3090", True),
        ("NVIDIA GeForce RTX 3090", "3090", True),
        ("GeForce RTX 3090", "geforce rtx 3090", True),
        ("NVIDIA H100 80GB HBM3", "h100 80gb", True),
        ("NVIDIA A100-SXM4-40GB MIG 3g.20gb", "a100", False),
        ("NVIDIA A100-SXM4-40GB MIG 3g.20gb", "mig 3g.20gb", True),
        ("Tesla T4", "...", False),
    ],
)
def test_the_words_of_a_model_are_compared(name: str, wanted: str, *, matches: bool) -> None:
    assert matches_model(name, wanted) is matches


def test_subnets_never_overlap() -> None:
    no_subnets = ["fd00::/64", "::ffff:10.0.0.0/104", "10.213.0.0/99", "10.213.0.0", ""]
    taken = ["10.213.0.0/24", "10.213.1.64/28", "192.168.0.0/16", *no_subnets, "10.213.2.0/23"]
    subnets = SubnetAllocator("10.213.0.0/16", taken)
    assert [subnets.take(4) for _ in range(3)] == ["10.213.1.0/26", "10.213.1.128/26", "10.213.1.192/26"]
    assert subnets.take(100) == "10.213.4.0/25"
    assert SubnetAllocator("10.213.0.0/26", ["10.0.0.0/8"]).take(1) is None
    assert SubnetAllocator("10.213.0.0/28", []).take(1) is None


def test_placing_is_deterministic() -> None:
    hosts = {f"h{n}": site(4, "a", labels={"n": str(n)}) for n in range(5)}
    experiments = [ready(n, GANG) for n in range(1, 5)]
    first = place_all(look(**hosts), *experiments)
    assert first == place_all(look(**dict(reversed(hosts.items()))), *experiments)


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        ({"gpu": "h100"}, "no host has the label gpu=h100; the hosts have gpu=a100 (h1), gpu=t4 (h2): correct"),
        ({"zone": "x"}, "no host has the label zone=x; the hosts have gpu=a100 (h1), rack=b2 (h1, h2), gpu=t4 (h2): "),
        ({"gpu": "h100", "zone": "x"}, "no host has gpu=h100, zone=x; the hosts have gpu=a100 (h1), gpu=t4 (h2)"),
        ({"gpu": "a100", "rack": "b2"}, "lower train.resources or the number of workers, or add a host"),
        ({}, "lower train.resources or the number of workers, or add a host"),
    ],
)
def test_the_remedy_names_labels_that_no_host_has(labels: dict[str, str], words: str) -> None:
    pool = look(h1=site(2, labels={"gpu": "a100", "rack": "b2"}), h2=site(2, labels={"gpu": "t4", "rack": "b2"}))
    need = Resources(cpus=8, mem=64, labels=tuple(sorted(labels.items())))
    assert suggest_remedy({JobName("train"): need}, pool).startswith(words)


def test_the_remedy_names_labels_that_no_host_has_together() -> None:
    pool = look(h1=site(2, labels={"gpu": "a100"}), h2=site(2, labels={"rack": "b2"}))
    need = Resources(cpus=1, mem=64, labels=(("gpu", "a100"), ("rack", "b2")))
    found = suggest_remedy({JobName("train"): need}, pool)
    assert found == "no host has gpu=a100 and rack=b2 together: correct train.resources.labels"
