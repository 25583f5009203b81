"""The application on a port of its own: its host has been seen, its loop stands still, nothing is ever started."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import UTC, datetime

import httpx
import pytest
import uvicorn
from starlette.types import ASGIApp

from riseml.base.names import JobName
from riseml.base.settings import Settings
from riseml.base.states import State
from riseml.model import Frame, JobKey
from riseml.server.app import Application, make_application
from tests.support.archives import find_digest, pack
from tests.support.callers import call_as
from tests.support.rig import single
from tests.support.stores import open_database
from tests.support.waiting import DEADLINE
from tests.support.without_tls import NO_AUTHORITIES

NOW = datetime(2026, 8, 31, 7, 23, 46, tzinfo=UTC)
CONFIG = single("echo {{lr}}", parameters={"lr": 0.1})
ARCHIVE = pack({"riseml.yml": CONFIG})
DIGEST = find_digest(ARCHIVE)
SUBMISSION = {"project": "toaster", "file": "riseml.yml", "config": CONFIG, "snapshot": DIGEST}
JSON = {"Content-Type": "application/json"}
OTHER = "0" * 64


@pytest.fixture(scope="module", params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def served_application(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Application]:
    home = tmp_path_factory.mktemp("api")
    with ExitStack() as stack:
        store = None
        if request.param == "postgresql":
            store = stack.enter_context(open_database(request.getfixturevalue("postgres")))
        settings = Settings(home, home / "output", home / "data", executor="process", store=store)
        made = make_application(settings, threading.Event())
        stack.callback(made.database.close)
        made.services.hosts.pool.observe_hosts(frozenset(), NOW)
        yield made


@pytest.fixture(scope="module")
def url(served_application: Application) -> Iterator[str]:
    """Where it is served. Experiment 1 has ended and printed a line, 2 is a set of two that has ended, 3 waits."""
    with serve(served_application.api) as address:
        _fill(served_application, address)
        yield address


@contextmanager
def serve(api: ASGIApp) -> Iterator[str]:
    """Its address. Every request is one of this user."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(16)  # before the first request, however late the server's thread begins
        config = uvicorn.Config(
            call_as(api),
            log_config=None,
            log_level="critical",
            lifespan="off",
            ws="none",
            timeout_keep_alive=int(DEADLINE),  # a busy machine may take longer than uvicorn's 5 s between two requests
        )
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        server.should_exit = True
        thread.join()


def _fill(made: Application, url: str) -> None:
    with httpx.Client(base_url=url, timeout=DEADLINE, verify=NO_AUTHORITIES) as client:
        assert client.put(f"/v1/snapshots/{DIGEST}", content=ARCHIVE).status_code == 201
        assert client.post("/v1/experiments", json=SUBMISSION).status_code == 201
        both = single("echo {{lr}}", parameters={"lr": [0.1, 0.2]})
        assert client.post("/v1/experiments", json=SUBMISSION | {"config": both}).status_code == 201
        close_all(made)
        made.services.stores.logs.append_frames(
            JobKey(1, JobName("train"), 1), [Frame("2026-08-31T07:23:46Z", 1, b"a line\n")]
        )
        assert client.post("/v1/experiments", json=SUBMISSION).status_code == 201


@pytest.fixture
def client(url: str) -> Iterator[httpx.Client]:
    """Asks it."""
    with httpx.Client(base_url=url, timeout=DEADLINE, verify=NO_AUTHORITIES) as made:
        yield made


def close_all(application: Application) -> None:
    """End every experiment, so that its log comes to an end."""
    experiments = application.services.stores.experiments
    for one in experiments.load_world().experiments:
        assert experiments.save_decision(one, replace(one, state=State.FINISHED, closed=True, ended_at=NOW), NOW)


def say(response: httpx.Response) -> str:
    """The sentence of a refusal, which has the shape of all refusals."""
    error = response.json()["error"]
    assert set(error) >= {"kind", "message", "hint", "exit_code"}
    assert "Traceback" not in response.text
    return str(error["message"])
