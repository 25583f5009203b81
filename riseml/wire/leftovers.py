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


class DiskView(TypedDict):
    """A disk that the server keeps from filling, as it was when the server last measured it."""

    places: list[str]  # what is on it: hosts, `riseml's home`, `the cache of data`
    percent: int  # share that is used, in per cent
    clean_above: int  # per cent above which the server removes what no experiment needs
    removed: int  # things that it has removed by itself since it started
    removed_at: str | None  # RFC 3339; when it last did; None: it removed nothing
    stuck: bool  # it is above `clean_above`, and nothing is left that may go


class LeftoversView(TypedDict):
    """What `system clean` can remove, or has removed."""

    leftovers: list[LeftoverView]
    others: dict[str, int]  # id of another server -> how many things it has on the hosts  # names: of the API
    silent: list[str]  # names of hosts that did not answer
    disks: list[DiskView]  # empty: not measured yet, or pool.yml says `disk: {clean_above: false}`
