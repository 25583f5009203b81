"""Room is kept for the head of the queue: backfill never delays it."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from riseml.base.names import HostName
from riseml.base.states import Reason
from riseml.control.placement.free import FreeResources
from riseml.control.placement.place import place_gangs
from riseml.control.placement.reserve import Reserve
from riseml.model import World
from riseml.spec.config.types import Resources
from tests.unit.control.placement.days import Day, draw_needs, draw_pool
from tests.unit.control.pools import look, place_all, ready, site
from tests.unit.control.simulation import START


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
