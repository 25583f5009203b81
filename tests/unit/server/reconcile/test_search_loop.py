"""The loop of searches: it makes trials when there is room, reports each once, and makes none twice after a crash."""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
import sqlalchemy as sa
from hypothesis import given, settings
from hypothesis import strategies as st

from riseml.base.errors import Refused, StoreError
from riseml.base.states import Reason, State, Wanted
from riseml.model import Lineage, Point, SearchEnd, SearchRecord, Trial, TrialOutcome
from riseml.planning.plan import first_jobs
from riseml.planning.repetition import fold_record
from riseml.planning.trial_plan import plan_trial
from riseml.server.api.routes.experiment_routes import _check_points
from riseml.server.api.views.search_view import describe_search
from riseml.server.reconcile.search_loop import SearchLoop, judge_end
from riseml.spec.config.types import (
    BEST_VALUE,
    Distribution,
    Goal,
    Parameter,
    PopulationRule,
    Scale,
    SearchMethod,
    StopMethod,
    StopRule,
    ValueKind,
    ValueRule,
)
from riseml.store.database import Database
from riseml.store.marks import KeptOutputs
from riseml.store.schema import experiments, sets
from riseml.store.searches import NewTrial, SearchStore, SetChange
from tests.support.searches import DROPOUT, EPOCHS, LAYERS, LR, NOW, UNITS, SearchRig, make_search
from tests.support.stores import open_database

SPACE = (LR, UNITS, DROPOUT, LAYERS, EPOCHS)
DEPENDENT = (
    Parameter("momentum", ("0.5", "0.9"), when=(("layers", ("2",)),)),
    Parameter("units", (), Distribution(Scale.INT, 1, 0, high_formula="{{layers}} * 8")),
    LAYERS,
)
LIMITS = {"points": ((("layers", "2"), ("momentum", "0.9")),), "constraints": ("units < 20",)}


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    found = Database(f"sqlite:///{tmp_path}/riseml.db")
    yield found
    found.close()


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def any_database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    url: contextlib.AbstractContextManager[str]
    if request.param == "sqlite":
        url = contextlib.nullcontext(f"sqlite:///{tmp_path}/riseml.db")
    else:
        url = open_database(request.getfixturevalue("postgres"))
    with url as address, contextlib.closing(Database(address)) as found:
        yield found


def test_a_trial_is_made_when_there_is_room_and_not_before(database: Database) -> None:
    rig = SearchRig(database, make_search(trials=4), SPACE, concurrency=2)
    rig.loop.run_pass()
    assert len(rig.record().trials) == 1, "the first one waits for its place"
    rig.place(1)
    rig.loop.run_pass()
    assert len(rig.record().trials) == 2
    rig.place(2)
    rig.loop.run_pass()
    assert len(rig.record().trials) == 2, "two run at the same time"
    rig.report(1, 0.5)
    rig.end(1)
    rig.loop.run_pass()
    first, _, third = rig.record().trials
    assert (first.outcome, first.value, first.told) == (TrialOutcome.COMPLETE, 0.5, 1)
    assert (third.outcome, third.asked_after) == (None, 1)


def test_a_trial_without_the_metric_counts_as_failed_and_says_why(database: Database) -> None:
    rig = SearchRig(database, make_search(trials=2), SPACE)
    rig.end(1)
    rig.loop.run_pass()
    assert (rig.trial(1).outcome, rig.trial(1).message) == (
        TrialOutcome.FAILED,
        "it reported no accuracy, or ended with nan or infinity",
    )
    rig.end(2, State.FAILED)
    rig.loop.run_pass()
    assert rig.trial(2).message == "its experiment did not finish"
    assert (rig.record().end, rig.record().find_best()) == (SearchEnd.COMPLETED, None)


