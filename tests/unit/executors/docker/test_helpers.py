"""The helper containers of a server: each is found again by its server, and none outlives its use."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import docker
import pytest
import requests

from riseml.base.errors import Unreachable
from riseml.base.names import HostName
from riseml.executors.docker import labels
from riseml.executors.docker.helpers import HelperRegistry, Helpers
from riseml.executors.docker.inventory import list_items
from riseml.executors.docker.swarm import SwarmManagement
from riseml.executors.transports.engine_client import Engine
from tests.support.waiting import DEADLINE, wait_for

SERVER = "5e17e4a0" * 4
OTHER = "07e4a05e" * 4


class HeldContainers(docker.APIClient):
    """The containers of an engine, by their names; it has no connection."""

    def __init__(self) -> None:
        self.rows: dict[str, dict[str, Any]] = {}
        self.note_create: Callable[[str], None] = lambda _: None
        self.is_busy = False  # it removes nothing in time

    def create_container_from_config(self, config: Any, name: str | None = None, platform: str | None = None) -> Any:
        self.note_create(str(name))
        self.add(str(name), config["Labels"])

    def add(self, name: str, marks: dict[str, str], state: str = "created", created: float = 0) -> None:
        self.rows[name] = {"Id": name, "Names": [f"/{name}"], "Labels": marks, "State": state, "Created": created}

    def remove_container(self, container: Any, **_: Any) -> None:  # type: ignore[override]  # as it is called here
        if self.is_busy:
            raise requests.exceptions.ReadTimeout
        if self.rows.pop(container, None) is None:
            raise docker.errors.NotFound("no such container", requests.Response())

    def containers(self, *_: Any, filters: Any = None, **_options: Any) -> Any:
        wanted = filters["label"] if isinstance(filters["label"], list) else [filters["label"]]
        return [row for row in self.rows.values() if all(self._has(row["Labels"], mark) for mark in wanted)]

    def images(self, *_: Any, **_options: Any) -> Any:
        return []

    def networks(self, *_: Any, **_options: Any) -> Any:
        return []

    def volumes(self, *_: Any, **_options: Any) -> Any:
        return {"Volumes": None}

    @staticmethod
    def _has(marks: dict[str, str], wanted: str) -> bool:
        key, _, value = wanted.partition("=")
        return key in marks and value in ("", marks[key])


class FakeEngine(Engine):
    """An engine that answers from memory."""

    def __init__(self, api: HeldContainers) -> None:
        super().__init__("unix:///none")
        self.fake = api

    @contextmanager
    def api(self, *, patient: bool = False, brief: bool = False) -> Iterator[docker.APIClient]:
        with self._translate_errors():
            yield self.fake


@dataclass(frozen=True)
class HelperSite:
    api: HeldContainers
    helpers: Helpers


@pytest.fixture
def place() -> HelperSite:
    api = HeldContainers()
    return HelperSite(api, Helpers(FakeEngine(api), SERVER, HelperRegistry()))


def test_two_helpers_for_one_purpose_have_names_of_their_own_and_go_after_their_use(place: HelperSite) -> None:
    with place.helpers.lend(place.api, "disk", {}) as first, place.helpers.lend(place.api, "disk", {}) as second:
        assert {first, second} == set(place.api.rows)
        assert first.startswith(f"riseml-{SERVER[:8]}-disk-")
        assert all(labels.is_helper(row["Labels"]) for row in place.api.rows.values())
    assert place.api.rows == {}


def test_the_next_server_removes_the_helpers_of_a_killed_one_and_nothing_else(place: HelperSite) -> None:
    mine = {labels.SERVER: SERVER}
    place.api.add("left", {**mine, labels.HELPER: "disk"})
    kept = {
        "a-job": {**mine, labels.JOB: "train", labels.HELPER: ""},  # its image is a layer of code
        "a-container-of-a-user": {**mine, labels.HELPER: ""},  # of such an image, too
        "a-helper-of-another-server": {labels.SERVER: OTHER, labels.HELPER: "disk"},
    }
    for name, marks in kept.items():
        place.api.add(name, marks)
    with place.helpers.lend(place.api, "files", {}) as used:
        place.helpers.remove_forgotten(place.api)
        assert place.api.rows.keys() == {*kept, used}


def test_a_helper_at_work_is_no_leftover(place: HelperSite) -> None:
    def names() -> list[str]:
        found = list_items(place.api, HostName("h1"), place.helpers.registry.is_used)
        return [item.name for item in found]

    place.api.add("left", {labels.SERVER: SERVER, labels.HELPER: "disk"})
    with place.helpers.lend(place.api, "disk", {}):
        assert names() == ["left"]


def test_a_server_that_stops_removes_its_helpers_and_makes_no_new_ones(place: HelperSite) -> None:
    registry = place.helpers.registry
    place.helpers.make(place.api, "files", {})  # an idle one: no thread will give it back
    registry.end(DEADLINE)
    assert place.api.rows == {}
    with pytest.raises(Unreachable, match="the server stops"), place.helpers.lend(place.api, "disk", {}):
        pass
    assert place.api.rows == {}


def test_a_helper_that_its_engine_makes_while_the_server_stops_is_removed(place: HelperSite) -> None:
    registry, asked = place.helpers.registry, threading.Event()
    failures: list[Unreachable] = []

    def wait_for_the_end(_: str) -> None:
        asked.set()
        wait_for("the server stops", lambda: registry._is_ended, DEADLINE)

    def work() -> None:
        try:
            with place.helpers.lend(place.api, "disk", {}):
                pass
        except Unreachable as error:
            failures.append(error)

    place.api.note_create = wait_for_the_end
    worker = threading.Thread(target=work)
    worker.start()
    assert asked.wait(DEADLINE)
    registry.end(DEADLINE)
    assert (place.api.rows, registry.list_engines()) == ({}, [])
    worker.join()
    assert len(failures) == 1


def test_a_helper_that_a_busy_engine_keeps_goes_when_the_engine_answers(place: HelperSite) -> None:
    place.api.is_busy = True
    with place.helpers.lend(place.api, "disk", {}) as name:
        pass
    assert list(place.api.rows) == [name], "what it was for is done"
    assert not place.helpers.registry.is_used(name)
    place.api.is_busy = False
    wait_for("it is gone", lambda: not place.api.rows, DEADLINE)


def test_a_helper_that_an_engine_makes_without_an_answer_goes_when_it_is_there(place: HelperSite) -> None:
    asked: list[str] = []

    def break_off(name: str) -> None:
        asked.append(name)
        raise requests.exceptions.ConnectionError

    place.api.note_create = break_off
    with pytest.raises(requests.exceptions.ConnectionError):
        place.helpers.make(place.api, "disk", {})
    place.api.add(asked[0], {labels.SERVER: SERVER, labels.HELPER: "disk"})
    wait_for("it is gone", lambda: not place.api.rows, DEADLINE)


@pytest.mark.parametrize(
    ("marks", "state", "age", "is_shared"),
    [
        ({labels.SERVER: OTHER, labels.JOB: "train"}, "running", 9999, True),
        ({labels.SERVER: OTHER, labels.JOB: "train"}, "paused", 9999, True),
        ({labels.SERVER: OTHER, labels.JOB: "train"}, "created", 1, True),  # about to start
        ({labels.BUILD_SERVER: OTHER}, "running", 9999, True),
        ({labels.SERVER: OTHER, labels.JOB: "train"}, "created", 9999, False),  # its server is gone
        ({labels.SERVER: OTHER, labels.JOB: "train"}, "exited", 1, False),
        ({labels.SERVER: OTHER, labels.HELPER: "disk"}, "running", 1, False),
        ({labels.SERVER: OTHER, labels.HELPER: "files", labels.BUILD_SERVER: ""}, "running", 1, False),
        ({labels.SERVER: SERVER, labels.JOB: "train", labels.BUILD_SERVER: ""}, "running", 1, False),
        ({labels.BUILD_SERVER: ""}, "running", 1, False),  # a user's own, of an image that riseml made
    ],
)
def test_another_server_works_on_a_host_where_its_jobs_or_builds_run(
    place: HelperSite,
    monkeypatch: pytest.MonkeyPatch,
    marks: dict[str, str],
    state: str,
    age: float,
    *,
    is_shared: bool,
) -> None:
    monkeypatch.setattr("riseml.executors.docker.swarm.time.time", lambda: 20_000.0)
    place.api.add("one", marks, state, 20_000.0 - age)
    assert SwarmManagement([], SERVER, frozenset())._is_shared(place.helpers.engine) is is_shared
