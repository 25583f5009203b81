"""Requests of users in the server's log."""

from __future__ import annotations

from riseml.base.names import parse_id
from riseml.server.api.request_log import describe_accepted, describe_kill
from riseml.store.experiments import ExperimentDetail
from tests.unit.control.simulation import make_experiment, make_plan


def test_an_accepted_experiment_is_named_with_its_jobs() -> None:
    detail = ExperimentDetail(make_experiment(9, make_plan("master", "worker.1"), number=4), (), "")
    line = describe_accepted((detail,))
    assert (line.text, line.experiment) == ("4 accepted: project toaster, jobs master, worker.1", "4")


def test_an_accepted_set_is_one_line() -> None:
    members = [make_experiment(n, make_plan("train"), number=5, set_id=1, sub=n) for n in (1, 2)]
    line = describe_accepted(tuple(ExperimentDetail(member, (), "") for member in members))
    assert (line.text, line.experiment) == ("5 accepted: project toaster, a set of 2, each with jobs train", "5")


def test_a_kill_is_named_as_the_user_did() -> None:
    line = describe_kill(parse_id("5.1"))
    assert (line.text, line.experiment) == ("5.1 kill requested", "5.1")
