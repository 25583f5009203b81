"""What no experiment owns, as it crosses the HTTP door."""

from __future__ import annotations

from typing import Literal

from typing_extensions import TypedDict


class LeftoverView(TypedDict):
    """A thing that no experiment owns. `host` is None for what is beside the store; `problem` says why it is still
    there although it was to be removed.
    """

    kind: Literal["container", "network", "folder", "environment", "snapshot"]
    name: str
    host: str | None
    server: str
    size: int | None
    made_at: str | None
    why: str
    removed: bool
    problem: str | None


class LeftoversView(TypedDict):
    """What can be removed, or was. `others` counts what other servers have on the hosts, by their ids."""

    leftovers: list[LeftoverView]
    others: dict[str, int]
    silent: list[str]