def test_a_result_is_taken_when_the_log_is_whole_and_not_when_the_folders_are_removed(database: Database) -> None:
    rig = SearchRig(database, make_search(trials=3), SPACE)
    rig.report(1, 0.5)
    rig.end(1, closed=False)
    rig.logs.whole.add(rig.trial(1).experiment)
    rig.loop.run_pass()
    assert rig.trial(1).outcome is None, "its job never began, so that nothing says that its log is whole"
    rig.run_job(1)
    rig.logs.whole.clear()
    rig.loop.run_pass()
    assert rig.trial(1).outcome is None, "lines may be missing"
    rig.logs.whole.add(rig.trial(1).experiment)
    rig.loop.run_pass()
    assert (rig.trial(1).outcome, rig.trial(1).value, len(rig.record().trials)) == (TrialOutcome.COMPLETE, 0.5, 2)
    rig.end(1)
    rig.loop.run_pass()
    assert (rig.trial(1).told, len(rig.record().trials)) == (1, 2), "once"


def test_too_many_failed_trials_end_a_search(database: Database) -> None:
    rig = SearchRig(database, make_search(trials=9, max_failed=1), SPACE)
    for number in (1, 2):
        rig.end(number, State.FAILED)
        rig.loop.run_pass()
    assert (len(rig.record().trials), rig.record().end) == (2, SearchEnd.TOO_MANY_FAILED)
    with pytest.raises(Refused, match="2 trials of set 1 have failed, and with `max_failed: 1`"):
        _check_points(rig.record())  # a user adds trials


def test_the_list_of_what_runs_has_a_set_until_its_search_ends(any_database: Database) -> None:
    rig = SearchRig(any_database, make_search(trials=2), SPACE)
    ended = SearchRig(any_database, make_search(trials=1), SPACE)
    ended.end(1)
    ended.loop.run_pass()

    def list_subs(limit: int | None = None) -> list[tuple[int, int | None]]:
        found = rig.experiments.list_experiments("paul", ended=False, project=None, limit=limit)
        return [(one.experiment.number, one.experiment.sub) for one in found]

    rig.end(1)
    assert list_subs() == [(1, 1)], "the next trial was not made yet"
    rig.loop.run_pass()
    assert list_subs(limit=5) == [(1, 1), (1, 2)]
    rig.end(2)
    rig.loop.run_pass()
    assert rig.record().end is SearchEnd.COMPLETED
    assert list_subs() == []


def test_trials_that_a_user_adds_while_the_search_is_about_to_end_are_made(any_database: Database) -> None:
    rig = SearchRig(any_database, make_search(trials=1), SPACE)
    rig.end(1)
    decided = rig.record()
    rig.searches.continue_search(rig.set_id, 1, ())
    assert not rig.searches.end_search(decided, SearchEnd.COMPLETED)
    rig.searches.request_end(rig.set_id)
    decided = rig.record()
    rig.searches.continue_search(rig.set_id, 1, ())
    assert not rig.searches.end_search(decided, SearchEnd.KILLED)
    rig.loop.run_pass()
    assert (len(rig.record().trials), rig.record().end) == (2, None)


def test_trials_of_a_set_that_is_kept_are_kept(any_database: Database) -> None:
    rig, kept = SearchRig(any_database, make_search(trials=4), SPACE), KeptOutputs(any_database)
    kept.keep(rig.searches.list_members(rig.set_id), NOW)
    for number in (1, 2):
        rig.end(number)
        rig.loop.run_pass()
    first, second, third = rig.searches.list_members(rig.set_id)
    assert kept.load_kept() == {first, second, third}
    kept.release([second])
    rig.end(3)
    rig.loop.run_pass()
    assert kept.load_kept() == {first, third}, "not the whole set is kept"


def test_a_kill_stops_asking(database: Database) -> None:
    rig = SearchRig(database, make_search(trials=9), SPACE, concurrency=4)
    rig.place(1)
    assert rig.searches.request_end(rig.set_id)
    assert not rig.searches.request_end(rig.set_id), "a kill once more"
    rig.loop.run_pass()
    assert len(rig.record().trials) == 1
    rig.end(1, State.KILLED)
    rig.loop.run_pass()
    assert (len(rig.record().trials), rig.record().end) == (1, SearchEnd.KILLED)


