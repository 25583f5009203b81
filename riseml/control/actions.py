"""What the loop may do to the outside: a closed union. Each action is idempotent, and its own key in the books."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from riseml.model import JobKey
from riseml.names import HostName


class Signal(enum.Enum):
    """How hard a job is asked to end."""

    TERM = "SIGTERM"
    KILL = "SIGKILL"


@dataclass(frozen=True, slots=True)
class EnsureImage:
    """Make or fetch an environment on a host; its output is the log of the experiment's build job."""

    host: HostName
    experiment: int
    reference: str


@dataclass(frozen=True, slots=True)
class ShareImage:
    """Bring an environment to a host from another one that has it."""

    host: HostName
    experiment: int
    reference: str
    source: HostName


@dataclass(frozen=True, slots=True)
class CancelImage:
    """Give up making an environment for an experiment."""

    host: HostName
    experiment: int
    reference: str


@dataclass(frozen=True, slots=True)
class Prepare:
    """Make what the experiment's jobs share on a host: its output folder and its network with this subnet."""

    host: HostName
    experiment: int
    subnet: str | None


@dataclass(frozen=True, slots=True)
class Start:
    """Create and start one job."""

    host: HostName
    key: JobKey


@dataclass(frozen=True, slots=True)
class Stop:
    """Send a running job a signal."""

    host: HostName
    key: JobKey
    signal: Signal


@dataclass(frozen=True, slots=True)
class Remove:
    """Remove what is left of a job, running or not."""

    host: HostName
    key: JobKey


@dataclass(frozen=True, slots=True)
class Release:
    """Remove what an ended experiment's jobs shared on a host, except its output."""

    host: HostName
    experiment: int


Action = EnsureImage | ShareImage | CancelImage | Prepare | Start | Stop | Remove | Release


def owner_of(action: Action) -> int:
    """The experiment that an action belongs to."""
    match action:
        case Start() | Stop() | Remove():
            return action.key.experiment
        case EnsureImage() | ShareImage() | CancelImage() | Prepare() | Release():
            return action.experiment
