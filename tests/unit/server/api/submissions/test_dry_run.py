"""What would be refused, asked before the project's files are sent."""

from __future__ import annotations

import httpx
import pytest

from riseml.frameworks import registry
from riseml.frameworks.plain import Plain
from tests.support.rig import single
from tests.unit.server.api.conftest import SUBMISSION

BARE = {name: value for name, value in SUBMISSION.items() if name != "snapshot"}


def test_a_dry_run_of_a_valid_project_stores_nothing(client: httpx.Client) -> None:
    before = client.get("/v1/experiments", params={"all": "true"}).json()
    answer = client.post("/v1/experiments/check", json=BARE)
    assert (answer.status_code, answer.content) == (204, b"")
    assert client.get("/v1/experiments", params={"all": "true"}).json() == before


def test_an_experiment_without_a_framework_has_no_name_for_it(client: httpx.Client) -> None:
    assert client.post("/v1/plans", json=BARE).json()["framework"] == ""
    made = client.post("/v1/experiments", json=SUBMISSION).json()
    assert made["framework"] == ""


HOROVOD = "framework: tensorflow, tensorflow: {horovod: {workers: 2}}"


@pytest.mark.parametrize(
    ("config", "status", "message"),
    [
        (single("true", resources={"gpus": 99}), 403, "this can never run"),
        (
            single("{{n}}", resources={"gpus": "{{n}}"}, parameters={"n": [0, 99, 100]}),
            403,
            "this can never run with n=99: the job needs",
        ),
        (single("{{n}}", resources={"gpus": "{{n}}"}, parameters={"n": [0, -1]}), 422, "not -1 (with n=-1)"),
        (single("{{lr}}{{b}}", parameters={"lr": list(range(50)), "b": list(range(50))}), 422, ""),
        (single("true $(echo {{note}})", parameters={"note": ["a", "b c"]}), 400, "'b c' of {{note}} needs quoting"),
        (single("true", env=["API_TOKEN"]), 400, "train.env passes API_TOKEN through"),
        (
            f"project: p\ntrain: {{{HOROVOD}, image: x, run: y}}\n",
            400,
            "cannot run the framework 'horovod'",
        ),
        ("project: p\ntrain: {run: y, imagee: z}\n", 422, ""),
    ],
    ids=["room", "room of a point", "bad point", "grid", "quoting", "env", "framework", "file"],
)
def test_it_is_refused_as_the_submit_would_be(
    client: httpx.Client, monkeypatch: pytest.MonkeyPatch, config: str, status: int, message: str
) -> None:
    monkeypatch.setattr(registry, "FRAMEWORKS", (Plain(),))  # a server that knows fewer frameworks than the file
    answers = [client.post(f"/v1/experiments{path}", json=SUBMISSION | {"config": config}) for path in ("/check", "")]
    assert [answer.status_code for answer in answers] == [status, status]
    assert answers[0].json() == answers[1].json()
    assert message in answers[0].json()["error"]["message"]


def test_an_executor_that_the_server_does_not_use_is_refused(client: httpx.Client) -> None:
    refused = client.post("/v1/experiments/check", json=BARE | {"executor": "docker"})
    assert refused.status_code == 403
    assert "uses the process executor, and the submission asks for docker" in refused.json()["error"]["message"]
    assert client.post("/v1/experiments/check", json=BARE | {"executor": "process"}).status_code == 204
    assert client.post("/v1/experiments/check", json=BARE | {"executor": "podman"}).status_code == 422


@pytest.mark.parametrize(
    ("image", "repository", "status"),
    [
        ("python:3.11", "python", 204),
        ("docker.io/library/python", "python", 204),
        ("localhost:5000/x:1", "localhost:5000/x", 204),
        ("python:3.11", "evil.example/python", 400),
        ("python:3.11", "evil", 400),
    ],
)
def test_a_pin_is_of_the_repository_of_its_image(
    client: httpx.Client, image: str, repository: str, status: int
) -> None:
    pinned = [{"image": image, "digest": f"{repository}@sha256:{'a' * 64}"}]
    changed = BARE | {"config": single("true", image=image), "pinned": pinned}
    assert client.post("/v1/experiments/check", json=changed).status_code == status