def test_every_combination_ends_a_search_before_its_trials_are_used_up(database: Database) -> None:
    rig = SearchRig(database, make_search(SearchMethod.TPE, trials=9), (LAYERS, EPOCHS))
    for number in (1, 2, 3):
        rig.report(number, 0.1)
        rig.end(number)
        rig.loop.run_pass()
    assert {dict(trial.point)["layers"] for trial in rig.record().trials} == {"2", "3", "4"}
    assert (len(rig.record().trials), rig.record().end) == (3, SearchEnd.EXHAUSTED)


def test_trials_are_added_to_a_search_that_has_ended(any_database: Database) -> None:
    rig = SearchRig(any_database, make_search(trials=1), SPACE)
    rig.end(1)
    rig.loop.run_pass()
    assert rig.record().end is SearchEnd.COMPLETED
    rig.searches.continue_search(rig.set_id, 2, (("TOKEN", "secret"),))
    rig.loop.run_pass()
    assert (len(rig.record().trials), rig.record().most_trials, rig.record().end) == (2, 3, None)
    assert rig.experiments.get_experiment(rig.trial(2).experiment).experiment.environment == (("TOKEN", "secret"),)
    for number in (2, 3):
        rig.end(number)
        rig.loop.run_pass()
    with any_database.read_transaction() as connection:
        assert connection.execute(sa.select(sets.c.environment)).scalar() is None, "it may hold secrets"


def test_asha_stops_what_does_worse_and_says_so_once(any_database: Database) -> None:
    rule = StopRule(StopMethod.ASHA, after=1, factor=2)
    rig = SearchRig(any_database, make_search(trials=9, stop=rule), SPACE, concurrency=3)
    for number, value in ((1, 0.9), (2, 0.8), (3, 0.1)):
        rig.place(number)
        rig.loop.run_pass()
        rig.report(number, value, step=1)
        rig.loop.run_pass()
    assert [trial.stopped for trial in rig.record().trials] == [False, True, True]
    assert rig.trial(3).reached == ((1, 0.1),)
    with any_database.read_transaction() as connection:
        wanted = connection.execute(sa.select(experiments.c.wanted).order_by(experiments.c.id)).scalars().all()
    assert wanted == [Wanted.RUN.value, Wanted.STOP.value, Wanted.STOP.value]
    rig.end(3, reason=Reason.STOPPED_EARLY)
    rig.end(2)
    rig.loop.run_pass()
    assert (rig.trial(3).outcome, rig.trial(3).value) == (TrialOutcome.STOPPED, 0.1)
    assert (rig.trial(2).outcome, rig.trial(2).value) == (TrialOutcome.COMPLETE, 0.8), "it ended before it was stopped"


def test_a_trial_whose_experiment_has_just_ended_is_not_stopped(any_database: Database) -> None:
    rig = SearchRig(any_database, make_search(trials=2), SPACE)
    rig.place(1)
    ended = experiments.update().values(ended_at=NOW, state=State.FAILED.value, reason=Reason.COMPLETED.value)
    with any_database.write_transaction() as connection:
        connection.execute(ended.where(experiments.c.id == rig.trial(1).experiment))
    assert not rig.searches.note_reached(rig.set_id, 1, [(1, 0.5)], stops=True)
    assert (rig.trial(1).stopped, rig.trial(1).reached) == (False, ((1, 0.5),)), "others are compared with its steps"


def test_a_set_gets_no_more_trials_than_it_may_have(any_database: Database) -> None:
    rig = SearchRig(any_database, make_search(trials=5), SPACE)
    rig.searches.continue_search(rig.set_id, 900, ())
    with pytest.raises(Refused, match="has 905 trials with those to come, and a set has at most 1,000"):
        rig.searches.continue_search(rig.set_id, 96, ())
    rig.searches.continue_search(rig.set_id, 95, ())
    assert rig.record().most_trials == 1000
    rig.searches.end_search(rig.record(), SearchEnd.KILLED)
    rig.searches.continue_search(rig.set_id, 999, ())
    assert rig.record().most_trials == 1000, "of a search that has ended, the trials count that it made"


