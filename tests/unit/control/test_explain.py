"""`explain` says why an experiment waits, or why its jobs run where they run."""

from __future__ import annotations

from dataclasses import replace

from riseml.base.states import Network, Reason, State
from riseml.control.actions import ReleaseHost
from riseml.control.explain import BlockerKind, explain_experiment, explain_queue, list_concerned_hosts
from riseml.control.observation import Observation
from riseml.control.placement.addresses import PORTS
from riseml.control.placement.place import place_gangs
from riseml.model import Experiment, Gpu, Owner, World
from riseml.spec.config.types import Resources
from riseml.wire.explanations import ExplanationView
from tests.unit.control.pools import GANG, GPU, H1, ONE, look, ready, site
from tests.unit.control.simulation import START, make_experiment, make_plan


def tell(seen: Observation, *experiments: Experiment) -> ExplanationView:
    """Return the explanation of the last experiment, after one placement pass over all of them."""
    world = place_gangs(World(experiments), seen)
    return explain_experiment(world, seen, world.experiments[-1])


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


def test_experiments_ahead_and_what_is_kept_for_them_are_named() -> None:
    running = ready(1, {"train": Resources(6, 64)})
    head, small = ready(2, {"train": Resources(8, 64)}), ready(3, ONE_JOB)
    found = tell(look(h1=site(8)), running, head, small)
    assert found["queue"] == {"position": 2, "length": 2, "ahead": ["2"]}
    assert [(blocker["block"], blocker["by"]) for blocker in found["blockers"]] == [(BlockerKind.RESERVED, ["2"])]
    assert found["summary"] == "what is free is kept for 2, which is next"
    assert found["hosts"][0]["jobs"][0]["shortages"] == []
    found = tell(look(h1=site(8)), running, head, ready(3, {"train": Resources(4, 8150)}))
    assert found["blockers"][0]["by"] == ["2"]
    assert found["summary"] == (
        "no room now, and 2 is next before it; host h1: cpus: needs 4, 2 free of 8 (held by 1), "
        "mem: needs 8150 MiB, 8128 MiB free of 8192 MiB (held by 1)"
    )


ONE_JOB = {"train": ONE}


def test_the_hosts_that_matter_to_an_experiment_are_those_of_its_build_and_those_that_could_hold_one_of_its_jobs() -> (
    None
):
    pool = look(h1=site(8), h2=site(64, "a", "b"), h3=site(64, "a", taking=False), h4=site(2))
    waiting = ready(1, {"train": GPU})
    assert list_concerned_hosts(waiting, pool) == {"h2"}
    made_elsewhere = replace(waiting, jobs=(*(replace(job, host=H1) for job in (waiting.build,) if job), *waiting.gang))
    assert list_concerned_hosts(made_elsewhere, pool) == {"h1", "h2"}
    placed = replace(waiting, placed_at=START, jobs=tuple(replace(job, host=H1) for job in waiting.jobs))
    assert list_concerned_hosts(placed, pool) == {"h1"}


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


def test_sets_subnets_ports_and_clearing_hosts_can_block() -> None:
    members = [ready(n, ONE_JOB, set_id=1, sub=n, number=5, concurrency=1) for n in (1, 2)]
    found = tell(look(h1=site(8)), *members)
    assert [(one["block"], one["by"]) for one in found["blockers"]] == [(BlockerKind.CONCURRENCY, ["5.1"])]
    assert found["summary"] == "train.concurrency: 1 of the set at the same time (5.1 now)"
    pool = replace(look(h1=site(8)), subnets="10.213.0.0/26")
    found = tell(pool, ready(1, ONE_JOB), ready(2, ONE_JOB))
    assert [one["block"] for one in found["blockers"]] == [BlockerKind.SUBNETS]
    busy = look(Network.HOST, h1=site(8, address="192.0.2.1", busy_ports=frozenset(PORTS)))
    assert [one["block"] for one in tell(busy, ready(1, ONE_JOB))["blockers"]] == [BlockerKind.PORTS]
    both = {name: site(3, address="192.0.2.1", busy_ports=frozenset(PORTS)) for name in ("h1", "h2")}
    spread = tell(look(Network.HOST, **both), ready(1, GANG))
    assert [one["block"] for one in spread["blockers"]] == [BlockerKind.PORTS], "on several hosts, too"
    clearing = replace(look(h1=site(8)), busy=frozenset({ReleaseHost(H1, 1)}))
    assert [one["block"] for one in tell(clearing, ready(1, ONE_JOB))["blockers"]] == [BlockerKind.TURN]


