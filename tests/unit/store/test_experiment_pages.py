"""Pages of experiments: filters, sorts, sets as one entry, and nothing of other users."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import timedelta

import pytest

from riseml.base.roles import Role, Scope
from riseml.base.states import State
from riseml.model import Caller, Owner
from riseml.planning.plan import first_jobs
from riseml.store.database import Database
from riseml.store.experiment_pages import ExperimentPages, PageQuery, PageSort
from riseml.store.experiments import ExperimentStore
from riseml.store.insertion import NewExperiments
from riseml.store.metrics.last_values import LastValues
from riseml.store.metrics.metric_rows import MetricRows
from tests.unit.control.simulation import make_plan
from tests.unit.store.metrics.tally_rows import ODD_NAME, count
from tests.unit.store.submissions import ANN, BOB, NOW


def submit(store: ExperimentStore, project: str, *rates: str, owner: Owner = ANN) -> None:
    """Store an experiment, or a set with one for each of several learning rates, a minute after the last one."""
    plans = [replace(make_plan("train"), parameters=(("lr", rate),)) for rate in rates]
    rows = tuple((plan, first_jobs(plan)) for plan in plans)
    concurrency = 2 if len(rates) > 1 else None
    new = NewExperiments(owner, project, "", "", rows, concurrency=concurrency)
    store.add_experiments(new, NOW + timedelta(minutes=len(store.load_world().experiments)))


def end(store: ExperimentStore, number: int, state: State, after: int) -> None:
    """End an experiment so many hours after the first submission."""
    (detail,) = store.find_by_number("ann", number)
    ended = NOW + timedelta(hours=after)
    done = replace(detail.experiment, state=state, closed=True, ended_at=ended)
    assert store.save_decision(detail.experiment, done, ended)


@pytest.fixture
def pages(database: Database, experiments: ExperimentStore) -> ExperimentPages:
    """Experiments 1 to 5 of ann: 2 is a set of three, 3 ended first, then 1; bob has one."""
    submit(experiments, "toaster", "0.1")
    submit(experiments, "bread", "0.1", "0.25", "0.5")
    submit(experiments, "toaster", "0.001")
    submit(experiments, "100%", "1e-4")
    submit(experiments, "Toaster_2", "0.1")
    submit(experiments, "toaster", "0.1", owner=BOB)
    end(experiments, 3, State.FAILED, 1)
    end(experiments, 1, State.FINISHED, 2)
    return ExperimentPages(database)


def numbers(pages: ExperimentPages, query: PageQuery) -> list[int]:
    """Return the numbers of a page in its order, each once."""
    return list(dict.fromkeys(detail.experiment.number for detail in pages.read_page("ann", query)))


CASES: tuple[tuple[PageQuery, list[int]], ...] = (
    (PageQuery(), [5, 4, 3, 2, 1]),
    (PageQuery(descending=False), [1, 2, 3, 4, 5]),
    (PageQuery(limit=2, offset=1), [4, 3]),
    (PageQuery(limit=2, before=4), [3, 2]),
    (PageQuery(offset=5), []),
    (PageQuery(sort=PageSort.ENDED), [1, 3, 5, 4, 2]),
    (PageQuery(sort=PageSort.ENDED, descending=False), [3, 1, 5, 4, 2]),
    (PageQuery(sort=PageSort.STARTED), [5, 4, 3, 2, 1]),
    (PageQuery(sort=PageSort.CREATED, descending=False), [1, 2, 3, 4, 5]),
    (PageQuery(sort=PageSort.STATE, descending=False, ended=True, states=(State.FAILED, State.FINISHED)), [3, 1]),
    (PageQuery(project="toaster"), [3, 1]),
    (PageQuery(ended=False), [5, 4, 2]),
    (PageQuery(companions=False), [5, 4, 3, 2, 1]),
    (PageQuery(text="toast"), [5, 3, 1]),
    (PageQuery(text="TOASTER lr=0.1"), [5, 1]),
    (PageQuery(text="0.25"), [2]),
    (PageQuery(text="failed toaster"), [3]),
    (PageQuery(text="%"), [4]),
    (PageQuery(text="_"), [5]),
    (PageQuery(text="4"), [4]),
    (PageQuery(text="04"), []),
    (PageQuery(text="4" * 30), []),
    (PageQuery(text="\u0664"), []),
    (PageQuery(text="Finish"), [1]),
    (PageQuery(text="LR 1E-4"), [4]),
    (PageQuery(text="Ü"), []),
    (PageQuery(text="' OR 1=1 --"), []),
    (PageQuery(text="\\"), []),
    (PageQuery(text=" ".join("x" * 200)), []),
)


def test_filters_and_sorts(pages: ExperimentPages) -> None:
    for query, expected in CASES:
        assert numbers(pages, query) == expected, query
    found = pages.read_page("ann", PageQuery(text="0.25", limit=1))
    members = [(one.experiment.number, one.experiment.sub) for one in found]
    assert members == [(2, 1), (2, 2), (2, 3)], "a set is one entry with all its members"
    others = pages.read_page("bob", PageQuery(text="toaster"))
    assert [one.experiment.owner.user for one in others] == ["bob"]


def test_parameters_are_found_as_the_user_writes_them(experiments: ExperimentStore, database: Database) -> None:
    for rate in ("Köln", 'a"b', "C:\\data", "0.1"):
        submit(experiments, "toaster", rate)
    pages = ExperimentPages(database)
    for number, text in enumerate(("köln", 'A"B', "c:\\data"), 1):
        assert numbers(pages, PageQuery(text=text)) == [number]
    assert [numbers(pages, PageQuery(text=text)) for text in ('"', ":\\")] == [[2], [3]]


def test_pages_are_chosen_and_sorted_by_the_last_value_of_a_metric(
    pages: ExperimentPages, experiments: ExperimentStore, database: Database
) -> None:
    reported = {
        (1, None): (0.9, 0.3),
        (2, 1): (0.1,),
        (2, 3): (1e-7,),
        (3, None): (0.2, math.nan),
        (4, None): (math.inf,),
        (5, None): (2.5,),
    }
    for (number, sub), values in reported.items():
        (detail,) = experiments.find_by_number("ann", number, sub)
        MetricRows(database).save_tallies([(count(detail.experiment.id, *values), {})])
    by_loss = PageQuery(PageSort.METRIC, metric="loss")
    assert numbers(pages, by_loss) == [5, 1, 2]
    assert numbers(pages, replace(by_loss, descending=False)) == [2, 1, 5]
    assert numbers(pages, replace(by_loss, least=0.3)) == [5, 1]
    assert numbers(pages, replace(by_loss, most=0.3, limit=1, offset=1)) == [2]
    assert numbers(pages, replace(by_loss, metric=ODD_NAME, descending=False)) == [5, 1, 2]
    assert numbers(pages, PageQuery(metric="accuracy")) == []
    last = LastValues(database)
    ann = Caller(ANN, Role.MEMBER, Scope.READ)
    assert last.list_names(ann, of_all=False) == (ODD_NAME, "loss")
    found = {(number, sub): value for _, number, sub, value in last.read_values("loss", ann, of_all=False)}
    assert found == {(1, None): 0.3, (2, 1): 0.1, (2, 3): 1e-7, (3, None): None, (4, None): None, (5, None): 2.5}
    bob = Caller(BOB, Role.MEMBER, Scope.READ)
    admin = replace(bob, role=Role.ADMIN)
    assert last.read_values("loss", bob, of_all=False) == last.read_values("loss", bob, of_all=True) == []
    assert last.read_values("loss", replace(admin, project="vision"), of_all=True) == []
    assert sorted(last.read_values("loss", admin, of_all=True)) == sorted(last.read_values("loss", ann, of_all=False))
    assert last.list_names(admin, of_all=True) == (ODD_NAME, "loss")
    assert last.list_names(bob, of_all=True) == ()
    of = {(number, sub): experiments.find_by_number("ann", number, sub)[0].experiment.id for number, sub in reported}
    read = last.read_values_of([of[2, 1], of[3, None], 999])
    assert read[of[2, 1]]["loss"] == 0.1
    assert read[of[3, None]]["loss"] is None
    assert (len(read), list(read[of[2, 1]])) == (2, [ODD_NAME, "loss"]), "in the order of the first reports"
