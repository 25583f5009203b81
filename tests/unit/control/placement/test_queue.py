"""The order of the queue: priority, fairness between users, and backfill that never delays the head of the queue."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from riseml.base.names import HostName
from riseml.base.states import PLACED, JobDuty, Network, Reason, State
from riseml.control.observation import Observation
from riseml.control.placement.free import FreeResources
from riseml.control.placement.place import place_gangs
from riseml.control.placement.queue import make_queue
from riseml.control.placement.reserve import Reserve
from riseml.model import Experiment, Job, Owner, World
from riseml.spec.config.types import Resources
from tests.unit.control.pools import look, place_all, ready, site
from tests.unit.control.simulation import START, change_policy


def by(user: str, identity: int, priority: int = 0, **fields: object) -> Experiment:
    """A user's experiment that waits."""
    one = ready(identity, {"train": Resources(1, 64)}, owner=Owner(user, 1000, 1000))
    return replace(one, plan=change_policy(one.plan, priority=priority), **fields)  # type: ignore[arg-type]  # the fields, by name


def order(*experiments: Experiment) -> list[int]:
    """The ids as the queue has them."""
    return [experiment.id for experiment in make_queue(experiments)]


def test_first_come_first_served() -> None:
    assert order(by("paul", 1), by("paul", 2), by("paul", 3)) == [1, 2, 3]


def test_priority_goes_before_everything() -> None:
    assert order(by("paul", 1), by("paul", 2, 5), by("anna", 3), by("anna", 4, 5)) == [2, 4, 1, 3]


def test_a_thousand_experiments_do_not_starve_another_users_first_one() -> None:
    many = [by("paul", identity) for identity in range(1, 1001)]
    assert order(*many, by("anna", 1001), by("anna", 1002))[:4] == [1, 1001, 2, 1002]


def test_running_experiments_of_a_user_count() -> None:
    held = by("paul", 1, placed_at=START, state=State.RUNNING)
    assert order(held, by("paul", 2), by("anna", 3)) == [3, 2]


def test_ended_experiments_do_not_count() -> None:
    ended = by("paul", 1, placed_at=START, state=State.FINISHED)
    assert order(ended, by("paul", 2), by("anna", 3)) == [2, 3]


def test_later_experiments_do_not_make_a_turn_worse() -> None:
    later = by("paul", 3, placed_at=START, state=State.RUNNING)
    assert order(by("paul", 1), by("anna", 2), later) == [1, 2]


def test_a_set_counts_only_as_many_experiments_as_may_run() -> None:
    members = [by("paul", n, set_id=1, sub=n, concurrency=2) for n in range(1, 100)]
    others = [by("anna", n) for n in range(100, 104)]
    found = order(*members, *others, by("paul", 104))
    assert found.index(104) < found.index(103)


def test_an_experiment_that_is_next_stays_next() -> None:
    first = by("paul", 1, placed_at=START, state=State.RUNNING)
    next_one = by("paul", 2, state=State.PENDING, reason=Reason.NEXT)
    assert order(first, next_one, by("anna", 3)) == [2, 3]


def test_the_head_is_next_and_a_gang_in_its_way_waits() -> None:
    big, small = ready(2, {"train": Resources(8, 64)}), ready(3, {"train": Resources(1, 64)})
    running = place_all(look(h1=site(8)), ready(1, {"train": Resources(6, 64)}))[1]
    found = place_all(look(h1=site(8)), running, big, small)
    assert [found[n].reason for n in (2, 3)] == [Reason.NEXT, Reason.NO_ROOM]


def test_gangs_behind_the_head_get_what_it_cannot_use() -> None:
    running = place_all(look(h1=site(8)), ready(1, {"train": Resources(6, 64)}))[1]
    found = place_all(
        look(h1=site(8)), running, ready(2, {"train": Resources(6, 64)}), ready(3, {"train": Resources(2, 64)})
    )
    assert found[3].placed_at is not None, "whenever 1 ends, 6 cores are left beside it"
    pool = look(h1=site(8), h2=site(2, labels={"disk": "fast"}))
    found = place_all(pool, running, ready(2, {"train": Resources(8, 64)}), ready(3, {"train": Resources(1, 64)}))
    assert {job.host for job in found[3].jobs} == {None, "h2"}, "the head cannot use that host"


def test_of_three_free_hosts_a_head_that_needs_one_keeps_one() -> None:
    pool = look(**{f"h{n}": site(2) for n in (1, 2, 3)}, h4=site(2, labels={"disk": "fast"}))
    fast, whole = Resources(2, 64, labels=(("disk", "fast"),)), Resources(2, 64)
    running = ready(1, {"train": fast})
    head = ready(2, {"master": fast, "worker.1": whole})  # it waits for h4, and needs one of the others
    small = [ready(n, {"train": Resources(0.1, 64)}) for n in range(3, 6)]
    large = [ready(n, {"train": whole}) for n in range(6, 9)]
    found = place_all(pool, running, head, *small, *large)
    assert found[2].reason is Reason.NEXT
    assert [found[n].placed_at is not None for n in range(3, 9)] == [True, True, True, True, False, False]
    taken = {job.host for n in range(3, 9) for job in found[n].jobs} - {None}
    assert len(taken) == 2, "the third host is the head's"