class FailingOnce(SearchStore):
    """Cannot write once what one set reached."""

    failing: int | None = None

    def note_reached(self, set_id: int, number: int, reached: Sequence[tuple[int, float]], *, stops: bool) -> bool:
        if set_id == self.failing:
            self.failing = None
            raise StoreError("the disk is full")
        return super().note_reached(set_id, number, reached, stops=stops)


def test_an_error_of_one_search_does_not_delay_another(database: Database) -> None:
    rule = StopRule(StopMethod.ASHA, after=1, factor=2)
    first, second = (SearchRig(database, make_search(trials=2, stop=rule), SPACE) for _ in range(2))
    store = FailingOnce(database)
    first.loop = SearchLoop(first.make_desk(store))
    second.metrics = first.metrics
    for rig in (first, second):
        rig.place(1)
        rig.report(1, 0.5, step=1)
    store.failing = first.set_id
    first.loop._try_pass()
    assert second.trial(1).reached == ((1, 0.5),)
    first.loop._try_pass()
    assert first.trial(1).reached == ((1, 0.5),), "what was read is read again"
    second.report(1, 0.75, step=2)
    first.metrics.unreadable = first.trial(1).experiment
    with pytest.raises(StoreError, match="cannot be read"):
        first.loop.run_pass()
    assert second.trial(1).reached == ((1, 0.5), (2, 0.75))


def test_a_pass_reads_no_templates(database: Database) -> None:
    rig = SearchRig(database, make_search(trials=2), SPACE)
    texts: list[str] = []
    sa.event.listen(database.engine, "before_cursor_execute", lambda *given: texts.append(given[2]))
    assert rig.searches.load_open()
    assert rig.record()
    assert any("sets.search" in text for text in texts)
    assert not any("templates" in text or "environment" in text for text in texts)


def test_a_number_is_stored_once(database: Database) -> None:
    rig = SearchRig(database, make_search(trials=5), SPACE, concurrency=5)
    rig.place(1)
    record = rig.record()
    other = SearchStore(database)
    rig.loop.run_pass()
    assert len(rig.record().trials) == 2
    plan = plan_trial(other.load_templates(record.id), record.trials[0].point)
    assert other.add_trial(record.id, NewTrial(2, plan, first_jobs(plan), 0, 2), NOW) is None
    assert len(rig.record().trials) == 2


_METHODS = st.sampled_from([SearchMethod.RANDOM, SearchMethod.TPE, SearchMethod.CMA_ES])
_ACTS = st.lists(
    st.sampled_from(["place", "report", "end", "fail", "crash", "pass", "kill", "pause", "resume", "stop"]), max_size=60
)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    found = Database(f"sqlite:///{tmp_path_factory.mktemp('laws')}/riseml.db")
    yield found
    found.close()


@given(_METHODS, st.integers(1, 3), st.sampled_from([(SPACE, {}), (DEPENDENT, LIMITS)]), _ACTS)
@settings(max_examples=60, deadline=None)
def test_laws_hold_in_random_histories(
    shared: Database,
    method: SearchMethod,
    concurrency: int,
    space: tuple[tuple[Parameter, ...], dict[str, object]],
    acts: list[str],
) -> None:
    rule = StopRule(StopMethod.ASHA, after=1, factor=2)
    parameters, limits = space
    search = make_search(method, 5, stop=rule, max_failed=2, **limits)
    rig = SearchRig(shared, search, parameters, concurrency)
    killed = False
    for index, act in enumerate(acts):
        live = [trial for trial in rig.record().live if not trial.closed]
        oldest = live[index % len(live)].number if live else 0
        if act == "crash":
            rig.restart()
        elif act == "kill" and index > 20:
            rig.searches.request_end(rig.set_id)
            killed = True
        elif act == "stop" and index > 20:
            rig.searches.change_set(rig.set_id, SetChange(stop=True))
            killed = True
        elif act in ("pause", "resume"):
            rig.searches.change_set(rig.set_id, SetChange(paused=act == "pause"))
        elif act == "place" and live:
            rig.place(live[-1].number)
        elif act == "report" and live:
            rig.report(oldest, index / 100, step=index)
        elif act in ("end", "fail") and live:
            rig.end(oldest, State.FINISHED if act == "end" else State.FAILED)
        before = rig.record()
        rig.loop.run_pass()
        _check_laws(before, rig, killed=killed)
    rig.searches.end_search(rig.record(), SearchEnd.KILLED)  # the next history has the store for itself


