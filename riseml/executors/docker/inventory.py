"""Everything of riseml on one engine, found by its labels alone, and its removal."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import docker
from docker.errors import APIError, ImageNotFound

from riseml.base.errors import EngineError
from riseml.base.faultpoints import Point, reach
from riseml.base.names import CODE_REPOSITORY, STEP_REPOSITORY, HostName
from riseml.base.records import dataclass
from riseml.executors.capabilities import InventoryItem, InventoryKind, never
from riseml.executors.docker import labels, networks
from riseml.executors.docker.code_layers import find_layer_name, is_layer
from riseml.executors.docker.environment_builds import EnvironmentBuilds
from riseml.executors.docker.helpers import Helpers
from riseml.executors.docker.networks import StuckNetworks

_MISSING = 404
_UNNAMED = "<none>:<none>"
"""How an engine lists an image that has lost its name."""


def list_items(
    api: docker.APIClient, host: HostName, is_at_work: Callable[[str], bool] = lambda _: False
) -> list[InventoryItem]:
    """Return the containers, networks, layers of code and environments of every riseml server.

    Args:
        api: the engine.
        host: its name in the pool.
        is_at_work: returns True for the name of a container or a network that this process uses now; it is left out.
    """
    filters = {"label": labels.SERVER}
    networks = [row for row in api.networks(filters=filters) if _labels(row).get(labels.HOST, "") in ("", host)]
    environments = [
        _describe_image(row) for row in api.images(filters={"label": labels.ENVIRONMENT}) if not _is_layer(row)
    ]
    steps = [_describe_step(row) for row in api.images(filters={"reference": STEP_REPOSITORY})]
    return [
        *(
            _describe_container(row)
            for row in api.containers(all=True, filters=filters)
            if not is_at_work(_find_name(row))
        ),
        *(_describe_network(row) for row in networks if not is_at_work(row["Name"])),
        *(_describe_layer(row) for row in api.images(filters={"reference": CODE_REPOSITORY})),
        *environments,
        *_find_environments(api, steps, environments),
        *(_describe_copy(row) for row in api.images(filters={"reference": "riseml/image"})),
        *(_describe_volume(row) for row in api.volumes(filters={"label": labels.DATA})["Volumes"] or []),
    ]


@dataclass(frozen=True, slots=True)
class EngineInventory:
    """Everything of riseml on one engine; an implementation of `Inventory`."""

    host: HostName
    helpers: Helpers
    builds: EnvironmentBuilds
    stuck: StuckNetworks

    def list_inventory(self, references: frozenset[str]) -> list[InventoryItem]:
        with self.helpers.engine.api() as api:
            return list_items(api, self.host, self.helpers.registry.is_used)

    def discard_item(self, item: InventoryItem, is_needed: Callable[[], bool] = never) -> None:
        if is_needed():
            raise EngineError(f"an experiment needs {item.name}")
        with self.helpers.engine.api(patient=True) as api:
            reach(Point.DISCARDING)
            if item.reference.startswith(f"{STEP_REPOSITORY}:"):
                self.builds.remove_step(item.identity, lambda: self._remove(api, item))
            else:
                self._remove(api, item)

    def _remove(self, api: docker.APIClient, item: InventoryItem) -> None:
        try:
            match item.kind:
                case InventoryKind.CONTAINER:
                    api.remove_container(item.identity, v=True, force=True)
                case InventoryKind.NETWORK:
                    networks.remove_network(api, item.identity, self.stuck)
                case InventoryKind.ENVIRONMENT | InventoryKind.CODE:
                    api.remove_image(item.identity)
                case InventoryKind.DATA:
                    api.remove_volume(item.identity)
                case _:
                    raise ValueError(f"an engine holds no {item.kind.value}")
        except APIError as error:
            if error.status_code != _MISSING:
                raise


def _describe_container(row: dict[str, Any]) -> InventoryItem:
    return InventoryItem(
        InventoryKind.CONTAINER,
        row["Id"],
        _find_name(row),
        _labels(row).get(labels.SERVER, ""),
        labels.parse_experiment(_labels(row)),
        running=row["State"] not in ("created", "exited", "dead"),
        made_at=datetime.fromtimestamp(row["Created"], UTC),
    )


def _describe_network(row: dict[str, Any]) -> InventoryItem:
    return InventoryItem(
        InventoryKind.NETWORK,
        row["Id"],
        row["Name"],
        _labels(row).get(labels.SERVER, ""),
        labels.parse_experiment(_labels(row)),
    )


def _describe_image(row: dict[str, Any]) -> InventoryItem:
    name = next((name for name in row.get("RepoTags") or () if name != _UNNAMED), str(row["Id"]))
    made_at = datetime.fromtimestamp(row["Created"], UTC)
    return InventoryItem(InventoryKind.ENVIRONMENT, name, name, reference=name, size=int(row["Size"]), made_at=made_at)


def _describe_layer(row: dict[str, Any]) -> InventoryItem:
    """Return the layer of a project: its `size` counts the project's files, without the environment below."""
    name = find_layer_name(row)
    row_labels = _labels(row)
    return InventoryItem(
        InventoryKind.CODE,
        name,
        name,
        row_labels.get(labels.SERVER, ""),
        reference=row_labels.get(labels.CODE_SNAPSHOT, ""),
        size=int(row_labels.get(labels.CODE_SIZE, "0")),
        made_at=datetime.fromtimestamp(row["Created"], UTC),
    )