def test_a_host_that_the_head_may_need_is_kept() -> None:
    pool = look(h1=site(4), h2=site(4))
    running = [ready(n, {"train": Resources(3, 64)}) for n in (1, 2)]
    found = place_all(pool, *running, ready(3, {"train": Resources(4, 64)}), ready(4, {"train": Resources(1, 64)}))
    assert found[4].placed_at is None, "either host may be free first"
    silent = replace(site(2), silent_since=START)
    found = place_all(
        look(h1=site(2), h2=site(2), h3=silent),
        ready(1, {f"worker.{n}": Resources(2, 64) for n in (1, 2, 3)}),
        ready(2, {"train": Resources(1, 64)}),
    )
    assert (found[1].reason, found[2].placed_at) == (Reason.NEXT, None), "the silent host may be back at any moment"


def test_gpus_are_kept_for_the_head_and_cores_are_not() -> None:
    pool = look(h1=site(64, "a", "b", "c", "d"))
    running = place_all(pool, ready(1, {"train": Resources(1, 64, 2)}))[1]
    head = ready(2, {"train": Resources(1, 64, 4)})
    found = place_all(
        pool, running, head, ready(3, {"train": Resources(1, 64, 1)}), ready(4, {"train": Resources(8, 64)})
    )
    assert [found[n].placed_at is None for n in (2, 3, 4)] == [True, True, False]


def test_a_gang_that_no_host_could_hold_now_blocks_no_other_gang() -> None:
    pool = look(h1=site(8), h2=site(16, taking=False))
    found = place_all(pool, ready(1, {"train": Resources(12, 64)}), ready(2, {"train": Resources(8, 64)}))
    assert found[1].reason is Reason.NO_ROOM
    assert found[2].placed_at is not None
    silent = look(h1=site(8), h2=replace(site(16), silent_since=START))
    found = place_all(silent, ready(1, {"train": Resources(12, 64)}), ready(2, {"train": Resources(8, 64)}))
    assert found[1].reason is Reason.NEXT, "it is silent, and not lost"
    assert found[2].placed_at is not None, "on a host that the head has no use for"


@dataclass
class Day:
    """Experiments with the length of their runs, on hosts that never fail."""

    seen: Observation
    lengths: dict[int, float]

    def play(self, world: World, until: int | None = None) -> dict[int, float]:
        """Return when each experiment got its place; stops once `until` has its place, or when nothing more happens."""
        begun: dict[int, float] = {}
        now = 0.0
        while True:
            world = place_gangs(world, replace(self.seen, now=START + timedelta(seconds=now)))
            for one in world.experiments:
                if one.placed_at is not None:
                    begun.setdefault(one.id, now)
            ends = sorted(
                begun[one.id] + self.lengths[one.id] for one in world.experiments if one.id in begun and _goes(one)
            )
            if not ends or (until is not None and until in begun):
                return begun
            now = ends[0]
            world = World(
                tuple(
                    _end(one) if _goes(one) and one.id in begun and begun[one.id] + self.lengths[one.id] <= now else one
                    for one in world.experiments
                )
            )


def _goes(experiment: Experiment) -> bool:
    return experiment.placed_at is not None and experiment.state is not State.FINISHED


def _end(experiment: Experiment) -> Experiment:
    jobs = tuple(replace(job, state=State.FINISHED) if job.state in PLACED else job for job in experiment.jobs)
    return replace(experiment, jobs=jobs, state=State.FINISHED)


def draw_pool(random: Random) -> Observation:
    """One to four hosts, some with devices, some connected."""
    hosts = {
        f"h{n}": site(
            random.choice([2, 4, 8]),
            *(f"g{device}" for device in range(random.choice([0, 0, 2, 4]))),
            labels={"disk": random.choice(["fast", "slow"])},
            swarm=random.choice(["s", "s", ""]),
        )
        for n in range(random.randint(1, 4))
    }
    return look(random.choice([Network.OVERLAY, Network.BRIDGE]), **hosts)


def draw_needs(random: Random) -> dict[str, Resources]:
    labels = random.choice([(), (), (), (("disk", "fast"),)])
    need = Resources(
        random.choice([0.5, 1, 2, 3, 4]), random.choice([64, 2048, 4096]), random.choice([0, 0, 1, 2]), labels
    )
    names = random.choice([("train",), ("train",), ("master", "worker.1"), ("master", "worker.1", "worker.2", "ps.1")])
    return {name: replace(need, gpus=0) if name == "ps.1" else need for name in names}


