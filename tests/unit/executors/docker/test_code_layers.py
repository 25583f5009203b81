"""Which projects get a layer, and which layers are removed. The layers themselves: tests/real/docker."""

from __future__ import annotations

from typing import Any

import docker
import pytest

from riseml.base.names import JobName
from riseml.executors.docker import labels
from riseml.executors.docker.code_layers import (
    LEAST_COMPRESSED,
    LEAST_COUNT,
    LEAST_SIZE,
    MOST_BYTES,
    MOST_LAYERS,
    CodeLayers,
    choose_surplus,
    find_layer_name,
    hides_code,
    is_layer,
    is_worth_it,
    stores_compressed,
)
from riseml.executors.docker.helpers import HelperRegistry, Helpers
from riseml.executors.transports.engine_client import Engine
from riseml.files.archives.project_files import StateChanges
from riseml.model import Image, ImageObservation, JobKey, Launch, Owner
from riseml.spec.config.types import Limits, Resources

HELPERS = Helpers(Engine("unix:///none"), "5e17e4", HelperRegistry())


class State:
    """A state of a project without its files."""

    identity = "1d"

    def __init__(self, size: int, count: int = 1) -> None:
        self.size, self.count = size, count

    def read_files(self) -> Any:
        raise AssertionError("its files are not read")

    def find_changes(self, digest: str, identity: str) -> StateChanges | None:
        return None


class Nameless:
    """Files that belong to no state."""

    def read_files(self) -> Any:
        raise AssertionError("its files are not read")


def test_a_small_project_is_unpacked_into_each_container() -> None:
    assert not is_worth_it(State(LEAST_SIZE - 1, LEAST_COUNT - 1), compresses=False)
    assert is_worth_it(State(LEAST_SIZE), compresses=False)
    assert is_worth_it(State(0, LEAST_COUNT), compresses=False)
    assert not is_worth_it(State(LEAST_COMPRESSED - 1, LEAST_COUNT), compresses=True)
    assert is_worth_it(State(LEAST_COMPRESSED), compresses=True)
    assert not is_worth_it(Nameless(), compresses=False)


@pytest.mark.parametrize("volume", ["/code", "/code/", "/code/data", "/"])
def test_a_volume_at_the_working_folder_hides_a_layer(volume: str) -> None:
    assert hides_code({"Config": {"Volumes": {"/data": {}, volume: {}}}})


@pytest.mark.parametrize(
    "config", [None, {}, {"Volumes": None}, {"Volumes": {"/data": {}, "/codes": {}, "/a/code": {}}}]
)
def test_other_volumes_do_not(config: dict[str, Any] | None) -> None:
    assert not hides_code({"Config": config})


class FullEngine(docker.APIClient):
    """An engine that has the environment, and makes no container; it has no connection."""

    def __init__(self) -> None:
        self.asked: list[str] = []  # names of the containers that it was to make

    def inspect_image(self, name: str) -> dict[str, Any]:
        if is_layer(name):
            raise docker.errors.ImageNotFound("no such image")
        return {"Id": "sha256:1", "Config": {}}

    def images(self, *_: Any, **_options: Any) -> Any:
        return []

    def remove_container(self, *_: Any, **_options: Any) -> None:
        pass

    def create_container_from_config(self, _: Any, name: str | None = None, platform: str | None = None) -> Any:
        self.asked.append(str(name))
        raise docker.errors.APIError("no space left on device")


def lend(layers: CodeLayers, api: docker.APIClient, size: int, experiment: int) -> str | None:
    """Start a job, and return the layer that it got."""
    key = JobKey(experiment, JobName("train"), 1)
    launch = Launch(
        key,
        "5e17e4",
        "paul.1.train",
        "train",
        Image("python"),
        (),
        (),
        Resources(),
        Limits(),
        64,
        Owner("paul", 1, 1),
        "d",
    )
    with layers.lend(api, launch, State(size), compresses=False) as name:
        return name


def test_a_layer_that_cannot_be_made_holds_up_no_job() -> None:
    layers, api = CodeLayers(HELPERS), FullEngine()
    assert lend(layers, api, LEAST_SIZE, 1) is None
    assert len(api.asked) == 1
    assert lend(layers, api, LEAST_SIZE, 1) is None


def test_a_small_project_of_one_experiment_gets_no_layer() -> None:
    layers, api = CodeLayers(HELPERS), FullEngine()
    assert [lend(layers, api, 10, 1) for _ in range(3)] == [None] * 3
    assert api.asked == []
    assert lend(layers, api, 10, 2) is None
    assert len(api.asked) == 1, "a second experiment has the same code: its layer is made for those that follow"


class LayeredEngine(FullEngine):
    """An engine that has the environment and every layer."""

    def inspect_image(self, name: str) -> dict[str, Any]:
        self.asked.append(name)
        return {"Id": "sha256:1", "Config": {}}


def test_the_engine_is_asked_once_for_a_layer_that_many_jobs_get() -> None:
    layers, api = CodeLayers(HELPERS), LayeredEngine()
    layers.note_images({"python": ImageObservation(present=True, resolved="sha256:1")})
    first = lend(layers, api, LEAST_SIZE, 1)
    assert first is not None
    assert api.asked == ["python", first]
    assert [lend(layers, api, LEAST_SIZE, experiment) for experiment in (1, 1, 2)] == [first] * 3
    assert api.asked == ["python", first]
    layers.note_images({"python": ImageObservation(present=True, resolved="sha256:2")})
    lend(layers, api, LEAST_SIZE, 2)
    assert len(api.asked) == 4, "the environment is another one"
    layers.note_use(first, exists=True)
    lend(layers, api, LEAST_SIZE, 2)
    assert len(api.asked) == 4
    layers.note_use(first, exists=False)
    lend(layers, api, LEAST_SIZE, 2)
    assert len(api.asked) == 6, "the engine no longer had the layer"
    layers.note_images({})
    lend(layers, api, LEAST_SIZE, 2)
    assert len(api.asked) == 8, "the environment was not there at the last look"


def layer(size: int = 1) -> dict[str, Any]:
    return {"Labels": {labels.CODE_SIZE: str(size)}}


def test_the_oldest_layers_above_the_bounds_are_removed() -> None:
    assert choose_surplus([]) == []
    many = [layer(number) for number in range(MOST_LAYERS + 2)]
    assert choose_surplus(many) == many[MOST_LAYERS:]
    large = [layer(MOST_BYTES // 2), layer(MOST_BYTES // 2), layer(), layer()]
    assert choose_surplus(large) == large[2:]
    assert choose_surplus([layer(MOST_BYTES * 2), layer()]) == [layer()], "the newest one stays"


def test_a_layer_is_known_by_its_name_alone() -> None:
    assert is_layer("riseml/code:4f2")
    assert not is_layer("riseml/codes:4f2")
    assert not is_layer("example.com/riseml/code:4f2")
    assert find_layer_name({"RepoTags": ["mine:1", "riseml/code:4f2"]}) == "riseml/code:4f2"


def test_which_image_store_an_engine_has() -> None:
    assert not stores_compressed({})
    assert not stores_compressed({"DriverStatus": [["Backing Filesystem", "extfs"]]})
    assert stores_compressed({"DriverStatus": [["driver-type", "io.containerd.snapshotter.v1"]]})
