"""`env`: the variables of each job, of an experiment or of a file, and none of the values that riseml hides."""

from __future__ import annotations

import json

from tests.unit.cli.conftest import Riseml
from tests.unit.cli.fake_server import FakeServer, make_experiment
from tests.unit.cli.plans import PLAN

JOBS = {
    "master": {"variables": {"B": "2", "A": "1\x1b[2J"}, "hidden": ["TOKEN"], "image": "python:3.11"},
    "worker.1": {"variables": {"A": "3"}, "hidden": [], "image": "python:3.11"},
}


def test_each_job_has_a_heading_and_sorted_lines(riseml: Riseml, fake_server: FakeServer) -> None:
    fake_server.experiments["4"] = make_experiment()
    fake_server.answers["GET /experiments/4/environment"] = (200, {"id": "4", "jobs": JOBS})
    assert riseml("env").out.splitlines() == [
        "4.master",
        "A=1",
        "B=2",
        "TOKEN=*** (not shown)",
        "",
        "4.worker.1",
        "A=3",
    ]
    assert json.loads(riseml("env", "4", "--json").out) == JOBS


def test_one_job_has_no_heading(riseml: Riseml, fake_server: FakeServer) -> None:
    fake_server.answers["GET /experiments/4.worker.1/environment"] = (200, {"id": "4", "jobs": JOBS})
    assert riseml("env", "4.worker.1").out == riseml("env", "4", "worker.1").out == "A=3\n"


def test_a_file_shows_no_value_that_looks_secret_or_is_passed_on(riseml: Riseml, fake_server: FakeServer) -> None:
    job = PLAN["experiments"][0]["jobs"][0]
    planned = {**job, "environment": {"LR": "1", "API_KEY": "s3cret"}}
    fake_server.answers["POST /plans"] = (200, {**PLAN, "experiments": [{**PLAN["experiments"][0], "jobs": [planned]}]})
    shown = riseml("env", "-f", "riseml.yml", "train").out.splitlines()
    assert shown == ["API_KEY=*** (not shown)", "API_TOKEN=*** (not shown)", "LR=1"]
