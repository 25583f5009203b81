"""A TensorBoard or a notebook: what it is refused for, where it runs, and how it is shown."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest

from riseml.base.errors import Conflict, NotFound, Refused, RisemlError, Unreachable
from riseml.base.names import HOST_LABEL, HostName
from riseml.base.settings import Settings
from riseml.model import Owner, Plan
from riseml.planning.plan import first_jobs
from riseml.server.api.submissions.companions import make_tensorboard
from riseml.server.app import make_application
from riseml.server.services import Services
from riseml.store.insertion import NewExperiments
from tests.support.callers import ME
from tests.support.rig import single
from tests.unit.control.simulation import make_plan
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


NOW = datetime(2026, 8, 31, 7, 23, 46, tzinfo=UTC)


@pytest.fixture
def services(tmp_path: Path) -> Iterator[Services]:
    """A pool of h1 and h2, which do not answer. Experiments 1 and 2 ran on h1, 3 on h2, and 4 on h9."""
    url, rest = f"unix://{tmp_path}", "cpus: 2, mem: 4GiB"
    hosts = [f"{{name: h{n}, url: '{url}/h{n}.sock', address: 192.0.2.{n}, {rest}}}" for n in (1, 2)]
    (tmp_path / "pool.yml").write_text(f"hosts: [{', '.join(hosts)}]\n")
    settings = Settings(tmp_path, tmp_path / "output", tmp_path / "data", executor="docker")
    made = make_application(settings, threading.Event())
    for host in ("h1", "h1", "h2", "h9"):
        _add_experiment(made.services, make_plan("train"), HostName(host))
    yield made.services
    made.services.hosts.close()
    made.database.close()


def _add_experiment(services: Services, plan: Plan, host: HostName | None) -> None:
    jobs = first_jobs(plan)
    new = NewExperiments(ME.owner, plan.project, "", "", ((plan, jobs),))
    ((detail,), _) = services.stores.experiments.add_experiments(new, NOW)
    ran = replace(detail.experiment, jobs=tuple(replace(job, host=host) for job in jobs), started_at=NOW)
    assert services.stores.experiments.save_decision(detail.experiment, ran, NOW)
    Path(services.settings.output, ME.owner.user, plan.project, str(ran.number)).mkdir(parents=True)


def test_it_is_placed_on_the_host_of_the_outputs(services: Services) -> None:
    plan = make_tensorboard({"experiments": ["1", "2"]}, ME, services).plans[0][0]
    assert plan.jobs[0].resources.labels == ((HOST_LABEL, "h1"),)


@pytest.mark.parametrize(
    ("names", "error", "message"),
    [
        (["1", "3"], Refused, "the outputs are on several hosts, and one TensorBoard runs on one: 1 on h1; 3 on h2"),
        (["4"], Unreachable, "h9, the host of the outputs, is not in the pool"),
    ],
)
def test_other_outputs_are_refused(
    services: Services, names: list[str], error: type[RisemlError], message: str
) -> None:
    with pytest.raises(error, match=message):
        make_tensorboard({"experiments": names}, ME, services)


def test_outputs_of_an_experiment_that_waits_for_a_retry_have_no_host_now(services: Services) -> None:
    _add_experiment(services, make_plan("train"), None)
    with pytest.raises(Conflict, match="5 has no host now, and its outputs are on the host of its last attempt"):
        make_tensorboard({"experiments": ["5"]}, ME, services)


def test_a_lost_host_is_named(services: Services) -> None:
    services.hosts.pool.observe_hosts(frozenset(), NOW)
    with pytest.raises(Unreachable, match="h1, the host of the outputs, does not answer"):
        make_tensorboard({"experiments": ["1"]}, ME, services)


def test_outputs_that_are_gone_are_named(services: Services) -> None:
    owner: Owner = ME.owner
    folder = Path(services.settings.output, owner.user, "toaster", "1")
    folder.rmdir()
    with pytest.raises(NotFound, match=f"the output folder of 1 is gone: {folder}"):
        make_tensorboard({"experiments": ["1"]}, ME, services)