def test_an_experiment_whose_last_place_is_still_cleared_keeps_its_room() -> None:
    whole = {"train": Resources(8, 64)}
    clearing = replace(look(h1=site(8)), busy=frozenset({ReleaseHost(H1, 1)}))
    found = tell(clearing, ready(1, whole), ready(2, whole))
    assert [(one["block"], one["by"]) for one in found["blockers"]] == [(BlockerKind.RESERVED, ["1"])], (
        "as the pass decided"
    )


def test_hosts_that_are_not_connected_block_a_gang() -> None:
    pool = look(h1=site(6, swarm=""), h2=site(3, swarm=""))
    found = tell(pool, ready(1, {"train": Resources(5, 64)}), ready(2, GANG))
    assert [one["block"] for one in found["blockers"]] == [BlockerKind.NETWORK]


def test_the_place_of_a_running_experiment_is_explained() -> None:
    needs = {"master": GPU, "worker.1": GPU, "worker.2": GPU, "ps.1": ONE}
    pool = look(h1=site(4, "a", "b"), h2=site(4, "c", "d"), h3=site(16))
    found = tell(pool, ready(1, needs))
    assert (found["phase"], found["network"], found["network_host"]) == ("placed", "overlay", "h1")
    ps = next(job for job in found["jobs"] if job["job"] == "ps.1")
    assert ps["why"].startswith("next to ")
    assert "so that it needs no separate host" in ps["why"]
    assert "h3" in ps["alternatives"]
    assert found["summary"].endswith("it is spread over h1, h2")
    alone = tell(pool, ready(1, ONE_JOB))
    assert alone["jobs"][0]["why"] == (
        "of the hosts with room, this one has the least left; hosts with GPUs stay free for jobs that need GPUs"
    )
    assert alone["jobs"][0]["alternatives"] == ["h1", "h2"]
    plain = tell(look(h1=site(4), h2=site(16)), ready(1, ONE_JOB))
    assert plain["jobs"][0]["why"] == "of the hosts with room, this one has the least left"


def test_an_experiment_before_its_queue_and_one_after_its_end_are_explained() -> None:
    pool = look(h1=site(8))
    fresh = make_experiment(1, make_plan("train"))
    assert explain_experiment(World((fresh,)), pool, fresh)["phase"] == "prepares"
    over = replace(fresh, state=State.FAILED, reason=Reason.EXIT_CODE, message="exit code 3")
    found = explain_experiment(World(()), pool, over)
    assert found["phase"] == "ended"
    assert found["summary"] == "Ended with an exit code other than 0 (exit code 3)"


def test_the_whole_queue_is_explained_as_each_of_its_experiments_is() -> None:
    running = ready(1, {"train": Resources(6, 64)})
    waiting = [ready(at, {"train": Resources(8 if at % 3 else 1, 64)}) for at in range(2, 9)]
    seen = look(h1=site(8), h2=site(4))
    world = place_gangs(World((running, *waiting)), seen)
    found = tuple(explain_queue(world, seen, 100))
    assert len(found) > 3
    assert found == tuple((waiting, explain_experiment(world, seen, waiting)) for waiting, _ in found)
    assert tuple(explain_queue(world, seen, 2)) == found[:2]
