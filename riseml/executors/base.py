"""The seam between the loop and what runs jobs. Every method may raise `Unreachable` (nothing is known of the effect)
or `EngineError` (the engine refused); a replayed call meets what the first one made."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from pathlib import Path
from threading import Lock
from typing import Protocol

from riseml.control.actions import Signal
from riseml.errors import EngineError
from riseml.model import Frame, HostSeen, Image, JobKey, Launch, LogCursor, Mount, Sample
from riseml.names import HostName
from riseml.states import Network

Emit = Callable[[str], None]
"""Takes one line of a build's output."""


class SubnetTaken(EngineError):
    """The addresses that a network should get are in use by somebody else."""


class Cancellation:
    """A way to end something that blocks: whoever blocks attaches what unblocks it."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._unblock: Callable[[], None] | None = None
        self.asked = False

    def attach(self, unblock: Callable[[], None]) -> None:
        """Call `unblock` when the cancellation is asked for; at once when it was already. Replaces the last one."""
        with self._lock:
            self._unblock = unblock
            asked = self.asked
        if asked:
            unblock()

    def ask(self) -> None:
        """Cancel."""
        with self._lock:
            self.asked = True
            unblock = self._unblock
        if unblock is not None:
            unblock()

    def check(self) -> None:
        """Go on, unless somebody has cancelled.

        Raises:
            EngineError: somebody has.
        """
        if self.asked:
            raise EngineError("the build was cancelled", permanent=True)


@dataclass(frozen=True, slots=True)
class BuildOrder:
    """An environment to be made. `snapshot` is the tar of the project whose files the steps may read."""

    image: Image
    snapshot: Path | None
    emit: Emit
    cancellation: Cancellation


@dataclass(frozen=True, slots=True)
class Output:
    """An experiment's output folder as it should be: `tar` holds what is to be there below `root`, with its owners.
    `others` is what its jobs will mount besides; all of it has to be there.
    """

    root: Mount
    tar: bytes
    others: tuple[Mount, ...] = ()


@dataclass(frozen=True, slots=True)
class Share:
    """What the jobs of an experiment share on a host.

    `creates_network`: this host creates the network; False when another host does. `output` is None when the server
    made the folder itself.
    """

    experiment: int
    subnet: str | None = None
    network: Network = Network.BRIDGE
    creates_network: bool = True
    output: Output | None = None


class InventoryKind(Enum):
    """What riseml leaves on a host, or beside the store."""

    CONTAINER = "container"
    NETWORK = "network"
    FOLDER = "folder"  # what the processes of an experiment share
    ENVIRONMENT = "environment"  # an image, or a virtual environment
    SNAPSHOT = "snapshot"  # a project's files


@dataclass(frozen=True, slots=True)
class InventoryItem:
    """One thing of riseml that is there, whoever made it.

    `identity` is what the host calls it, `name` what people do; `server` the id of the server that made it, empty when
    the host does not tell; `reference` the environment that it is; `size` its bytes.
    """

    kind: InventoryKind
    identity: str
    name: str
    server: str = ""
    experiment: int | None = None
    reference: str = ""
    running: bool = False
    size: int | None = None
    made_at: datetime | None = None


class Executor(Protocol):
    """One host."""

    name: HostName
    contained: bool  # True: a job sees /output and /data; False: the folders of the host as they are

    def describe(self) -> str:
        """What runs there, for people: `Docker 20.10.24`."""

    def observe(self, references: frozenset[str]) -> HostSeen:
        """Everything of ours on the host, and which of these environments are there."""

    def ensure_image(self, order: BuildOrder) -> None:
        """Make or fetch an environment; returns when it is there.

        Raises:
            EngineError: a step failed or the image does not exist (permanent), or the order was cancelled.
        """

    def export_image(self, reference: str) -> Iterator[bytes]:
        """An environment as a stream that another host of this kind can take in."""

    def import_image(self, reference: str, stream: Iterator[bytes]) -> None:
        """Take in what another host exported; returns when the environment is there."""

    def publish_image(self, reference: str, registry: str) -> None:
        """Put an environment into a registry that the other hosts reach, too."""

    def fetch_image(self, reference: str, registry: str) -> None:
        """Get an environment that another host has published."""

    def prepare(self, share: Share) -> None:
        """Make what an experiment's jobs share here.

        Raises:
            SubnetTaken: somebody else uses these addresses.
        """

    def start(self, launch: Launch, code: Path | None) -> None:
        """Create and start one job, `code` (a tar) in its working directory."""

    def stop(self, key: JobKey, signal: Signal) -> None:
        """Send a signal; a job that has ended or is gone is no error."""

    def remove(self, key: JobKey) -> None:
        """Remove a job, running or not; one that is gone is no error."""

    def release(self, experiment: int) -> None:
        """Remove what `prepare` made."""

    def inventory(self, references: frozenset[str]) -> list[InventoryItem]:
        """Everything of riseml on the host, other servers' too. `references` are environments that may be there, for a
        host that cannot tell their names.
        """

    def discard(self, item: InventoryItem) -> None:
        """Remove a thing of the inventory; one that is gone is no error.

        Raises:
            EngineError: it is in use.
        """

    def read_log(self, key: JobKey, cursor: LogCursor, *, follow: bool) -> Iterator[list[Frame]]:
        """The output behind the cursor, as it comes. An end says nothing about the job while `follow` is set."""

    def sample(self, key: JobKey) -> Iterator[Sample]:
        """A measurement about every second, for as long as the job runs and the iterator is asked."""

    def changes(self) -> Iterator[None]:
        """One item whenever something of ours changed, until the connection breaks: a hint, never the truth."""
