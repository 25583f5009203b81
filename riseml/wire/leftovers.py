"""What is left over: containers, networks, folders, environments and project files that no experiment uses."""

from __future__ import annotations

from typing import Literal

from typing_extensions import TypedDict


class LeftoverView(TypedDict):
    """One thing that no experiment uses."""

    # code: a project's files on a host; snapshot: on the server
    kind: Literal["container", "network", "folder", "code", "environment", "snapshot", "capsule", "saved", "data"]
    name: str
    host: str | None  # None: it is next to the store, not on a host
    server: str  # id of the server that made it; empty when unknown
    size: int | None  # bytes; None: unknown
    made_at: str | None  # RFC 3339; for a snapshot: when a client last sent or requested it
    why: str  # why no experiment uses it
    removed: bool
    problem: str | None  # why the removal failed; None: it was not tried, or it worked


class LeftoversView(TypedDict):
    """What `system clean` can remove, or has removed."""

    leftovers: list[LeftoverView]
    others: dict[str, int]  # id of another server -> how many things it has on the hosts
    silent: list[str]  # names of hosts that did not answer
