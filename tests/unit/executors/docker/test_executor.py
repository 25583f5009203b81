"""When an executor for an engine reports the end of a container: not before a late event may have arrived."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import docker
import pytest

from riseml.base.errors import Unreachable
from riseml.base.names import HostName
from riseml.executors.docker.executor import DockerExecutor
from riseml.executors.docker.exit_events import ExitEvents
from riseml.executors.transports.engine_client import Engine
from riseml.model import ContainerObservation
from riseml.spec.pool.types import HostSpec
from tests.support.waiting import DEADLINE, wait_for
from tests.unit.executors.docker.observed_jobs import KEY, LATE, MARKS, RUNS, ended, event, inspection


class EngineWithOneJob(docker.APIClient):
    """An engine whose only job was killed; it does not know why."""

    def __init__(self) -> None:
        """Connects to nothing."""

    def containers(self, *_: object, **__: object) -> list[dict[str, Any]]:
        return [{"Id": "abc", "State": "exited", "Labels": MARKS}]

    def inspect_container(self, *_: object) -> dict[str, Any]:
        return inspection(ExitCode=137)

    def networks(self, *_: object, **__: object) -> list[dict[str, Any]]:
        return []

    def info(self) -> dict[str, Any]:
        return {"NCPU": 1, "MemTotal": 2**30}

    def ping(self) -> bool:
        return True


@pytest.fixture
def executor(monkeypatch: pytest.MonkeyPatch) -> DockerExecutor:
    @contextmanager
    def give_client(_: Engine, **__: object) -> Iterator[docker.APIClient]:
        yield EngineWithOneJob()

    monkeypatch.setattr(Engine, "api", give_client)
    monkeypatch.setattr(Engine, "stream", give_client)
    host = HostSpec(HostName("h1"), "unix:///run/docker.sock")
    return DockerExecutor(host, "5e17e4", Engine(host.url))


def observe(executor: DockerExecutor) -> tuple[ContainerObservation, float | None]:
    seen = executor.observe(frozenset())
    return seen.containers[KEY], seen.settles_in


def test_an_end_that_is_held_back_is_reported_when_the_late_event_arrives(executor: DockerExecutor) -> None:
    seconds = [100.0]
    executor._exit_events = ExitEvents(lambda: seconds[0])
    executor._exit_events.note_event(event("die"))
    assert observe(executor) == (RUNS, 0.5)
    seconds[0] += 0.25
    assert observe(executor) == (RUNS, 0.25)
    executor._exit_events.note_event(event("oom"))
    assert observe(executor) == (ended(137, oom=True), None)


def test_an_end_that_is_held_back_is_reported_after_its_deadline(executor: DockerExecutor) -> None:
    seconds = [100.0]
    executor._exit_events = ExitEvents(lambda: seconds[0])
    executor._exit_events.note_event(event("die"))
    assert observe(executor) == (RUNS, 0.5)
    seconds[0] += 0.5
    assert observe(executor) == (ended(137), None)


def test_a_container_is_late_to_a_new_server_until_its_engine_answers(
    executor: DockerExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers, asked = threading.Event(), itertools.count()

    def answer_late(*_: object) -> dict[str, Any]:
        if next(asked) == 0:
            raise Unreachable("the Docker Engine does not answer: timed out")
        answers.wait(DEADLINE)
        return inspection(ExitCode=137)

    monkeypatch.setattr(EngineWithOneJob, "inspect_container", answer_late)
    for _ in range(2):
        assert executor.observe(frozenset()).containers[KEY] == LATE
    answers.set()
    wait_for("its end is known", lambda: observe(executor)[0] == ended(137), DEADLINE)