def _is_layer(row: dict[str, Any]) -> bool:
    """Return True when an image is a layer of code; it also has the label of the environment below it.

    A layer without a name is below another layer, and is removed with it.
    """
    names = [name for name in row.get("RepoTags") or [] if name != _UNNAMED]
    return any(map(is_layer, names)) or (not names and labels.CODE in _labels(row))


def _describe_step(row: dict[str, Any]) -> InventoryItem:
    """Return the image that an install step has left, below an environment or of a build that has failed."""
    name = next(name for name in row["RepoTags"] if name.startswith(f"{STEP_REPOSITORY}:"))
    server = _labels(row).get(labels.STEP_SERVER, "")
    return replace(_describe_image(row), identity=name, name=name, server=server, reference=name)


def _describe_copy(row: dict[str, Any]) -> InventoryItem:
    """Return an image under the name that copies have; it may have other names that riseml did not give."""
    name = next(name for name in row["RepoTags"] if name.startswith("riseml/image:"))
    return replace(_describe_image(row), identity=name, name=name, reference=name)


def _describe_volume(row: dict[str, Any]) -> InventoryItem:
    """Return a copy of fetched data. Engines tell the size of a volume only after they have counted it."""
    made_at = datetime.fromisoformat(row["CreatedAt"])
    server = _labels(row).get(labels.SERVER, "")
    return InventoryItem(InventoryKind.DATA, row["Name"], f"copy of data {row['Name']}", server, made_at=made_at)


def _find_name(row: dict[str, Any]) -> str:
    return str(row["Names"][0]).lstrip("/")


def _find_environments(
    api: docker.APIClient, steps: list[InventoryItem], environments: list[InventoryItem]
) -> list[InventoryItem]:
    """Return the images of install steps with the environments that contain them: without these, the image of a step
    gives nothing back to the disk."""
    if not steps:
        return []
    layers = {item.name: _read_layers(api, item.name) for item in (*steps, *environments)}
    return [
        replace(
            step,
            environments=tuple(
                environment.name
                for environment in environments
                if layers[step.name] and layers[environment.name][: len(layers[step.name])] == layers[step.name]
            ),
        )
        for step in steps
    ]


def _read_layers(api: docker.APIClient, name: str) -> list[str]:
    """Return the digests of an image's layers, from the lowest; none when the image is gone."""
    try:
        return list(api.inspect_image(name)["RootFS"].get("Layers") or [])
    except ImageNotFound:
        return []


def _labels(row: dict[str, Any]) -> dict[str, str]:
    return row.get("Labels") or {}
