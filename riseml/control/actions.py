"""The actions that a decision can contain: a closed union of small records.

An action is idempotent: a second execution finds the work done and changes nothing. An action is its own identity:
two actions with equal fields are the same action, so that the server can recognise one that is already pending.

Every action says in plain words what it does:

    str(StartJob(HostName("gpu1"), JobKey(4, JobName("worker.1"), 1)))   # "start 4.worker.1 on gpu1"
    action.describe("paul.144.1")                                        # with the name that the user knows
"""

from __future__ import annotations

import enum
from abc import abstractmethod

from riseml.base.names import HostName
from riseml.base.records import dataclass
from riseml.model import JobKey


class Signal(enum.Enum):
    """The signal that a job gets."""

    TERM = "SIGTERM"
    KILL = "SIGKILL"


class Describable:
    """An action in plain words, for the log of decisions."""

    __slots__ = ()

    @abstractmethod
    def describe(self, experiment: str | None = None) -> str:
        """Return what the action does and where: `start 4.worker.1 on gpu1`.

        Args:
            experiment: the name of the experiment, as its user knows it; default: the id of its record.
        """

    def __str__(self) -> str:
        return self.describe()


@dataclass(frozen=True, slots=True)
class EnsureImage(Describable):
    """Build or fetch an environment on a host. The output is the log of the experiment's build job."""

    host: HostName
    experiment: int  # id of the record
    reference: str  # name of the image at the engine

    def describe(self, experiment: str | None = None) -> str:
        return f"build or fetch environment {self.reference} of {experiment or self.experiment} on {self.host}"


@dataclass(frozen=True, slots=True)
class CopyImage(Describable):
    """Copy an environment to a host from another host that has it."""

    host: HostName  # the target
    experiment: int  # id of the record
    reference: str  # name of the image at the engine
    source: HostName

    def describe(self, experiment: str | None = None) -> str:
        owner = experiment or self.experiment
        return f"copy environment {self.reference} of {owner} from {self.source} to {self.host}"


@dataclass(frozen=True, slots=True)
class CancelImage(Describable):
    """Cancel the build of an environment for one experiment."""

    host: HostName
    experiment: int  # id of the record
    reference: str  # name of the image at the engine

    def describe(self, experiment: str | None = None) -> str:
        return f"cancel environment {self.reference} of {experiment or self.experiment} on {self.host}"


@dataclass(frozen=True, slots=True)
class FetchData(Describable):
    """Bring the data of an experiment into the cache of the server, for its hosts."""

    host: HostName  # the host that builds the environment
    experiment: int  # id of the record

    def describe(self, experiment: str | None = None) -> str:
        return f"fetch the data of {experiment or self.experiment}"


@dataclass(frozen=True, slots=True)
class CopyData(Describable):
    """Copy the data of an experiment from the cache of the server to a host that does not see that cache."""

    host: HostName
    experiment: int  # id of the record

    def describe(self, experiment: str | None = None) -> str:
        return f"copy the data of {experiment or self.experiment} to {self.host}"


@dataclass(frozen=True, slots=True)
class CancelData(Describable):
    """End the fetch of an experiment's data, or its copy to a host."""

    host: HostName
    experiment: int  # id of the record

    def describe(self, experiment: str | None = None) -> str:
        return f"cancel the fetch of the data of {experiment or self.experiment}"


@dataclass(frozen=True, slots=True)
class SaveOutput(Describable):
    """Copy what is new in the output of an experiment into its store."""

    host: HostName  # the host that has the output
    experiment: int  # id of the record
    last: int  # the attempt whose jobs have ended; 0: its jobs still run

    def describe(self, experiment: str | None = None) -> str:
        return f"save the output of {experiment or self.experiment}"


@dataclass(frozen=True, slots=True)
class RestoreOutput(Describable):
    """Fill the output of an experiment with what was saved, before the jobs of an attempt start."""

    host: HostName
    experiment: int  # id of the record
    attempt: int

    def describe(self, experiment: str | None = None) -> str:
        return f"restore the output of {experiment or self.experiment} on {self.host} for attempt {self.attempt}"


@dataclass(frozen=True, slots=True)
class CancelRestore(Describable):
    """End the restoration of an experiment's output."""

    host: HostName
    experiment: int  # id of the record

    def describe(self, experiment: str | None = None) -> str:
        return f"cancel the restoration of the output of {experiment or self.experiment} on {self.host}"


@dataclass(frozen=True, slots=True)
class PrepareHost(Describable):
    """Create what the experiment's jobs share on a host: the output folder, and the network with this subnet."""

    host: HostName
    experiment: int  # id of the record
    subnet: str | None  # CIDR; None: no private network

    def describe(self, experiment: str | None = None) -> str:
        network = f" with network {self.subnet}" if self.subnet else ""
        return f"prepare {self.host} for {experiment or self.experiment}{network}"


@dataclass(frozen=True, slots=True)
class StartJob(Describable):
    """Create and start one job."""

    host: HostName
    key: JobKey

    def describe(self, experiment: str | None = None) -> str:
        return f"start {_name_job(self.key, experiment)} on {self.host}"


@dataclass(frozen=True, slots=True)
class StartGang(Describable):
    """Hand one attempt of a gang over to a host with its own queue, which starts the whole gang when it has room."""

    host: HostName
    experiment: int  # id of the record
    attempt: int

    def describe(self, experiment: str | None = None) -> str:
        again = "" if self.attempt == 1 else f" (attempt {self.attempt})"
        return f"hand {experiment or self.experiment}{again} over to {self.host}"


@dataclass(frozen=True, slots=True)
class StopJob(Describable):
    """Send a signal to a running job."""

    host: HostName
    key: JobKey
    signal: Signal

    def describe(self, experiment: str | None = None) -> str:
        return f"send {self.signal.value} to {_name_job(self.key, experiment)} on {self.host}"


@dataclass(frozen=True, slots=True)
class RemoveJob(Describable):
    """Remove the container or process group of a job, running or not."""

    host: HostName
    key: JobKey

    def describe(self, experiment: str | None = None) -> str:
        return f"remove {_name_job(self.key, experiment)} from {self.host}"


@dataclass(frozen=True, slots=True)
class ReleaseHost(Describable):
    """Remove what the jobs of an experiment shared on a host, except the output."""

    host: HostName
    experiment: int  # id of the record

    def describe(self, experiment: str | None = None) -> str:
        return f"release {self.host} from {experiment or self.experiment}"


Action = (
    EnsureImage
    | CopyImage
    | CancelImage
    | FetchData
    | CopyData
    | CancelData
    | SaveOutput
    | RestoreOutput
    | CancelRestore
    | PrepareHost
    | StartJob
    | StartGang
    | StopJob
    | RemoveJob
    | ReleaseHost
)


def owner_of(action: Action) -> int:
    """Return the id of the experiment that an action belongs to."""
    match action:
        case StartJob() | StopJob() | RemoveJob():
            return action.key.experiment
        case _:
            return action.experiment


def _name_job(key: JobKey, experiment: str | None) -> str:
    """Return `4.worker.1`, and from the second attempt on `4.worker.1 (attempt 2)`."""
    name = f"{experiment or key.experiment}.{key.job}"
    return name if key.attempt == 1 else f"{name} (attempt {key.attempt})"
