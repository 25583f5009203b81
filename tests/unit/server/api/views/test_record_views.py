"""Experiments and jobs as the API shows them."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

import pytest

from riseml.base.names import JobName
from riseml.base.states import SENTENCES, Reason, State, Wanted
from riseml.model import SearchPlan, SearchRecord, Verdict
from riseml.planning.launch import StorageRoots
from riseml.server.api.views.record_views import exit_code_of, name_cause, show_all, show_job, show_time
from riseml.store.experiments import ExperimentDetail
from tests.support.searches import make_search
from tests.unit.control.simulation import START, make_experiment, make_plan


@pytest.mark.parametrize(
    ("moment", "text"),
    [
        (None, None),
        (datetime(2026, 8, 31, 7, 23, 46, 999_999, tzinfo=UTC), "2026-08-31T07:23:46Z"),
        (datetime(2026, 8, 31, 9, 23, 46, tzinfo=timezone(timedelta(hours=2))), "2026-08-31T07:23:46Z"),
    ],
)
def test_a_moment_is_shown_in_utc(moment: datetime | None, text: str | None) -> None:
    assert show_time(moment) == text


def test_a_job_has_the_sentence_of_its_reason_unless_it_has_a_message() -> None:
    experiment = make_experiment(9, make_plan("train"), number=4, sub=2)
    (job,) = experiment.gang
    job = replace(job, state=State.RUNNING, reason=Reason.RUNNING)
    view = show_job(experiment, job)
    assert (view["id"], view["message"]) == ("4.2.train", SENTENCES[Reason.RUNNING])
    assert show_job(experiment, replace(job, message="it waits"))["message"] == "it waits"
    stopped = show_job(experiment, replace(job, ending=Reason.KILLED_BY_USER))
    assert stopped["message"] == f"Being stopped. {SENTENCES[Reason.KILLED_BY_USER]}"


def test_the_exit_code_of_an_experiment_is_that_of_the_job_that_decided() -> None:
    experiment = make_experiment(9, make_plan("master", "ps.1"))
    codes = {"master": 3, "ps.1": 143}
    ended = replace(experiment, jobs=tuple(replace(job, exit_code=codes.get(job.name)) for job in experiment.jobs))
    assert exit_code_of(ended) is None
    verdict = Verdict(State.FAILED, Reason.EXIT_CODE, START, JobName("master"))
    assert exit_code_of(replace(ended, verdict=verdict)) == 3
    assert exit_code_of(replace(ended, verdict=replace(verdict, job=None))) is None


def test_a_set_that_failed_names_the_member_and_its_job() -> None:
    member = make_experiment(9, make_plan("train"), number=4, set_id=1, sub=3, state=State.FAILED)
    verdict = Verdict(State.FAILED, Reason.EXIT_CODE, START, JobName("train"))
    failed = replace(member, reason=Reason.EXIT_CODE, verdict=verdict)
    assert name_cause(State.FAILED, [failed]) == "3.train"
    assert name_cause(State.RUNNING, [failed]) is None


@pytest.mark.parametrize(
    ("values", "metric"),
    [
        ({"loss": 0.5, "accuracy": 0.9}, {"name": "accuracy", "last": 0.9}),
        ({"accuracy": None}, {"name": "accuracy", "last": None}),
        ({"loss": 0.5}, None),
        ({}, None),
    ],
)
def test_a_trial_shows_what_its_search_looks_for(values: dict[str, float | None], metric: object) -> None:
    plan = SearchPlan(make_search(), ())
    record = SearchRecord(5, "paul", 1, plan, 2, Wanted.RUN, 6)
    member = replace(make_experiment(1, make_plan("train")), number=1, sub=1, set_id=5)
    detail = ExperimentDetail(member, (), "")
    (view,) = show_all([detail], StorageRoots("/output", "/data"), {5: record}, {member.id: values})
    assert view["experiments"][0]["main_metric"] == metric
    assert view["main_metric"] is None
