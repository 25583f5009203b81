"""What differs between experiments, as the server tells it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from riseml.planning.grid import grid_points
from riseml.planning.image import Manifest
from riseml.planning.plan import make_plan
from riseml.server.api.views.comparison import describe_config
from riseml.server.api.views.record_views import count_run_seconds
from riseml.spec.config.loader import load_config
from riseml.store.outcomes import ExperimentRun
from tests.support.archives import find_digest, pack
from tests.support.rig import single
from tests.unit.server.api.conftest import SUBMISSION


def submit(client: httpx.Client, config: str, files: dict[str, str], **more: Any) -> str:
    archive = pack({"riseml.yml": config, **files})
    digest = find_digest(archive)
    assert client.put(f"/v1/snapshots/{digest}", content=archive).status_code == 201
    answer = client.post("/v1/experiments", json=SUBMISSION | {"config": config, "snapshot": digest, **more})
    assert answer.status_code == 201, answer.text
    name: str = answer.json()["id"]
    return name


def compare(client: httpx.Client, *names: str) -> Any:
    answer = client.get("/v1/comparison", params={"of": names})
    assert answer.status_code == 200, answer.text
    return answer.json()


def by_name(differences: list[dict[str, Any]]) -> dict[str, list[str | None]]:
    return {one["name"]: one["values"] for one in differences}


def test_only_what_differs_is_in_the_answer(client: httpx.Client) -> None:
    text = single(
        "python t.py {{lr}}", parameters={"lr": 0.1, "depth": 3}, env={"MODE": "a", "TOKEN": "one", "SAME": "x"}
    )
    first = submit(client, text, {"t.py": "1", "gone.py": "2", "same.py": "3"})
    text = single(
        ["echo 1", "python t.py {{lr}}"],
        parameters={"lr": 0.2, "depth": 3},
        install="pip install -r more.txt",
        env={"TOKEN": "two", "SAME": "x"},
    )
    files = {"t.py": "1!", "more.txt": "pip", "same.py": "3"}
    second = submit(client, text, files, settings=[["train.resources.mem", "128MiB"], ["train.retry", "2"]])
    found = compare(client, first, second)
    assert [(one["id"], one["seconds"]) for one in found["experiments"]] == [(first, None), (second, None)]
    assert by_name(found["parameters"]) == {"lr": ["0.1", "0.2"]}
    assert by_name(found["config"]) == {
        "run": ["python t.py {{lr}}", "echo 1\npython t.py {{lr}}"],
        "resources.mem": ["64", "128"],
        "retry.max": ["0", "2"],
        "env.MODE": ["(set)", None],
        "env.TOKEN": ["(set, with different values)", "(set, with different values)"],
    }
    assert by_name(found["environment"]) == {
        "install": [None, "pip install -r more.txt"],
        "files that install reads": [None, "more.txt"],
    }
    changes = {one["path"]: [version is not None for version in one["versions"]] for one in found["code"]}
    assert changes == {
        "riseml.yml": [True, True],
        "t.py": [True, True],
        "gone.py": [True, False],
        "more.txt": [False, True],
    }
    assert found["code_unknown"] == []
    assert "two" not in str(found)


def test_equal_experiments_differ_in_nothing(client: httpx.Client) -> None:
    names = [submit(client, single("true"), {"a.py": "1"}) for _ in range(3)]
    found = compare(client, *names)
    assert [found[key] for key in ("parameters", "config", "environment", "code", "metrics", "code_unknown")] == [
        []
    ] * 6


@pytest.mark.parametrize(
    ("names", "status", "message"),
    [
        (["1", "999"], 404, "there is no experiment 999"),
        (["2", "1"], 400, "2 is a set"),
        (["1", "2.1.train"], 400, "2.1.train is a job"),
        (["1"], 422, ""),
        (["1", "x y"], 400, "is not an experiment ID"),
        (["1"] * 21, 422, ""),
    ],
)
def test_what_cannot_be_compared_is_refused(client: httpx.Client, names: list[str], status: int, message: str) -> None:
    answer = client.get("/v1/comparison", params={"of": names})
    assert answer.status_code == status
    assert message in answer.text


def test_the_hint_for_a_large_set_does_not_look_like_all_of_it(client: httpx.Client) -> None:
    config = "project: x\ntrain: {image: a, run: b, parameters: {lr: [1, 2, 3, 4]}}\n"
    name = submit(client, config, {})
    answer = client.get("/v1/comparison", params={"of": [name, "1"]})
    assert f"name its experiments: {name}.1 {name}.2 {name}.3 ..." in answer.text


def test_a_plan_is_described_in_the_keys_of_its_file() -> None:
    spec = load_config(
        "project: x\ntrain: {framework: tensorflow, run: a, max_duration: 1h, limits: {mem: 2GiB},"
        " resources: {labels: {disk: ssd}}, tensorflow: {distributed: {worker: 2, ps: {resources: {cpus: 4}}}}}\n"
    )
    found = describe_config(make_plan(spec, grid_points(spec.train)[0], Manifest()))
    wanted = {
        "project": "x",
        "framework": "tensorflow",
        "jobs": "master, worker.1, ps.1",
        "ps.resources.cpus": "4",
        "master.resources.cpus": "1",
        "worker.resources.labels": "disk=ssd",
        "worker.limits.mem": "2048",
        "worker.run": "a",
        "max_duration": "3600",
        "retry.scope": "experiment",
    }
    assert found.items() >= wanted.items()


def test_an_experiment_that_runs_has_its_time_so_far() -> None:
    begun = datetime(2026, 8, 31, 7, 23, 46, tzinfo=UTC)
    run = ExperimentRun(begun)
    assert count_run_seconds(run, begun + timedelta(seconds=5)) == 5.0
    assert count_run_seconds(run._replace(ended_at=begun + timedelta(seconds=3)), begun + timedelta(seconds=5)) == 3.0
    assert count_run_seconds(ExperimentRun(), begun) is None
