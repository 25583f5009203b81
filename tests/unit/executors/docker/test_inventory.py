"""What riseml has left on an engine, and what of it may be removed."""

from __future__ import annotations

from typing import Any

import pytest
import requests
from docker.errors import APIError

from riseml.base.errors import EngineError
from riseml.base.names import HostName
from riseml.executors.capabilities import InventoryItem, InventoryKind
from riseml.executors.docker import labels
from riseml.executors.docker.environment_builds import BuildSettings, EnvironmentBuilds
from riseml.executors.docker.helpers import HelperRegistry, Helpers
from riseml.executors.docker.inventory import EngineInventory, list_items
from riseml.executors.docker.networks import StuckNetworks
from tests.unit.executors.docker.held_containers import SERVER, FakeEngine, HeldContainers, HelperSite


def test_a_helper_at_work_is_no_leftover(place: HelperSite) -> None:
    def names() -> list[str]:
        found = list_items(place.api, HostName("h1"), place.helpers.registry.is_used)
        return [item.name for item in found]

    place.api.add("left", {labels.SERVER: SERVER, labels.HELPER: "disk"})
    with place.helpers.lend(place.api, "disk", {}):
        assert names() == ["left"]


class RefusingEngine(HeldContainers):
    """An engine with containers, images and volumes, which notes what it is to remove."""

    def __init__(self, status: int = 0) -> None:
        super().__init__()
        self.status = status  # how it answers a removal; 0: it removes
        self.removed: list[str] = []

    def remove_image(self, image: Any, *_: Any, **_options: Any) -> None:
        self._remove(image)

    def remove_volume(self, name: Any, *_: Any, **_options: Any) -> None:
        self._remove(name)

    def _remove(self, name: str) -> None:
        if self.status:
            answer = requests.Response()
            answer.status_code = self.status
            raise APIError("refused", answer, "it is in use")
        self.removed.append(name)


def make_inventory(api: HeldContainers) -> EngineInventory:
    helpers = Helpers(FakeEngine(api), SERVER, HelperRegistry())
    builds = EnvironmentBuilds(helpers, BuildSettings())
    return EngineInventory(HostName("h1"), helpers, builds, StuckNetworks())


def make_item(kind: InventoryKind) -> InventoryItem:
    return InventoryItem(kind, "ab12", "the item ab12")


@pytest.mark.parametrize("state", ["created", "exited", "dead", "running", "paused"])
def test_a_container_that_may_go_on_is_running(state: str) -> None:
    api = HeldContainers()
    api.add("riseml-1", {labels.SERVER: SERVER, labels.EXPERIMENT: "4"}, state, 60.0)
    (item,) = make_inventory(api).list_inventory(frozenset())
    assert (item.kind, item.name, item.server, item.experiment) == (InventoryKind.CONTAINER, "riseml-1", SERVER, 4)
    assert item.running is (state in ("running", "paused"))


@pytest.mark.parametrize("kind", [InventoryKind.ENVIRONMENT, InventoryKind.CODE, InventoryKind.DATA])
def test_what_nobody_needs_is_removed_and_what_is_gone_is_no_error(kind: InventoryKind) -> None:
    api = RefusingEngine()
    make_inventory(api).discard_item(make_item(kind))
    assert api.removed == ["ab12"]
    make_inventory(RefusingEngine(404)).discard_item(make_item(kind))
    with pytest.raises(EngineError, match="it is in use"):
        make_inventory(RefusingEngine(409)).discard_item(make_item(kind))


def test_what_an_experiment_needs_stays() -> None:
    api = RefusingEngine()
    with pytest.raises(EngineError, match="an experiment needs the item ab12"):
        make_inventory(api).discard_item(make_item(InventoryKind.ENVIRONMENT), lambda: True)
    assert api.removed == []
