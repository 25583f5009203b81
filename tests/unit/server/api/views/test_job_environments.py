"""What `riseml env` is answered for a job whose host has left the pool."""

from __future__ import annotations

import threading
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import httpx

from riseml.base.names import HostName
from riseml.base.settings import Settings
from riseml.server.app import make_application
from tests.support.waiting import DEADLINE
from tests.support.without_tls import NO_AUTHORITIES
from tests.unit.server.api.conftest import ARCHIVE, DIGEST, NOW, SUBMISSION, serve


def test_the_environment_of_a_job_is_known_when_its_host_has_left_the_pool(tmp_path: Path) -> None:
    settings = Settings(tmp_path, tmp_path / "output", tmp_path / "data", executor="process")
    made = make_application(settings, threading.Event())
    with (
        closing(made.database),
        serve(made.api) as url,
        httpx.Client(base_url=url, timeout=DEADLINE, verify=NO_AUTHORITIES) as client,
    ):
        made.services.hosts.pool.observe_hosts(frozenset(), NOW)
        assert client.put(f"/v1/snapshots/{DIGEST}", content=ARCHIVE).status_code == 201
        assert client.post("/v1/experiments", json=SUBMISSION).status_code == 201
        experiments = made.services.stores.experiments
        (found,) = experiments.load_world().experiments
        jobs = tuple(replace(job, host=HostName("gpu9")) for job in found.jobs)
        assert experiments.save_decision(found, replace(found, jobs=jobs, placed_at=NOW), NOW)
        answer = client.get("/v1/experiments/1/environment")
    assert answer.status_code == 200, answer.text
    assert answer.json()["jobs"]["train"]["variables"]["OUTPUT_DIR"] == "/output"
