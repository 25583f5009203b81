"""What each host lacks for the jobs of an experiment that waits, and who holds it."""

from __future__ import annotations

from dataclasses import replace

from riseml.base.states import Network
from riseml.control.explain import BlockerKind
from riseml.control.placement.addresses import PORTS
from riseml.model import Gpu, Owner
from riseml.spec.config.types import Resources
from tests.unit.control.pools import GANG, GPU, ONE_JOB, look, ready, site, tell
from tests.unit.control.simulation import START


def test_a_missing_resource_is_named_with_the_experiments_that_hold_it() -> None:
    pool = look(h1=site(64, "a", "b", "c", "d"), h2=site(64))
    hog = ready(7, {"train": replace(GPU, gpus=2)}, number=3)
    other = ready(9, {"train": GPU}, number=1, owner=Owner("anna", 1, 1))
    found = tell(pool, hog, other, ready(10, {"train": replace(GPU, gpus=2)}))
    assert found["phase"] == "waits"
    assert found["queue"] == {"position": 1, "length": 1, "ahead": []}
    (h1, h2) = found["hosts"]
    ((shortage,),) = (job["shortages"] for job in h1["jobs"])
    assert shortage["text"] == "gpus: needs 2, 1 free of 4 (held by 3, anna.1)"
    assert (shortage["lack"], shortage["needs"], shortage["free"], shortage["total"]) == ("gpus", 2, 1, 4)
    assert shortage["held_by"] == ["3", "1"]
    assert [one["text"] for one in h2["jobs"][0]["shortages"]] == ["gpus: needs 2, 0 free of 0"]
    assert [blocker["block"] for blocker in found["blockers"]] == [BlockerKind.ROOM]
    assert found["summary"] == f"no room now; it is next, and room is kept for it; host h1: {shortage['text']}"


def test_a_host_with_room_has_the_reason_why_the_experiment_does_not_get_it() -> None:
    running, head = ready(1, {"train": Resources(6, 64)}), ready(2, {"train": Resources(8, 64)})
    found = tell(look(h1=site(8)), running, head, ready(3, {"train": Resources(0.1, 64)}))
    assert found["hosts"][0]["text"] == "has room: what is free is kept for 2, which is next"
    busy = look(Network.HOST, h1=site(8, address="192.0.2.1", busy_ports=frozenset(PORTS)))
    assert tell(busy, ready(1, ONE_JOB))["hosts"][0]["text"] == "has room: no port is left on one of its hosts"
    members = [ready(n, ONE_JOB, set_id=1, sub=n, number=5, concurrency=1) for n in (1, 2)]
    assert tell(look(h1=site(8)), *members)["hosts"][0]["text"].startswith("has room: train.concurrency: 1 of the set")
    running = ready(1, {"train": Resources(1, 64)})
    found = tell(look(Network.BRIDGE, h1=site(3), h2=site(3)), running, ready(2, GANG))
    assert [one["text"] for one in found["hosts"]] == ["has room for any one of the jobs, not for all together"] * 2
    assert "not for all together" not in tell(look(h1=site(8)), ready(1, ONE_JOB))["summary"]


def test_hosts_that_get_no_new_jobs_are_named() -> None:
    pool = look(
        h1=replace(site(8), silent_since=START),
        h2=site(8, taking=False),
        h3=site(0.5, labels={"gpu": "t4"}),
    )
    need = Resources(cpus=1, mem=64, labels=(("gpu", "a100"),))
    found = tell(pool, ready(1, {"train": need}))
    assert [host["obstacle"] for host in found["hosts"]] == ["silent", "drained", None]
    assert found["hosts"][0]["text"] == "does not answer"
    assert [one["text"] for one in found["hosts"][2]["jobs"][0]["shortages"]] == [
        "label: needs gpu=a100, has gpu=t4",
        "cpus: needs 1, 0.5 free of 0.5",
    ]
    assert found["blockers"][0]["block"] == BlockerKind.NEVER
    none = tell(look(h1=site(8, taking=False)), ready(1, ONE_JOB))
    assert [blocker["block"] for blocker in none["blockers"]] == [BlockerKind.NO_HOST]


def test_the_gpus_that_a_host_lacks_are_named() -> None:
    devices = {"0": Gpu("0", "GPU-b", "Tesla T4", 15360)}
    pool = look(h1=site(8, "0", devices=devices), h2=site(8, "0"), h3=site(8))
    need = Resources(cpus=1, mem=64, gpus=1, gpu="a100", gpu_mem=40960)
    found = tell(pool, ready(1, {"train": need}))
    assert [host["jobs"][0]["shortages"][0]["text"] for host in found["hosts"]] == [
        "gpu: needs a100 with 40960 MiB or more, has Tesla T4 (15360 MiB)",
        "gpu: needs a100 with 40960 MiB or more, has GPUs of unknown model",
        "gpu: needs a100 with 40960 MiB or more, has no GPU",
    ]
    assert found["blockers"][0]["block"] == BlockerKind.NEVER
