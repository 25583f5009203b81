"""The interface between the control loop and what runs jobs: `Executor` is one host as the loop uses it.

A host that can do more has an object for it in `Executor.capabilities`. What only one kind of executor does is a
capability: a cluster that starts whole gangs has `gangs`. This Protocol grows only when the loop cannot work with a
host that lacks the method.

Every method may raise `Unreachable` (the effect is unknown) or `EngineError` (the engine refused). A repeated call
finds what the first call made, and changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import Enum
from threading import Lock
from typing import TYPE_CHECKING, Protocol

from riseml.base.errors import EngineError
from riseml.base.names import HostName
from riseml.base.records import dataclass
from riseml.base.secrets import RegistryCredential
from riseml.base.states import Network
from riseml.control.actions import Signal
from riseml.files.archives.project_files import ProjectFiles
from riseml.model import Frame, HostObservation, Image, JobKey, Launch, LogCursor, Mount, Sample

if TYPE_CHECKING:
    from riseml.executors.capabilities import Capabilities

Emit = Callable[[str], None]
"""Receives one line of a build's output."""

ReadHeld = Callable[[], list[str]]
"""Returns the lines of a build that the server already has."""


CheckStart = Callable[[], None]
"""Is called when all of a job is there but its start; it raises a `StoreError` while another server may start jobs."""


def allow_start() -> None:
    """Let jobs start: no other server may do so."""


class Work(Enum):
    """The step of an environment that a host works on, or that the server fetches data."""

    PULL = "pull"  # the host pulls an image from a registry; counted in bytes
    INSTALL = "install"  # the host runs the install steps; counted in steps
    SEND = "send"  # the environment is copied from another host; counted in bytes
    DATA = "data"  # the server fetches data from a store; counted in bytes


@dataclass(frozen=True, slots=True)
class WorkReport:
    """A host's progress with an environment."""

    work: Work
    subject: str  # the image, or the install step that runs
    progress: int  # bytes, or the number of the step that runs, from 1
    total: int | None = None  # in the same unit; None: not known yet


Report = Callable[[WorkReport], None]
"""Receives the progress of a host; each report replaces the one before."""


def ignore_report(report: WorkReport) -> None:
    """Take a report and do nothing."""


class SubnetTaken(EngineError):
    """Another network already uses the requested subnet."""


class NotThere(EngineError):
    """The object that the call names does not exist on the host, or no longer exists."""


class OutputLost(NotThere):
    """The host has lost a part of what a job has printed."""


class ImageMissing(NotThere):
    """The host does not have the base image and cannot fetch it. Another host may have it."""


class DataGone(NotThere):
    """A volume with the data of a job is not on the host any more."""


class WorkCancelled(EngineError):
    """The loop has cancelled the work. Nothing has failed, and the loop may order it again."""


class WorkInterrupted(EngineError):
    """The work failed after a part of it was done; the next try continues from there."""


class PortClosed(EngineError):
    """No process of the job listens on the port."""


class Cancellation:
    """Ends a call that blocks: the call attaches the function that unblocks it.

    Example:
        >>> cancellation = Cancellation()
        >>> cancellation.attach(stream.close)  # in the thread that reads the stream
        >>> cancellation.ask()  # in another thread
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._unblock: Callable[[], None] | None = None
        self.asked = False

    def attach(self, unblock: Callable[[], None]) -> None:
        """Call `unblock` on cancellation, at once if it already happened. Replaces the last attached function."""
        with self._lock:
            self._unblock = unblock
            is_asked = self.asked
        if is_asked:
            unblock()

    def ask(self) -> None:
        """Cancel."""
        with self._lock:
            self.asked = True
            unblock = self._unblock
        if unblock is not None:
            unblock()

    def check(self) -> None:
        """Return unless the build was cancelled.

        Raises:
            EngineError: the build was cancelled.
        """
        if self.asked:
            raise EngineError("the build was cancelled", permanent=True)


@dataclass(frozen=True, slots=True)
class BuildRequest:
    """An environment to build."""

    image: Image
    project: ProjectFiles | None  # the project, whose files the install steps may read
    emit: Emit  # receives the build's output line by line
    cancellation: Cancellation
    report: Report = ignore_report  # receives the progress
    read_held: ReadHeld = list  # returns the lines of this build that `emit` received, in earlier servers too
    credential: RegistryCredential | None = None  # for the registry of the base image; None: it needs none


@dataclass(frozen=True, slots=True)
class Output:
    """The output folder of an experiment on a host whose files the server does not see."""

    root: Mount  # the folder or volume below which all output folders are
    tar: bytes  # the folders to create below `root`, with their owners
    mounts: tuple[Mount, ...] = ()  # further mounts of the jobs; `prepare` fails when one is missing


@dataclass(frozen=True, slots=True)
class HostSetup:
    """What the jobs of an experiment share on a host."""

    experiment: int
    subnet: str | None = None  # subnet of the experiment's network, `10.213.0.0/26`; None: the host chooses
    network: Network = Network.BRIDGE
    creates_network: bool = True  # False: another host creates the network
    encrypted: bool = True  # encrypt the traffic between hosts on an overlay network
    output: Output | None = None  # None: the server made the folder itself


class Executor(Protocol):
    """One host, as the control loop uses it."""

    name: HostName
    contained: bool  # True: a job sees /output and /data; False: a job sees the folders of the host

    @property
    def capabilities(self) -> Capabilities:
        """What the host can do beyond these methods."""

    @property
    def url(self) -> str:
        """Where the server reaches the host; empty without a connection of its own."""

    @property
    def is_local(self) -> bool:
        """True when the server sees the files of the host."""

    def reconnect(self) -> None:
        """Try a connection that is down again at once, instead of after its pause."""

    def close(self) -> None:
        """Close the connections, at the latest some time after what uses them has finished. Jobs and builds run on."""

    def describe(self) -> str:
        """Return what runs jobs there, for people: `Docker 20.10.24`."""

    def observe(self, references: frozenset[str]) -> HostObservation:
        """Return every job and network of this server on the host, and which of these environments are present."""

    def ensure_image(self, request: BuildRequest) -> None:
        """Build or fetch an environment; return when it is present.

        Raises:
            EngineError: an install step failed or the image does not exist (permanent), or the request was cancelled.
        """

    def prepare(self, share: HostSetup) -> None:
        """Create what the jobs of an experiment share on this host.

        Raises:
            SubnetTaken: another network uses the subnet.
        """

    def start(self, launch: Launch, code: ProjectFiles | None) -> None:
        """Create and start one job, with the project's files `code` in its working directory."""

    def stop(self, key: JobKey, signal: Signal) -> None:
        """Send a signal to a job; does nothing when the job has ended or does not exist."""

    def remove(self, key: JobKey) -> None:
        """Remove a job, running or not; does nothing when it does not exist."""

    def release(self, experiment: int) -> None:
        """Remove what `prepare` created; does nothing when it does not exist."""

    def read_log(self, key: JobKey, cursor: LogCursor, *, follow: bool) -> Iterator[list[Frame]]:
        """Yield the log frames after the cursor as they arrive.

        With `follow` the end of the iterator does not prove that the job has ended.

        Raises:
            NotThere: the job does not exist.
        """

    def sample(self, key: JobKey) -> Iterator[Sample]:
        """Yield about one measurement per second until the job ends or the caller closes the iterator."""

    def changes(self) -> Iterator[None]:
        """Yield one item after each change on the host, until the connection breaks.

        An item says only that a new observation is worthwhile; the loop never depends on it.
        """
