"""What commands that change something print with `--json`, where the HTTP door has no shape for it."""

from __future__ import annotations

from typing_extensions import TypedDict

from riseml.wire.words import StateName


class Kill(TypedDict):
    """What became of one experiment that was to be killed. `killed` false: it had ended before, in this state."""

    id: str
    killed: bool
    state: StateName


class Kills(TypedDict):
    """What `kill` did, in the order of the IDs; those that were refused are told on standard error alone."""

    kills: list[Kill]


class ServerStop(TypedDict):
    """What `server stop` did. `stopped` false: none ran, and `pid` is null. `active` experiments go on without it."""

    stopped: bool
    pid: int | None
    active: int


class NewFile(TypedDict):
    """What `init` wrote."""

    file: str
    project: str
