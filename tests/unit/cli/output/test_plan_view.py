"""A plan as lines: the jobs of each combination, the environments of roles, and the search."""

from __future__ import annotations

from riseml import wire
from tests.unit.cli.conftest import Riseml
from tests.unit.cli.fake_server import FakeServer
from tests.unit.cli.plans import PLAN


def test_a_dry_run_shows_the_jobs_of_every_combination_when_they_differ(
    riseml: Riseml, fake_server: FakeServer
) -> None:
    (first,) = PLAN["experiments"]
    (job,) = first["jobs"]
    second: wire.PlanExperiment = {**first, "id": "4.2", "parameters": {"lr": "2"}}
    fake_server.answers["POST /plans"] = (200, {**PLAN, "experiments": [{**first, "id": "4.1"}, second]})
    assert riseml("train", "--dry-run").out.splitlines()[-2:] == ["EXP ID  PARAMS", "4.2     lr=2"]
    wider: wire.PlanExperiment = {**second, "jobs": [job, {**job, "name": "worker.1", "gpus": 0}]}
    fake_server.answers["POST /plans"] = (200, {**PLAN, "experiments": [{**first, "id": "4.1"}, wider]})
    assert riseml("train", "--dry-run").out.splitlines()[-3:] == [
        "EXP ID  JOBS                CPUS       MEM  GPUS  PARAMS",
        "4.1     1: train               1   512 MiB     2  lr=1",
        "4.2     2: train, worker.1     2  1024 MiB     2  lr=2",
    ]


def test_a_dry_run_lists_the_environments_of_roles(riseml: Riseml, fake_server: FakeServer) -> None:
    own: wire.PlanRoleEnvironment = {
        "role": "actor",
        "image": "riseml/environment:2",
        "base": "redis:7",
        "replaced_by": None,
        "install": ["pip install y"],
        "refused": None,
        "cached": True,
    }
    fake_server.answers["POST /plans"] = (200, {**PLAN, "role_environments": [own]})
    shown = " ".join(riseml("train", "--dry-run").out.split())
    for part in (
        "Image of actor: riseml/environment:2 (cached)",
        "Base of actor: redis:7",
        "Install of actor: pip install y",
    ):
        assert part in shown
    refused = {**own, "refused": "install step 1 needs root"}
    fake_server.answers["POST /plans"] = (200, {**PLAN, "role_environments": [refused]})
    assert "never: install step 1 needs root" in riseml("train", "--dry-run").out


def test_a_dry_run_of_a_search_names_the_search(riseml: Riseml, fake_server: FakeServer) -> None:
    search: wire.PlanSearch = {
        "method": "tpe",
        "metric": "accuracy",
        "goal": "maximize",
        "objectives": [
            {"metric": "accuracy", "goal": "maximize", "rule": "best", "words": "the largest accuracy"},
        ],
        "trials": 40,
        "repeat": 1,
        "concurrency": 4,
        "stop": "asha",
    }
    fake_server.answers["POST /plans"] = (200, {**PLAN, "search": search})
    result = riseml("train", "--dry-run")
    expected = "Search: tpe, 40 trials, 4 at the same time, maximize accuracy, stopped early by asha"
    assert expected in result.out.splitlines()
    assert "A search of 40 trials; nothing was started." in result.err
