"""Searches and their trials: each change is made once, and one that comes too late does nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest
import sqlalchemy as sa

from riseml.analysis.ranking import find_objective
from riseml.base.errors import Refused
from riseml.base.states import Wanted
from riseml.model import MOST_TRIALS, SearchEnd, TrialOutcome
from riseml.planning.plan import first_jobs
from riseml.planning.trial_plan import plan_trial
from riseml.spec.config.types import ValueKind, ValueRule
from riseml.store.database import Database
from riseml.store.marks import KeptOutputs
from riseml.store.schema import experiments, sets
from riseml.store.searches import NewTrial, SetChange, ToldTrial
from tests.support.searches import LR, NOW, SearchRig, make_search


@pytest.fixture
def rig(database: Database) -> SearchRig:
    """A set with a search of three trials, of which the first is made."""
    return SearchRig(database, make_search(trials=3), (LR,))


def make_trial(rig: SearchRig, number: int) -> NewTrial:
    plan = plan_trial(rig.searches.load_templates(rig.set_id), (("lr", f"1e-{number}"),))
    return NewTrial(number, plan, first_jobs(plan), number - 1, number)


def test_a_trial_is_added_once_and_in_its_turn(rig: SearchRig) -> None:
    assert rig.searches.add_trial(rig.set_id, make_trial(rig, 3), NOW) is None, "the second one comes first"
    added = rig.searches.add_trial(rig.set_id, make_trial(rig, 2), NOW)
    assert rig.searches.add_trial(rig.set_id, make_trial(rig, 2), NOW) is None
    assert rig.searches.list_members(rig.set_id)[1:] == (added,)
    trial = rig.trial(2)
    assert (trial.point, trial.asked_after, trial.outcome) == ((("lr", "1e-2"),), 1, None)
    assert rig.searches.add_trial(rig.set_id, make_trial(rig, 3), NOW) is not None
    assert rig.searches.add_trial(rig.set_id, make_trial(rig, 4), NOW) is None, "the search has three"


def test_a_trial_of_a_kept_set_is_kept(rig: SearchRig, database: Database) -> None:
    kept = KeptOutputs(database)
    kept.keep(rig.searches.list_members(rig.set_id), NOW)
    added = rig.searches.add_trial(rig.set_id, make_trial(rig, 2), NOW)
    assert added in kept.load_kept()


def test_a_result_is_stored_once_and_in_the_order_of_its_coming(rig: SearchRig) -> None:
    rig.searches.add_trial(rig.set_id, make_trial(rig, 2), NOW)
    assert rig.searches.tell_trial(rig.set_id, ToldTrial(2, TrialOutcome.COMPLETE, 0.5))
    assert rig.searches.tell_trial(rig.set_id, ToldTrial(1, TrialOutcome.FAILED, message="exit code 1"))
    assert not rig.searches.tell_trial(rig.set_id, ToldTrial(2, TrialOutcome.COMPLETE, 0.9))
    first, second = rig.record().trials
    assert (second.value, second.told, first.outcome, first.told) == (0.5, 1, TrialOutcome.FAILED, 2)
    assert not rig.searches.note_reached(rig.set_id, 2, [(1, 0.1)], stops=False), "it has ended"


def test_the_values_of_several_objectives_are_stored(rig: SearchRig) -> None:
    assert rig.trial(1).values == ()
    assert rig.searches.tell_trial(rig.set_id, ToldTrial(1, TrialOutcome.COMPLETE, 1 / 3, values=(1 / 3, 7.0)))
    assert (rig.trial(1).value, rig.trial(1).values) == (1 / 3, (1 / 3, 7.0))


def test_a_trial_that_stops_stops_its_experiment_once(rig: SearchRig, database: Database) -> None:
    assert rig.searches.note_reached(rig.set_id, 1, [(1, 0.1)], stops=False)
    assert rig.searches.note_reached(rig.set_id, 1, [(1, 0.1), (2, 1 / 3)], stops=True)
    assert not rig.searches.note_reached(rig.set_id, 1, [], stops=True)
    trial = rig.trial(1)
    assert (trial.stopped, trial.reached) == (True, ((1, 0.1), (2, 1 / 3)))
    with database.read_transaction() as connection:
        wanted = connection.execute(sa.select(experiments.c.wanted).where(experiments.c.id == trial.experiment))
        assert wanted.scalar() == Wanted.STOP.value


def test_an_end_that_was_decided_before_a_change_is_not_stored(rig: SearchRig, database: Database) -> None:
    decided = rig.record()
    rig.searches.continue_search(rig.set_id, 2, (("TOKEN", "sealed"),))
    assert rig.record().most_trials == 5
    assert not rig.searches.end_search(decided, SearchEnd.COMPLETED)
    assert rig.searches.goes_on(rig.set_id)
    assert rig.searches.end_search(rig.record(), SearchEnd.COMPLETED)
    assert not rig.searches.end_search(rig.record(), SearchEnd.COMPLETED)
    with database.read_transaction() as connection:
        assert connection.execute(sa.select(sets.c.environment)).scalar() is None, "the variables may be secrets"
    assert (rig.searches.load_open(), rig.searches.count_open()) == ((), 0)
    assert rig.searches.has_search(rig.set_id)


def test_further_trials_begin_after_those_that_were_made(rig: SearchRig) -> None:
    assert rig.searches.end_search(rig.record(), SearchEnd.COMPLETED)
    rig.searches.continue_search(rig.set_id, 4, ())
    assert (rig.record().most_trials, rig.record().end) == (5, None)
    with pytest.raises(Refused, match="has 5 trials with those to come"):
        rig.searches.continue_search(rig.set_id, MOST_TRIALS - 4, ())


def test_a_search_that_the_user_has_ended_makes_no_trial(rig: SearchRig) -> None:
    assert rig.searches.request_end(rig.set_id)
    assert not rig.searches.request_end(rig.set_id)
    assert rig.searches.add_trial(rig.set_id, make_trial(rig, 2), NOW) is None
    assert rig.record().wanted is Wanted.KILL
    rig.searches.continue_search(rig.set_id, 1, ())
    assert rig.record().wanted is Wanted.RUN, "the user wants more of it"


def test_only_sets_with_a_search_are_loaded(rig: SearchRig) -> None:
    assert rig.searches.load_searches([rig.set_id, 99]) == {rig.set_id: rig.record()}
    assert rig.searches.load_plans([rig.set_id, 99]) == {rig.set_id: rig.record().plan}
    assert not rig.searches.has_search(99)


def test_values_of_trials_are_those_of_their_own_objective(rig: SearchRig) -> None:
    rig.searches.add_trial(rig.set_id, make_trial(rig, 2), NOW)
    rig.searches.add_trial(rig.set_id, make_trial(rig, 3), NOW)
    rig.searches.tell_trial(rig.set_id, ToldTrial(1, TrialOutcome.COMPLETE, 0.5))
    rig.searches.tell_trial(rig.set_id, ToldTrial(2, TrialOutcome.FAILED, message="exit code 1"))
    first = rig.trial(1).experiment
    objective = find_objective(rig.record().plan.search)
    assert rig.searches.load_values([rig.set_id, 99], objective) == {first: 0.5}
    other = replace(objective, rule=ValueRule(ValueKind.LAST))
    assert rig.searches.load_values([rig.set_id], other) == {}


def test_further_trials_are_points_and_a_set_has_at_most_so_many_runs(database: Database) -> None:
    rig = SearchRig(database, make_search(trials=1), (LR,), seeds=("1", "2", "3", "4"))
    rig.loop.run_pass()
    for number in range(1, 5):
        rig.report(number, 0.5)
        rig.end(number)
        rig.loop.run_pass()
    assert (rig.record().end, len(rig.record().trials)) == (SearchEnd.COMPLETED, 4)
    rig.searches.continue_search(rig.set_id, 2, ())
    assert rig.record().most_trials == 3, "one point was made, and two follow"
    with pytest.raises(Refused, match="has 3 trials with 4 runs each with those to come"):
        rig.searches.continue_search(rig.set_id, MOST_TRIALS // 4 - 2, ())


def test_a_paused_search_makes_no_trial_until_it_is_resumed(rig: SearchRig) -> None:
    for paused in (True, True, False, False):
        version = rig.experiments.load_world().experiments[0].version
        rig.searches.change_set(rig.set_id, SetChange(paused=paused))
        (first,) = rig.experiments.load_world().experiments
        assert (rig.record().paused, first.paused, first.version) == (paused, paused, version + 1)
        if paused:
            assert rig.searches.add_trial(rig.set_id, make_trial(rig, 2), NOW) is None
    assert rig.searches.add_trial(rig.set_id, make_trial(rig, 2), NOW) is not None


def test_another_concurrency_reaches_the_loop(rig: SearchRig) -> None:
    assert rig.experiments.load_world().experiments[0].concurrency == 1
    rig.searches.change_set(rig.set_id, SetChange(concurrency=4))
    assert rig.experiments.load_world().experiments[0].concurrency == 4
    assert (rig.record().concurrency, rig.record().paused) == (4, False)


def test_a_stop_ends_what_has_not_begun_and_nothing_else(rig: SearchRig) -> None:
    rig.searches.add_trial(rig.set_id, make_trial(rig, 2), NOW)
    rig.place(1)
    for _ in range(2):
        rig.searches.change_set(rig.set_id, SetChange(stop=True))
    assert [experiment.wanted for experiment in rig.experiments.load_world().experiments] == [Wanted.RUN, Wanted.KILL]
    assert (rig.record().wanted, rig.searches.load_wanted(rig.set_id)) == (Wanted.STOP, Wanted.STOP)
    assert rig.searches.add_trial(rig.set_id, make_trial(rig, 3), NOW) is None
    rig.searches.continue_search(rig.set_id, 2, ())
    assert (rig.record().wanted, rig.record().most_trials) == (Wanted.RUN, 4), "two made, and two more"
    rig.searches.request_end(rig.set_id)
    rig.searches.change_set(rig.set_id, SetChange(stop=True))
    assert rig.record().wanted is Wanted.KILL, "a stop takes no kill back"


def test_trials_with_results_are_read_once(rig: SearchRig) -> None:
    rig.searches.add_trial(rig.set_id, make_trial(rig, 2), NOW)
    rig.end(1)
    assert rig.searches.load_open() == (rig.record(),)
    rig.searches.tell_trial(rig.set_id, ToldTrial(1, TrialOutcome.COMPLETE, 0.5))
    (first,) = rig.searches.load_open()
    rig.searches.add_trial(rig.set_id, make_trial(rig, 3), NOW)
    rig.place(2)
    (second,) = rig.searches.load_open()
    assert second == rig.record()
    assert [second.trials[index] is first.trials[index] for index in (0, 1)] == [True, False]
    other = SearchRig(rig.database, make_search(trials=2), (LR,))
    assert rig.searches.load_open() == (rig.record(), other.record())
