"""What a TensorBoard or a notebook is refused for, and how they are shown."""

from __future__ import annotations

import httpx
import pytest

from tests.support.rig import single
from tests.unit.server.api.conftest import SUBMISSION


@pytest.mark.parametrize(
    ("names", "status", "message"),
    [
        (["99"], 404, "there is no experiment 99"),
        (["x y"], 400, "'x y' is not an experiment ID"),
        (["1.train"], 400, "1.train is a job"),
        (["3"], 409, "experiment 3 has not begun: it has no output"),
        (["2"], 409, "set 2 never ran: it has no output"),
        (["1\0"], 400, "the request holds a NUL character"),
        ([], 422, ""),
        (["1"] * 501, 422, ""),
    ],
    ids=[
        "unknown",
        "no ID",
        "a job",
        "an experiment before its start",
        "a set that never ran",
        "NUL",
        "none",
        "too many",
    ],
)
def test_what_cannot_be_shown_is_refused(client: httpx.Client, names: list[str], status: int, message: str) -> None:
    answer = client.post("/v1/tensorboards", json={"experiments": names, "executor": "process"})
    assert (answer.status_code, message in answer.text) == (status, True), answer.text


def test_a_notebook_is_shown_as_one_without_its_token(client: httpx.Client) -> None:
    config = single("train {{lr}}", parameters={"lr": [0.5, 0.25]}, env={"JUPYTER_TOKEN": "mine"})
    order = SUBMISSION | {"config": config, "notebook": {"idle_timeout": 60}, "executor": "process"}
    found = client.post("/v1/experiments", json=order).json()
    assert (found["type"], found["shows"], found["experiments"]) == ("notebook", [], [])
    assert [job["name"] for job in found["jobs"]] == ["build", "notebook"]
    assert found["parameters"] == {"lr": "0.5"}
    everything = {"all": "true", "project": "toaster", "limit": "1"}
    newest = [
        client.get("/v1/experiments", params=query).json()["experiments"][0]
        for query in (everything, everything | {"companions": "false"})
    ]
    assert newest[0]["id"] == found["id"]
    assert newest[1]["type"] != "notebook"
    plan = client.post("/v1/plans", json=order).json()
    (step,) = plan["install"]
    assert step.endswith("import jupyterlab' 2>/dev/null || python3 -m pip install jupyterlab")
    refused = client.post("/v1/tensorboards", json={"experiments": [found["id"]], "executor": "process"})
    assert f"{found['id']} is a notebook and has no training to show" in refused.text


def test_a_notebook_idles_a_second_at_least(client: httpx.Client) -> None:
    order = SUBMISSION | {"notebook": {"idle_timeout": 0}, "executor": "process"}
    assert client.post("/v1/experiments", json=order).status_code == 422