def _check_laws(before: SearchRecord, rig: SearchRig, *, killed: bool) -> None:
    after = rig.record()
    assert len(after.live) <= after.concurrency, "never more at the same time than may run"
    assert len(after.trials) <= after.most_trials
    assert [trial.number for trial in after.trials] == list(range(1, len(after.trials) + 1)), "none lost or doubled"
    assert len({trial.point for trial in after.trials}) == len(after.trials), "no point twice"
    kept = zip(before.trials, after.trials, strict=False)
    assert all(old.point == new.point for old, new in kept), "a point never changes"
    told = sorted(trial.told for trial in after.trials if trial.told is not None)
    assert told == list(range(1, len(told) + 1)), "each was told once"
    assert not [trial for trial in after.trials if trial.closed and trial.outcome is None and after.end is None]
    assert [record for record in rig.searches.load_open() if record.id == after.id] == [after] * (after.end is None)
    is_halted = killed or after.paused
    assert not is_halted or len(after.trials) == len(before.trials), "a kill, a stop and a pause stop asking"
    assert sum(not trial.placed and not trial.closed for trial in after.live) <= 1, "one at most waits for its place"
    assert after.end is None or not after.live


@pytest.mark.parametrize("method", [SearchMethod.RANDOM, SearchMethod.TPE, SearchMethod.CMA_ES])
def test_a_server_that_dies_after_each_trial_makes_the_same_ones(method: SearchMethod, tmp_path: Path) -> None:
    points = []
    for crashes in (False, True):
        database = Database(f"sqlite:///{tmp_path}/{crashes}.db")
        rig = SearchRig(database, make_search(method, trials=16), SPACE, concurrency=2)
        for number in range(1, 17):
            rig.place(number)
            rig.loop.run_pass()
            if number > 1:
                value = float(dict(rig.trial(number - 1).point)["units"])
                rig.report(number - 1, value)
                rig.end(number - 1)
            if crashes:
                rig.restart()
            rig.loop.run_pass()
        points.append([trial.point for trial in rig.record().trials])
        database.close()
    assert points[0] == points[1]
    assert len(set(points[0])) == 16


