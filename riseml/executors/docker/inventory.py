"""Everything of riseml on one engine, found by its labels alone, and its removal."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import docker
from docker.errors import APIError

from riseml.executors.base import InventoryItem, InventoryKind
from riseml.executors.transports import engine_client
from riseml.names import HostName

_GONE = frozenset({404})


def list_all(api: docker.APIClient, host: HostName) -> list[InventoryItem]:
    """The containers, networks and environments of every server."""
    ours = {"label": engine_client.SERVER}
    return [
        *(_container(row) for row in api.containers(all=True, filters=ours)),
        *(_network(row) for row in api.networks(filters=ours) if _label(row, engine_client.HOST) in ("", host)),
        *(_image(row) for row in api.images(filters={"label": engine_client.ENVIRONMENT})),
    ]


def remove(api: docker.APIClient, item: InventoryItem) -> None:
    """Remove it; an image that a container uses is refused by the engine."""
    try:
        match item.kind:
            case InventoryKind.CONTAINER:
                api.remove_container(item.identity, v=True, force=True)
            case InventoryKind.NETWORK:
                api.remove_network(item.identity)
            case InventoryKind.ENVIRONMENT:
                api.remove_image(item.identity)
            case _:
                raise ValueError(f"an engine holds no {item.kind.value}")
    except APIError as error:
        if error.status_code not in _GONE:
            raise


def _container(row: dict[str, Any]) -> InventoryItem:
    return InventoryItem(
        InventoryKind.CONTAINER,
        row["Id"],
        row["Names"][0].lstrip("/"),
        _label(row, engine_client.SERVER),
        _experiment(row),
        running=row["State"] not in ("created", "exited", "dead"),
        made_at=datetime.fromtimestamp(row["Created"], UTC),
    )


def _network(row: dict[str, Any]) -> InventoryItem:
    return InventoryItem(
        InventoryKind.NETWORK, row["Id"], row["Name"], _label(row, engine_client.SERVER), _experiment(row)
    )


def _image(row: dict[str, Any]) -> InventoryItem:
    name = (row.get("RepoTags") or [row["Id"]])[0]
    made_at = datetime.fromtimestamp(row["Created"], UTC)
    return InventoryItem(InventoryKind.ENVIRONMENT, name, name, reference=name, size=int(row["Size"]), made_at=made_at)


def _label(row: dict[str, Any], name: str) -> str:
    return str((row.get("Labels") or {}).get(name, ""))


def _experiment(row: dict[str, Any]) -> int | None:
    text = _label(row, engine_client.EXPERIMENT)
    return int(text) if text.isdecimal() else None
