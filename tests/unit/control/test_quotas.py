"""Quotas hold experiments back, and say which one holds and when it frees; users are compared by their hours."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from riseml.base.states import Reason, State
from riseml.control.explain import explain_experiment
from riseml.control.observation import Observation
from riseml.control.placement.place import place_gangs
from riseml.control.placement.queue import make_queue
from riseml.control.quotas import Account, AccountKind, OwnQuota, QuotaRules, QuotaTable
from riseml.control.usage import PlaceSpan, UsageTally, count_decayed_hours
from riseml.model import Experiment, Owner, World
from riseml.spec.config.types import Resources
from riseml.spec.server.types import NO_LIMITS, QuotaDefaults, QuotaLimits
from tests.unit.control.pools import look, ready, site
from tests.unit.control.simulation import START, change_policy

DAY = 86400.0
WEEK = 7 * DAY


def by(user: str, identity: int, gpus: int = 1, **fields: object) -> Experiment:
    """An experiment of a user; `priority` and `max_duration` are of its plan."""
    policy = {name: fields.pop(name) for name in ("priority", "max_duration") if name in fields}
    made = ready(identity, {"train": Resources(1, 64, gpus)}, owner=Owner(user, 2000, 2000))
    return replace(made, plan=change_policy(made.plan, **policy), **fields)  # type: ignore[arg-type]  # by name


def team(default: QuotaLimits = NO_LIMITS, **own: OwnQuota) -> QuotaRules:
    """Rules with these quotas of users; a name that begins with `project_` is a project's."""
    kinds = {
        Account(AccountKind.PROJECT, name.removeprefix("project_"))
        if name.startswith("project_")
        else Account(AccountKind.USER, name): quota
        for name, quota in own.items()
    }
    return QuotaRules(QuotaTable(QuotaDefaults(user=default), kinds))


def pool(rules: QuotaRules | None, gpus: str = "abcdefgh") -> Observation:
    return replace(look(h1=site(64, *gpus)), team=rules)


def place(seen: Observation, *experiments: Experiment) -> dict[int, tuple[Reason, str]]:
    """The reason and the message of each after one pass."""
    after = place_gangs(World(experiments), seen).experiments
    return {one.id: (one.reason, one.message) for one in after}


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({"gpus": 2}, "paul may use 2 GPUs at the same time"),
        ({"running": 1}, "paul may run 1 experiment at the same time"),
        ({"cpus": 1.5}, "paul may use 1.5 cores at the same time"),
        ({"mem": 100}, "paul may use 100 MiB at the same time"),
    ],
)
def test_an_experiment_above_a_quota_waits_and_others_go_on(limits: dict[str, float | None], message: str) -> None:
    reasons = place(
        pool(team(paul=OwnQuota(limits))), by("paul", 1, 2), by("paul", 2), by("anna", 3, 2), by("anna", 4, 2)
    )
    assert reasons[1][0] is Reason.PLACED
    assert reasons[2] == (Reason.QUOTA, message)
    assert [reasons[identity][0] for identity in (3, 4)] == [Reason.PLACED, Reason.PLACED]


def test_a_project_has_a_quota_and_none_lifts_a_default() -> None:
    rules = team(QuotaLimits(gpus=1), anna=OwnQuota({"gpus": None}), project_vision=OwnQuota({"gpus": 3}))
    both = [by("anna", n, 2, team_project="vision") for n in (1, 2)]
    reasons = place(pool(rules), *both, by("anna", 3, 2), by("paul", 4, 2), by("paul", 5))
    assert reasons[1][0] is Reason.PLACED
    assert reasons[2] == (Reason.QUOTA, "the project vision may use 3 GPUs at the same time")
    assert reasons[3][0] is Reason.PLACED
    assert reasons[4] == (Reason.QUOTA, "paul may use 1 GPU at the same time")
    assert reasons[5][0] is Reason.PLACED


def test_reasons_stay_when_the_pool_has_no_room() -> None:
    """Each pass without room would save a new reason for each experiment of a long queue otherwise."""
    rules = team(paul=OwnQuota({"gpus": 2}))
    many = [by("paul", n, state=State.PENDING, reason=Reason.QUOTA) for n in range(2, 20)]
    reasons = place(pool(rules, "a"), by("anna", 1), *many)
    assert [reasons[n][0] for n in range(2, 20)] == [Reason.NEXT, Reason.NO_ROOM, *[Reason.QUOTA] * 16]


def test_an_experiment_that_borrows_is_not_held_and_does_not_count() -> None:
    rules = team(QuotaLimits(gpus=1))
    reasons = place(pool(rules), *(by("paul", n, priority=-1) for n in (1, 2)), by("paul", 3), by("paul", 4))
    assert [reason for reason, _ in reasons.values()] == [Reason.PLACED, Reason.PLACED, Reason.PLACED, Reason.QUOTA]


def test_an_experiment_that_borrows_waits_for_others_and_a_quota_of_none_at_all_holds_it() -> None:
    rules = team(anna=OwnQuota({"gpus": 0}))
    running = by("paul", 1, 2, priority=-1)
    reasons = place(pool(rules, "abc"), running, by("carl", 2, 3), by("paul", 3, priority=-1))
    assert reasons[2][0] is Reason.PLACED
    held = place(
        pool(rules, "ab"), *_after(pool(rules, "ab"), running), by("carl", 2, 2), by("paul", 3, 0, priority=-1)
    )
    assert held[1][0] is Reason.PLACED, "what runs is not stopped"
    assert held[2][0] is Reason.NEXT
    assert held[3] == (Reason.QUOTA, "its priority is below 0, and an experiment of another user waits for room")
    assert place(pool(rules), by("anna", 1, priority=-1))[1] == (
        Reason.QUOTA,
        "anna may use 0 GPUs at the same time",
    )