def run_population(database: Database, concurrency: int, *, crashes: bool) -> list[tuple[Point, Lineage | None]]:
    """Return the points and parents of a population whose third trial fails."""
    rule = PopulationRule(4, resample=0.0)
    rig = SearchRig(database, make_search(SearchMethod.PBT, trials=12, pbt=rule), SPACE, concurrency)
    ended = 0
    for _ in range(60):
        for trial in rig.record().live:
            rig.place(trial.number)
        if crashes:
            rig.restart()
        rig.loop.run_pass()
        live = rig.record().live
        begun = {(trial.number - 1) // 4 for trial in live}
        assert len(begun) <= 1, "a generation begins when the one before has ended"
        if live and len(live) >= min(concurrency, 4 - ended % 4):
            last = live[-1].number  # the trials end in another order than they began
            rig.report(last, float(dict(rig.trial(last).point)["units"]) + last / 100)
            rig.end(last, State.FAILED if last == 3 else State.FINISHED)
            ended += 1
            rig.loop.run_pass()
        if rig.record().end is not None:
            break
    assert rig.record().end is SearchEnd.COMPLETED
    return [(trial.point, rig.lineage(trial.number)) for trial in rig.record().trials]


def test_a_population_is_the_same_whatever_runs_together_and_whenever_its_server_dies(tmp_path: Path) -> None:
    made = []
    for concurrency, crashes in itertools.product((1, 2, 5), (False, True)):
        with contextlib.closing(Database(f"sqlite:///{tmp_path}/{concurrency}-{crashes}.db")) as database:
            made.append(run_population(database, concurrency, crashes=crashes))
    assert all(other == made[0] for other in made)
    lineages = [lineage for _, lineage in made[0] if lineage is not None]
    assert [lineage.generation for lineage in lineages] == [1] * 4 + [2] * 4 + [3] * 4
    assert [lineage.parent for lineage in lineages[:4]] == [None] * 4
    assert all(lineage.parent in range(1, 5) and lineage.parent != 3 for lineage in lineages[4:8])
    assert all(lineage.parent in range(5, 9) for lineage in lineages[8:])


def test_points_run_with_all_their_seeds_and_are_compared_by_their_means(database: Database) -> None:
    rig = SearchRig(database, make_search(trials=2), SPACE, concurrency=2, seeds=("1", "2"))
    rig.loop.run_pass()
    rig.place(1)
    rig.loop.run_pass()
    first, second = (dict(trial.point) for trial in rig.record().trials)
    assert (first.pop("seed"), second.pop("seed")) == ("1", "2")
    assert first == second
    for number, value in ((1, 0.5), (2, 0.7), (3, 0.9), (4, 0.1)):
        rig.loop.run_pass()
        rig.report(number, value)
        rig.end(number)
    rig.restart()
    rig.loop.run_pass()
    best = fold_record(rig.record()).find_best()
    assert best is not None
    assert best.value == pytest.approx(0.6)
    assert (best.runs, rig.record().end) == ((1, 2), SearchEnd.COMPLETED)


def test_a_trial_that_diverges_counts_as_failed(database: Database) -> None:
    rig = SearchRig(database, make_search(trials=1), SPACE)
    rig.report(1, 0.9)
    rig.report(1, math.nan, 2)
    rig.end(1)
    rig.loop.run_pass()
    assert (rig.trial(1).outcome, rig.trial(1).value) == (TrialOutcome.FAILED, None)


@pytest.mark.parametrize(
    ("rule", "value"),
    [
        (BEST_VALUE, 0.9),
        (ValueRule(ValueKind.LAST), 0.3),
        (ValueRule(ValueKind.MEAN, 2), pytest.approx(0.4)),
        (ValueRule(ValueKind.AT, 2), 0.5),
    ],
)
def test_the_objective_says_which_value_a_search_is_told(database: Database, rule: ValueRule, value: float) -> None:
    rig = SearchRig(database, make_search(trials=1, objective=rule), SPACE)
    for step, reported in enumerate((0.9, 0.5, 0.3), 1):
        rig.report(1, reported, step)
    rig.end(1)
    rig.loop.run_pass()
    assert rig.trial(1).value == value


SEVERAL = (("high", Goal.MAXIMIZE), ("low", Goal.MINIMIZE))


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        (BEST_VALUE, (4.0, 1.0)),
        (ValueRule(ValueKind.LAST), (2.0, 2.0)),
        (ValueRule(ValueKind.MEAN, 2), (3.0, 3.0)),
        (ValueRule(ValueKind.AT, 1), (1.0, 1.0)),
    ],
)
def test_the_rule_says_which_value_of_each_of_several_objectives_counts(
    database: Database, rule: ValueRule, expected: tuple[float, float]
) -> None:
    rig = SearchRig(database, make_search(SearchMethod.TPE, trials=1, metrics=SEVERAL, objective=rule), SPACE)
    for step, value in enumerate((1.0, 4.0, 2.0), 1):
        rig.report(1, value, step)
    rig.end(1)
    rig.loop.run_pass()
    assert (rig.trial(1).value, rig.trial(1).values) == (expected[0], expected)


def test_several_objectives_are_told_together_and_one_without_a_value_fails(database: Database) -> None:
    rig = SearchRig(database, make_search(SearchMethod.TPE, trials=4, metrics=SEVERAL), SPACE)
    for number, values in enumerate(((1.0, 4.0), (2.0, 3.0), (), (9.0, math.nan)), 1):
        rig.restart()
        rig.loop.run_pass()
        for value in values:
            rig.report(number, value)
        rig.end(number)
    rig.loop.run_pass()
    record = rig.record()
    assert [trial.values for trial in record.trials] == [(4.0, 1.0), (3.0, 2.0), (), ()]
    assert record.trials[2].message == "it reported no high and no low, or ended with nan or infinity"
    assert record.trials[3].outcome is TrialOutcome.FAILED
    assert [trial.number for trial in record.list_front()] == [1]
    assert record.find_best() is None
    assert record.end is SearchEnd.COMPLETED


