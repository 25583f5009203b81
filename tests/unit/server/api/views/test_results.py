"""The results of experiments, from records and logs to the rows of the answer."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from riseml.analysis.ranking import Objective
from riseml.base.errors import NotFound, UsageError
from riseml.base.names import HostName, JobName
from riseml.base.settings import Settings
from riseml.base.states import Reason, State
from riseml.model import Frame, JobKey, Owner
from riseml.planning.grid import grid_points
from riseml.planning.image import Manifest
from riseml.planning.plan import first_jobs, make_plans
from riseml.server.api.views.result_groups import read_groups
from riseml.server.api.views.results import ResultQuery, _list_missing, match_rows, read_results
from riseml.server.app import make_application
from riseml.server.reconcile.notifier import Notifier
from riseml.server.reconcile.search_loop import SearchLoop, SearchLoopParts
from riseml.server.reconcile.trial_metrics import StoredMetrics
from riseml.server.reconcile.wake import Wake
from riseml.server.services import Services
from riseml.spec.config.loader import load_config
from riseml.spec.config.types import Goal, PopulationRule, SearchMethod, SearchSection, ValueKind, ValueRule
from riseml.store.insertion import NewExperiments
from tests.support.callers import ME
from tests.support.rig import single
from tests.support.searches import LR, SearchRig, make_search

NOW = datetime(2026, 8, 31, 7, 23, 46, tzinfo=UTC)
ACCURACIES = ((0.5, 0.75), (0.25, 0.96875, 0.9375), (0.99,), ())
"""What the four experiments of the set have reported; the third one fails."""

TEXTS = ["2.1", "2.10", "01", "9007199254740993", "1e5"]


@pytest.fixture(scope="module")
def services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Services]:
    """A server with a set of four experiments, 1, a single one of another project, 2, and a set of texts that look like
    numbers, 3. The tests only read it.
    """
    home = tmp_path_factory.mktemp("results")
    settings = Settings(home, home / "output", home / "data", executor="process")
    made = make_application(settings, threading.Event())
    config = single("t {{lr}}", parameters={"lr": [0.1, 0.01, 0.001, "auto"], "epochs": 20}, concurrency=2)
    add(made.services, config)
    add(made.services, single("t").replace("toaster", "other"))
    add(made.services, single("t {{v}}", parameters={"v": TEXTS}))
    finish(made.services, 6, State.FINISHED, Reason.STOPPED_EARLY)
    for sub, values in enumerate(ACCURACIES, 1):
        state = State.FAILED if sub == 3 else State.FINISHED if values else State.CREATED
        finish(made.services, sub, state)
        key = JobKey(sub, JobName("train"), 1)
        lines = [f'riseml.report {{"step": {at}, "accuracy": {value}}}\n' for at, value in enumerate(values)]
        made.services.stores.logs.append_frames(
            key, [Frame("2026-08-31T07:23:46.1Z", 1, line.encode()) for line in lines]
        )
    yield made.services
    made.database.close()


def add(services: Services, config: str) -> None:
    spec = load_config(config)
    plans = make_plans(spec, grid_points(spec.train), Manifest())
    owner = Owner(ME.owner.user, 0, 0)
    rows = tuple((plan, first_jobs(plan)) for plan in plans)
    concurrency = 2 if len(rows) > 1 else None
    new = NewExperiments(owner, spec.project, config, "", rows, concurrency=concurrency)
    services.stores.experiments.add_experiments(new, NOW)


def finish(services: Services, identity: int, state: State, reason: Reason = Reason.COMPLETED) -> None:
    if state is State.CREATED:
        return
    before = services.stores.experiments.get_experiment(identity).experiment
    jobs = tuple(replace(job, host=HostName("gpu1")) for job in before.jobs)
    ended = NOW + timedelta(seconds=100 * identity)
    after = replace(before, state=state, reason=reason, jobs=jobs, started_at=NOW, ended_at=ended)
    assert services.stores.experiments.save_decision(before, after, NOW)


def ask(services: Services, *names: str, **query: object) -> list[str]:
    found = read_results(ResultQuery(names, **query), ME, services.stores, NOW)  # type: ignore[arg-type]  # a test names fields
    return [one["id"] for one in found["experiments"]]


def test_a_set_is_ranked_by_the_metric_that_it_is_sorted_by(services: Services) -> None:
    found = read_results(ResultQuery(("1",), sort="-accuracy"), ME, services.stores, NOW)
    assert found["objective"] == {
        "metric": "accuracy",
        "goal": "maximize",
        "rule": "best",
        "words": "the largest accuracy",
    }
    assert [(one["id"], one["rank"]) for one in found["experiments"]] == [
        ("1.3", None),
        ("1.2", 1),
        ("1.1", 2),
        ("1.4", None),
    ]
    assert (found["parameters"], found["same"], found["metrics"]) == (["lr"], {"epochs": "20"}, ["accuracy"])
    best = found["best"]
    assert best is not None
    assert (best["id"], best["seconds"], best["hosts"], best["workers"]) == ("1.2", 200.0, ["gpu1"], 1)
    (metric,) = best["metrics"]
    assert (metric["last"], metric["max"], metric["max_step"], metric["count"]) == (0.9375, 0.96875, 1, 3)


def test_rows_are_chosen_and_limited(services: Services) -> None:
    assert ask(services, "1", where=("lr<0.05 and state=FINISHED",)) == ["1.2"]
    assert ask(services, "1", where=("accuracy.max>0.7", "lr!=auto"), sort="lr", limit=2) == ["1.3", "1.2"]
    assert ask(services, "1.4", "1.1", "2") == ["1.1", "1.4", "2"]
    assert ask(services, project="other") == ["2"]
    found = read_results(ResultQuery(("1",), limit=1), ME, services.stores, NOW)
    assert (found["total"], found["matched"], len(found["experiments"]), found["best"]) == (4, 4, 1, None)


@pytest.mark.parametrize("text", TEXTS)
def test_a_text_of_the_store_is_found_as_it_was_written(services: Services, text: str) -> None:
    assert ask(services, "3", where=(f"v={text}",)) == [f"3.{TEXTS.index(text) + 1}"]


def test_the_answer_says_what_mixes_numbers_and_texts(services: Services) -> None:
    found = read_results(ResultQuery(("3",), where=("v>=2.1",), sort="v"), ME, services.stores, NOW)
    assert [one["parameters"]["v"] for one in found["experiments"]] == ["2.1", "2.10", "1e5", "9007199254740993"]
    note = "v mixes numbers and texts: it is a text in 1 of 5 experiments ('01'); >= compares the numbers alone"
    assert found["notes"] == [note]
    assert read_results(ResultQuery(("3",), sort="id"), ME, services.stores, NOW)["notes"] == []


def test_states_and_moments_choose_rows(services: Services) -> None:
    assert ask(services, "3", where=("state=STOPPED_EARLY",)) == ["3.1"]
    assert ask(services, "3", where=("state=FINISHED",)) == []
    assert ask(services, "1", where=("started>now-1h and ended>=2026-08-31T07:26",)) == ["1.2", "1.3"]
    assert ask(services, "1", where=("started>2026-08-31",)) == []
    assert ask(services, "1", where=("time>2m",)) == ["1.2", "1.3"]


@pytest.mark.parametrize(
    ("query", "error", "message"),
    [
        (ResultQuery(("9",)), NotFound, "there is no experiment 9"),
        (ResultQuery(("1", "9.1")), NotFound, "there is no experiment 9.1"),
        (ResultQuery(("somebody.1",)), NotFound, "there is no experiment somebody.1"),
        (ResultQuery(("1.1.train",)), UsageError, "1.1.train is a job"),
        (ResultQuery(project="none"), NotFound, "project none has no experiment"),
        (ResultQuery(), UsageError, "neither an experiment nor a project is named"),
        (ResultQuery(("1",), where=("speed>1",)), UsageError, "there is no column 'speed'"),
        (ResultQuery(("1",), sort="-speed"), UsageError, "there is no column 'speed'"),
        (ResultQuery(("1",), where=("state=DONE",)), UsageError, "state=DONE: there is no such state"),
        (ResultQuery(("1",), where=("started>2h",)), UsageError, "'2h' is no moment"),
    ],
)
def test_what_has_no_answer_is_refused(
    services: Services, query: ResultQuery, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        read_results(query, ME, services.stores, NOW)


REPORTS = (((0.5, 3.0), (0.25, 2.0)), ((0.75, 2.0), (0.5, 1.0)), ((0.125, 0.5),), ((0.99, float("nan")),))
"""Accuracies and losses of four trials; the last ones count. The fourth one diverges."""

LAST = ValueRule(ValueKind.LAST)


@contextmanager
def open_search(home: Path, search: SearchSection) -> Iterator[Services]:
    """Give a server with a search whose trials have reported `REPORTS`, and have ended."""
    home.mkdir(exist_ok=True)
    made = make_application(Settings(home, home / "output", home / "data"), threading.Event())
    rig = SearchRig(made.database, search, (LR,), owner=Owner(ME.owner.user, 0, 0))
    stores = made.services.stores
    metrics = StoredMetrics(stores.metrics, stores.run_values)
    rig.loop = SearchLoop(SearchLoopParts(rig.experiments, rig.searches, metrics, rig.logs, Notifier(), Wake(), Wake()))
    for number, reports in enumerate(REPORTS, 1):
        key = JobKey(rig.trial(number).experiment, JobName("train"), 1)
        texts = [f'{{"step": {at}, "accuracy": {high}, "loss": {low}}}' for at, (high, low) in enumerate(reports)]
        stores.logs.append_frames(
            key, [Frame("2026-08-31T07:23:46.1Z", 1, f"riseml.report {text}\n".encode()) for text in texts]
        )
        rig.end(number)
        rig.loop.run_pass()
    try:
        yield made.services
    finally:
        made.database.close()


@pytest.fixture
def several(tmp_path: Path) -> Iterator[Services]:
    """A server with a search that has two objectives, and has ended."""
    goals = (("accuracy", Goal.MAXIMIZE), ("loss", Goal.MINIMIZE))
    with open_search(tmp_path, make_search(trials=len(REPORTS), metrics=goals, objective=LAST)) as services:
        yield services


def test_several_objectives_rank_by_fronts_of_the_values_that_count(several: Services) -> None:
    found = read_results(ResultQuery(("1",)), ME, several.stores, NOW)
    assert (found["objective"], found["best"]) == (None, None)
    assert [objective["words"] for objective in found["objectives"]] == [
        *("the largest last accuracy", "the smallest last loss"),
    ]
    assert [(result["id"], result["rank"], result["value"], result["scores"]) for result in found["experiments"]] == [
        ("1.2", 1, None, {"accuracy": 0.5, "loss": 1.0}),
        ("1.3", 1, None, {"accuracy": 0.125, "loss": 0.5}),
        ("1.1", 2, None, {"accuracy": 0.25, "loss": 2.0}),
        ("1.4", None, None, {"accuracy": 0.99}),
    ]


def test_an_order_ranks_several_objectives_by_one(several: Services) -> None:
    found = read_results(ResultQuery(("1",), sort="-loss"), ME, several.stores, NOW)
    objective = found["objective"]
    assert objective is not None
    assert (objective["metric"], objective["goal"], objective["rule"]) == ("loss", "minimize", "last")
    assert {result["id"]: (result["rank"], result["value"]) for result in found["experiments"]} == {
        "1.1": (3, 2.0),
        "1.2": (2, 1.0),
        "1.3": (1, 0.5),
        "1.4": (None, None),
    }
    with pytest.raises(UsageError, match="several objectives") as refused:
        read_groups(ResultQuery(("1",)), None, ME, several.stores, NOW)
    assert refused.value.hint == "choose it: --sort -accuracy or --sort loss"


def test_trials_beyond_a_constraint_have_no_rank(tmp_path: Path) -> None:
    loose = make_search(trials=len(REPORTS), objective=LAST, constraints=("metrics.loss < 3",))
    with open_search(tmp_path, loose) as services:
        found = read_results(ResultQuery(("1",)), ME, services.stores, NOW)
        assert {result["id"]: (result["rank"], result["value"]) for result in found["experiments"]} == {
            "1.1": (2, 0.25),
            "1.2": (1, 0.5),
            "1.3": (3, 0.125),
            "1.4": (None, 0.99),
        }
        strict = read_results(ResultQuery(("1",), sort="loss"), ME, services.stores, NOW)
        assert [result["id"] for result in strict["experiments"]] == ["1.3", "1.2", "1.1", "1.4"]
    with open_search(tmp_path / "other", replace(loose, constraints=("metrics.loss < 1",))) as services:
        ranks = read_results(ResultQuery(("1",)), ME, services.stores, NOW)["experiments"]
        assert ranks[0]["id"] == "1.3"
        assert [result["rank"] for result in ranks] == [1, None, None, None]
        groups = read_groups(ResultQuery(("1",)), None, ME, services.stores, NOW)
        assert [(group["rank"], group["beyond"]) for group in groups["groups"]] == [(1, 0), *[(None, 1)] * 3]
        assert groups["best_run"] == {"id": "1.3", "seed": None, "value": 0.125}


def test_trials_of_a_population_have_generations_and_parents(tmp_path: Path) -> None:
    rule = PopulationRule(2, replace=0.5)
    search = make_search(SearchMethod.PBT, trials=len(REPORTS), pbt=rule, objective=LAST)
    with open_search(tmp_path, search) as services:
        found = read_results(ResultQuery(("1",), sort="id"), ME, services.stores, NOW)["experiments"]
        assert [one.get("generation") for one in found] == [at // 2 + 1 for at in range(len(REPORTS))]
        assert [one.get("parent") for one in found[:2]] == [None, None]
        assert {one.get("parent") for one in found[2:4]} <= {"1.1", "1.2"}
        first = found[2].get("parent")
        children = [one["id"] for one in found[2:4] if one.get("parent") == first]
        assert ask(services, "1", where=(f"generation=2 and parent={first}",), sort="id") == children


@pytest.mark.parametrize(
    ("names", "notes"),
    [
        (["accuracy", "loss"], []),
        (["loss", "acc"], ["none of them has reported accuracy so far; the names so far are acc, loss"]),
        ([], ["none of them has reported accuracy so far; nothing is reported"]),
    ],
)
def test_a_note_says_which_names_were_reported_before_the_metric_that_ranks(
    services: Services, names: list[str], notes: list[str]
) -> None:
    rows = match_rows(ResultQuery(("1",), sort="-accuracy"), ME, services.stores, NOW).rows
    assert list(_list_missing(rows, [Objective("accuracy", Goal.MAXIMIZE)], names)) == notes
    assert list(_list_missing([], [Objective("accuracy", Goal.MAXIMIZE)], names)) == []