def starts_as_if_alone(seed: int) -> bool:
    """Return True when the head starts at the same moment as it would start without any experiment after it."""
    random = Random(seed)
    pool = draw_pool(random)
    experiments = [ready(n, draw_needs(random)) for n in range(1, random.randint(4, 14))]
    lengths = {one.id: float(random.choice([1, 2, 3, 5, 8, 13])) for one in experiments}
    first = place_gangs(World(tuple(experiments)), pool)
    head = next((one for one in first.experiments if one.reason is Reason.NEXT), None)
    if head is None:
        return True
    alone = World(tuple(one for one in experiments if one.id <= head.id))
    day = Day(pool, lengths)
    return day.play(World(tuple(experiments)), head.id).get(head.id) == day.play(alone, head.id).get(head.id)


@settings(max_examples=400, deadline=None)
@given(seed=st.integers(0, 10**9))
def test_backfill_never_delays_the_head(seed: int) -> None:
    assert starts_as_if_alone(seed)


def _all(reserve: Reserve, name: HostName, free: FreeResources) -> FreeResources:
    return free


def _half(reserve: Reserve, name: HostName, free: FreeResources) -> FreeResources:
    return FreeResources(free.cpus / 2, free.mem // 2, free.gpus[: len(free.gpus) // 2])


@pytest.mark.parametrize("spare", [_all, _half])
def test_a_reserve_that_keeps_too_little_is_caught(monkeypatch: pytest.MonkeyPatch, spare: object) -> None:
    monkeypatch.setattr(Reserve, "compute_surplus", spare)
    assert not all(starts_as_if_alone(seed) for seed in range(400))


def test_gangs_behind_the_head_do_start() -> None:
    """A reserve that kept everything for the head would pass the other tests, too."""
    used = 0
    for seed in range(200):
        random = Random(seed)
        pool = draw_pool(random)
        first = place_gangs(World(tuple(ready(n, draw_needs(random)) for n in range(1, 14))), pool)
        head = next((one.id for one in first.experiments if one.reason is Reason.NEXT), 99)
        used += any(one.placed_at is not None for one in first.experiments if one.id > head)
    assert used > 30


@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 10**9))
def test_every_experiment_that_the_pool_could_hold_runs(seed: int) -> None:
    """There is no starvation and no deadlock: every experiment runs that the empty pool could hold."""
    random = Random(seed)
    pool = draw_pool(random)
    experiments = tuple(
        replace(ready(n, draw_needs(random)), owner=Owner(random.choice("abc"), 1, 1)) for n in range(1, 20)
    )
    possible = {one.id for one in experiments if place_all(pool, one)[one.id].placed_at is not None}
    begun = Day(pool, {one.id: float(random.randint(1, 9)) for one in experiments}).play(World(experiments))
    assert set(begun) == possible


@pytest.mark.parametrize("hosts", [1, 2, 5])
def test_two_gangs_that_each_need_most_of_the_pool_run_one_after_the_other(hosts: int) -> None:
    pool = look(**{f"h{n}": site(10) for n in range(hosts)})
    needs = {name: Resources(3, 64) for name in [f"worker.{n}" for n in range(2 * hosts)]}
    begun = Day(pool, {1: 5.0, 2: 7.0}).play(World((ready(1, needs), ready(2, needs))))
    assert begun == {1: 0.0, 2: 5.0}


def test_many_equal_gangs_are_placed_in_order() -> None:
    pool = look(**{f"h{n}": site(4) for n in range(10)})
    experiments = [ready(n, {"train": Resources(2, 64)}) for n in range(1, 3000)]
    found = place_all(pool, *experiments)
    assert [one.id for one in found.values() if one.placed_at is not None] == list(range(1, 21))
    assert {one.reason for one in found.values()} == {Reason.PLACED, Reason.NEXT, Reason.NO_ROOM}
    assert sum(one.reason is Reason.NEXT for one in found.values()) == 1


def test_the_room_of_a_gang_that_comes_back_is_kept() -> None:
    """An experiment gives its place up and takes another one in the next pass; no other one takes the room."""
    again = ready(1, {"train": Resources(8, 64)}, state=State.PENDING, reason=Reason.RETRY)
    small = ready(2, {"train": Resources(1, 64)})
    found = place_gangs(World((again, small)), look(h1=site(8)), frozenset({1})).experiments
    assert (found[0].reason, found[1].placed_at) == (Reason.RETRY, None)


def jobs_of(experiment: Experiment) -> list[Job]:
    return [job for job in experiment.jobs if job.part is not JobDuty.PREPARES]


def test_no_device_is_given_to_two_jobs() -> None:
    pool = look(h1=site(64, *"abcdefgh"))
    found = place_all(pool, *(ready(n, {"train": Resources(1, 64, 3)}) for n in range(1, 6)))
    devices = [gpu for one in found.values() for job in jobs_of(one) for gpu in job.gpus]
    assert len(devices) == len(set(devices)) == 6
