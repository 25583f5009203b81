"""What commands print with `--json` when the HTTP API has no answer of that shape."""

from __future__ import annotations

from typing_extensions import TypedDict

from riseml.wire.state_names import StateName


class Kill(TypedDict):
    """The outcome of `kill` for one experiment."""

    id: str  # of the experiment or the set
    killed: bool  # false: it had already ended
    state: StateName  # at the moment of the answer; a kill takes a moment to complete


class Kills(TypedDict):
    """The outcome of `kill`."""

    kills: list[Kill]  # in the order of the IDs; a refused ID is an error on standard error


class ServerStop(TypedDict):
    """The outcome of `server stop`."""

    stopped: bool  # false: no server was running
    pid: int | None  # the process that ended; None: none was running
    active: int  # experiments that continue without the server


class NewFile(TypedDict):
    """The outcome of `init`."""

    file: str  # path of the riseml.yml that was written
    project: str  # the project in it
