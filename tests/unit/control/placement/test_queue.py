"""The order of the queue: priority, fairness between users, and backfill that never delays the head of the queue."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from riseml.base.states import JobDuty, Reason, State
from riseml.control.placement import queue
from riseml.control.placement.place import place_gangs
from riseml.control.placement.queue import QueueProgress, make_queue
from riseml.model import Experiment, Job, Owner, World
from riseml.spec.config.types import Resources
from tests.unit.control.placement.days import Day, draw_needs, draw_pool
from tests.unit.control.pools import ONE, look, place_all, ready, site
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


@pytest.mark.parametrize("taken", [0, 1], ids=["room for one", "no room"])
def test_a_set_without_room_does_not_change_the_reasons_of_its_later_experiments(taken: int) -> None:
    """They wait for others of the set in any case; each pass without room would save a new reason for all of them."""
    members = [by("paul", n, set_id=1, sub=n, concurrency=2) for n in range(11, 20)]
    others = place_all(look(h1=site(1)), *[by("anna", 1)] * taken).values()
    found = place_all(look(h1=site(1)), *others, *members)
    first = [Reason.NEXT, Reason.NO_ROOM] if taken else [Reason.PLACED, Reason.NEXT]
    assert [found[member.id].reason for member in members] == [*first, *[Reason.CONCURRENCY] * 7]


def test_an_experiment_that_is_next_stays_next() -> None:
    first = by("paul", 1, placed_at=START, state=State.RUNNING)
    next_one = by("paul", 2, state=State.PENDING, reason=Reason.NEXT)
    assert order(first, next_one, by("anna", 3)) == [2, 3]


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


def test_a_gang_that_did_not_fit_is_not_tried_again() -> None:
    progress = QueueProgress(())
    needs = (ONE,)
    assert progress.may_try(needs, behind_head=False)
    progress.note_miss(needs)
    assert not progress.may_try(needs, behind_head=False)
    assert progress.may_try((ONE, ONE), behind_head=False)


def test_only_tries_behind_the_head_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue, "_MOST_TRIES", 3)
    progress = QueueProgress(())
    assert all(progress.may_try((ONE,), behind_head=False) for _ in range(10))
    assert [progress.may_try((ONE,), behind_head=True) for _ in range(4)] == [True, True, True, False]
    assert progress.is_over


def test_many_different_gangs_that_do_not_fit_end_the_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue, "_MOST_MISSES", 2)
    progress = QueueProgress(())
    for cores in (1, 2, 3):
        progress.note_miss((Resources(cores, 64),))
    assert not progress.may_try((ONE, ONE), behind_head=True)
