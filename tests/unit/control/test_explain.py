"""`explain` says why an experiment waits, or why its jobs run where they run."""

from __future__ import annotations

from dataclasses import replace

from riseml.base.names import JobName
from riseml.base.states import Network, Reason, State
from riseml.control.actions import ReleaseHost
from riseml.control.explain import BlockerKind, explain_experiment, explain_queue, list_concerned_hosts
from riseml.control.placement.addresses import PORTS
from riseml.control.placement.place import place_gangs
from riseml.model import Capacity, JobKey, World
from riseml.spec.config.types import Resources
from tests.unit.control.pools import GANG, GPU, H1, ONE, ONE_JOB, look, ready, site, tell
from tests.unit.control.simulation import START, make_experiment, make_plan, make_simulation


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


def test_sets_subnets_ports_and_clearing_hosts_can_block() -> None:
    members = [ready(n, ONE_JOB, set_id=1, sub=n, number=5, concurrency=1) for n in (1, 2)]
    found = tell(look(h1=site(8)), *members)
    assert [(one["block"], one["by"]) for one in found["blockers"]] == [(BlockerKind.CONCURRENCY, ["5.1"])]
    assert found["summary"] == "train.concurrency: 1 of the set at the same time (5.1 now)"
    found = tell(look(h1=site(8)), replace(members[1], paused=True))
    assert found["summary"] == "its set is paused; `riseml search 5 --resume` lets it go on"
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