def test_several_objectives_of_repeated_points_are_compared_by_their_means(database: Database) -> None:
    search = make_search(SearchMethod.TPE, trials=2, metrics=SEVERAL)
    rig = SearchRig(database, search, SPACE, seeds=("1", "2"))
    for number, values in enumerate(((1.0, 4.0), (3.0, 6.0), (9.0,), ()), 1):
        rig.loop.run_pass()
        for value in values:
            rig.report(number, value)
        rig.end(number)
    rig.restart()
    rig.loop.run_pass()
    folded = fold_record(rig.record())
    assert [trial.values for trial in folded.trials] == [(5.0, 2.0), ()]
    assert [trial.runs for trial in folded.list_front()] == [(1, 2)], "the lucky seed 144.3 has a partner that failed"


def test_a_trial_beyond_a_constraint_on_a_metric_is_not_the_best(database: Database) -> None:
    search = make_search(SearchMethod.TPE, trials=4, constraints=("metrics.latency <= 3",))
    rig = SearchRig(database, search, SPACE)
    for number, values in enumerate(((2.5,), (5.0,), (), (2.0, math.nan)), 1):
        rig.restart()
        rig.loop.run_pass()
        for value in values:
            rig.report(number, value)
        rig.end(number)
    rig.loop.run_pass()
    record = rig.record()
    assert [trial.excess for trial in record.trials] == [0.0, 2.0, 0.0, 0.0]
    for trial in record.trials[2:]:
        assert trial.message == "it reported no accuracy and no latency, or ended with nan or infinity"
    best = record.find_best()
    assert best is not None
    assert (best.number, best.value) == (1, 2.5)
    assert "1 beyond the constraints" in describe_search(record)


def test_one_seed_beyond_a_constraint_takes_its_point_out(database: Database) -> None:
    search = make_search(SearchMethod.TPE, trials=2, constraints=("metrics.latency <= 3",))
    rig = SearchRig(database, search, SPACE, seeds=("1", "2"))
    for number, value in enumerate((3.0, 5.0, 1.0, 2.0), 1):
        rig.loop.run_pass()
        rig.report(number, value)
        rig.end(number)
    rig.loop.run_pass()
    folded = fold_record(rig.record())
    assert [trial.excess for trial in folded.trials] == [1.0, 0.0]
    best = folded.find_best()
    assert best is not None
    assert (best.runs, best.value) == ((3, 4), 1.5)


def test_a_trial_stopped_before_it_reported_a_constrained_metric_is_not_the_best() -> None:
    trial = Trial(1, 1, (), 0, finished=True, stopped_early=True, reached=((1, 0.5),))
    search = make_search(constraints=("metrics.latency <= 3",))
    result = judge_end(trial, {"accuracy": 0.5}, {"latency": None}, search)
    assert (result.outcome, result.value, result.excess) == (TrialOutcome.STOPPED, 0.5, math.inf)


def test_a_killed_server_continues_with_the_same_points_conditions_and_constraints(database: Database) -> None:
    points = []
    for restarts in (False, True):
        rig = SearchRig(database, make_search(SearchMethod.TPE, trials=14, **LIMITS), DEPENDENT)
        for number in range(1, 15):
            rig.loop.run_pass()
            rig.place(number)
            rig.report(number, float(dict(rig.trial(number).point)["units"]))
            rig.end(number)
            if restarts:
                rig.restart()
        points.append([trial.point for trial in rig.record().trials])
    assert points[0] == points[1]
    assert dict(points[0][0])["momentum"] == "0.9"
    assert all(("momentum" in dict(point)) == (dict(point)["layers"] == "2") for point in points[0])