def _after(seen: Observation, *experiments: Experiment) -> tuple[Experiment, ...]:
    return place_gangs(World(experiments), seen).experiments


@pytest.mark.parametrize(
    ("limits", "need", "summary"),
    [
        ({"gpus": 4}, 2, "paul uses 4 of 4 GPUs; experiment 1 ends within 2 h (max_duration), which frees enough"),
        ({"gpus": 4}, 3, "paul uses 4 of 4 GPUs; it can start when enough of 1, 2 have ended"),
        ({"running": 2}, 1, "paul runs 2 of 2 experiments; experiment 1 ends within 2 h (max_duration), which frees"),
        ({"gpus": 4}, 5, "paul uses 4 of 4 GPUs; it needs 5 GPUs and can never start"),
    ],
)
def test_explain_says_which_quota_holds_and_when_it_frees(
    limits: dict[str, float | None], need: int, summary: str
) -> None:
    seen = pool(team(paul=OwnQuota(limits)))
    begun = _after(seen, by("paul", 1, 2, max_duration=7200.0, started_at=START), by("paul", 2, 2))
    last = by("paul", 3, need)
    told = explain_experiment(World((*begun, last)), seen, last)
    assert told["summary"].startswith(summary)
    assert [(one["block"], one["by"]) for one in told["blockers"]] == [("quota", ["1", "2"])]


def test_explain_names_what_must_end_when_no_time_is_known() -> None:
    seen = pool(team(paul=OwnQuota({"gpus": 2})))
    begun = _after(seen, by("paul", 1), by("paul", 2))
    last = by("paul", 3)
    told = explain_experiment(World((*begun, last)), seen, last)
    assert told["summary"] == "paul uses 2 of 2 GPUs; it can start when one of 1, 2 ends"


def test_an_hour_counts_half_after_the_half_life() -> None:
    hour = PlaceSpan(START - timedelta(hours=1), START, 2, 16.0)
    assert count_decayed_hours(hour, START, WEEK) == pytest.approx(2.0, rel=0.01)
    assert count_decayed_hours(hour, START + timedelta(days=7), WEEK) == pytest.approx(1.0, rel=0.01)
    cores = replace(hour, gpus=0)
    assert count_decayed_hours(cores, START, WEEK) == pytest.approx(2.0, rel=0.01), "eight cores are one GPU"


@given(
    spans=st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 500), st.integers(0, 90)), max_size=12),
    cuts=st.lists(st.integers(0, 600), max_size=5),
)
def test_a_tally_is_the_sum_of_its_spans_whenever_it_is_read(
    spans: list[tuple[str, int, int]], cuts: list[int]
) -> None:
    """A server that was killed and reads all spans again comes to the same hours as one that added them one by one."""
    made = [
        (end, user, PlaceSpan(START + timedelta(hours=end - length), START + timedelta(hours=end), 1, 1.0))
        for user, end, length in sorted(spans, key=lambda span: span[1])
    ]
    last = START + timedelta(hours=700)
    tally = UsageTally(WEEK, START)
    for end, user, span in made:
        moment = START + timedelta(hours=end)
        for cut in [cut for cut in cuts if cut <= end]:
            tally.move_to(START + timedelta(hours=cut))
        tally.move_to(moment)
        tally.add(user, span)
    anew = UsageTally(WEEK, last, ((user, span) for _, user, span in made))
    assert tally.count((), last) == pytest.approx(anew.count((), last))


def test_users_with_fewer_hours_come_first_and_a_flood_gains_nothing() -> None:
    flood = [by("paul", n) for n in range(1, 5)]
    rules = replace(team(), usage={"anna": 2.5})
    order = [one.id for one in make_queue([*flood, by("anna", 5), by("carl", 6)], rules)]
    assert order == [1, 6, 2, 3, 5, 4]


def test_a_weight_makes_the_hours_of_a_project_count_less() -> None:
    rules = replace(team(project_vision=OwnQuota(weight=4.0)), usage={"anna": 10.0, "paul": 3.0})
    waiting = [by("paul", 1), by("anna", 2), by("anna", 3, team_project="vision")]
    assert [one.id for one in make_queue(waiting, rules)] == [3, 1, 2]


@given(
    drawn=st.lists(
        st.tuples(st.sampled_from([0, 0, 1, 5, -1]), st.integers(0, 4), st.booleans(), st.sampled_from([None, 1, 2])),
        max_size=14,
    ),
    hours=st.floats(0, 1e4),
)
def test_the_order_of_one_user_is_the_same_on_a_teams_server(
    drawn: list[tuple[int, int, bool, int | None]], hours: float
) -> None:
    experiments = [
        by(
            "paul",
            n,
            gpus,
            priority=priority,
            set_id=set_id,
            concurrency=2,
            placed_at=START if runs else None,
            state=State.RUNNING if runs else State.CREATED,
        )
        for n, (priority, gpus, runs, set_id) in enumerate(drawn, start=1)
    ]
    assert make_queue(experiments, replace(team(), usage={"paul": hours})) == make_queue(experiments)
