"""Volumes with fetched data on an engine: which are riseml's own, and what their loss means for a job."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import docker
import pytest
import requests

from riseml.base.errors import EngineError
from riseml.base.names import FETCHED_VOLUME
from riseml.executors.base import DataGone
from riseml.executors.capabilities import DataVolume
from riseml.executors.docker import labels
from riseml.executors.docker.data_volumes import EngineData, demand_volumes, sync_volume
from riseml.executors.docker.helpers import HelperRegistry, Helpers
from riseml.model import Mount
from riseml.spec.pool.types import Volume
from tests.unit.executors.docker.held_containers import OTHER, SERVER, FakeEngine, ProgramEngine

NAME = f"{FETCHED_VOLUME}5e17e4-ab12"
MOUNT = Mount(NAME, "/data", volume=Volume(NAME))


class VolumeEngine(ProgramEngine):
    """An engine with volumes, by their names, and their labels."""

    def __init__(self, code: int = 0) -> None:
        super().__init__(code)
        self.held: dict[str, dict[str, str]] = {}
        self.mounted: set[str] = set()  # by a container

    def volumes(self, *_: Any, filters: Any = None, **_options: Any) -> Any:
        names = [name for name, marks in self.held.items() if all(self._has(marks, mark) for mark in filters["label"])]
        return {"Volumes": [{"Name": name} for name in names] or None}

    def create_volume(self, name: Any = None, driver: Any = None, driver_opts: Any = None, labels: Any = None) -> Any:
        self.held.setdefault(name, labels)

    def inspect_volume(self, name: Any) -> Any:
        if name not in self.held:
            raise docker.errors.NotFound("no such volume", requests.Response())
        return {"Labels": self.held[name] or None}

    def remove_volume(self, name: Any, *_: Any, **_options: Any) -> None:
        answer = requests.Response()
        answer.status_code = 409 if name in self.mounted else 404
        if name in self.mounted or self.held.pop(name, None) is None:
            raise docker.errors.APIError("refused", answer, "refused")


def make_data(api: VolumeEngine) -> EngineData:
    return EngineData(Helpers(FakeEngine(api), SERVER, HelperRegistry()))


def test_a_server_lists_the_volumes_that_it_has_made() -> None:
    api = VolumeEngine()
    data = make_data(api)
    assert (data.list_volumes(), data.check()) == (frozenset(), ())
    data.make_volume(DataVolume(NAME, "ab12"))
    api.held["of-another-server"] = {labels.SERVER: OTHER, labels.DATA: "ab12"}
    api.held["of-a-user"] = {}
    assert data.list_volumes() == {NAME}
    assert [finding.message for finding in data.check()] == ["one volume has a copy of fetched data"]


def test_a_volume_that_is_gone_is_removed_again_and_one_in_use_is_not() -> None:
    api = VolumeEngine()
    data = make_data(api)
    data.make_volume(DataVolume(NAME, "ab12"))
    api.mounted.add(NAME)
    with pytest.raises(EngineError, match=f"a container uses the volume {NAME}"):
        data.remove_volume(NAME)
    api.mounted.clear()
    data.remove_volume(NAME)
    data.remove_volume(NAME)
    assert api.held == {}


@pytest.mark.parametrize(
    ("volumes", "gone"),
    [({NAME: {labels.DATA: "ab12"}}, False), ({NAME: {}}, True), ({}, True)],
    ids=["riseml's own", "an empty one that the engine has just made", "none"],
)
def test_a_job_does_not_start_with_an_empty_volume_in_the_place_of_its_data(
    volumes: Mapping[str, dict[str, str]], *, gone: bool
) -> None:
    api = VolumeEngine()
    api.held.update(volumes)
    api.add("c1", {})
    if not gone:
        demand_volumes(api, "c1", [MOUNT])
        assert (list(api.rows), list(api.held)) == (["c1"], [NAME])
        return
    with pytest.raises(DataGone, match=NAME):
        demand_volumes(api, "c1", [MOUNT])
    assert (api.rows, api.held) == ({}, {})


def test_volumes_of_users_and_folders_are_not_riseml_s_to_demand() -> None:
    api = VolumeEngine()
    api.add("c1", {})
    demand_volumes(api, "c1", [Mount("outputs", "/output", volume=Volume("outputs")), Mount("/srv/data", "/data")])
    assert list(api.rows) == ["c1"]


@pytest.mark.parametrize(
    ("code", "message"),
    [(0, ""), (5, "cannot write the data to its disk: Input/output error"), (139, "exit code 139")],
)
def test_data_that_a_host_cannot_write_is_an_error(code: int, message: str) -> None:
    api = VolumeEngine(code)
    helpers = make_data(api).helpers
    if not message:
        sync_volume(api, helpers, MOUNT)
        return
    with pytest.raises(EngineError, match=message):
        sync_volume(api, helpers, MOUNT)
