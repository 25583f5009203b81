"""The actions that a decision can contain: small records, each with all that riseml knows about its kind.

An action is idempotent: a second execution finds the work done and changes nothing. An action is its own identity:
two actions with equal fields are the same action, so that the server can recognise one that is already pending.

Every action says in plain words what it does, and what it has done:

    str(StartJob(HostName("gpu1"), JobKey(4, JobName("worker.1"), 1)))   # "start 4.worker.1 on gpu1"
    action.describe("paul.144.1")                                        # with the name that the user knows
    action.describe_done()                                               # "started on gpu1"

A new action is a class here. It derives from `ExperimentAction` or `JobAction`, behind `NeedsRecord` if it cannot be
done for a closed experiment, and its `perform` calls a method of the host or of the performer.
"""

from __future__ import annotations

import enum
from abc import abstractmethod
from typing import ClassVar, Protocol

from riseml.base.errors import EngineError
from riseml.base.faultpoints import Point
from riseml.base.names import HostName
from riseml.base.records import dataclass
from riseml.model import Experiment, JobKey


class Signal(enum.Enum):
    """The signal that a job gets."""

    TERM = "SIGTERM"
    KILL = "SIGKILL"


class Disk(enum.Enum):
    """A disk on which room can be made when an action has filled it."""

    HOST = "host"  # the disk of the environments and data copies of the action's host
    CACHE = "cache"  # the disk of the server's data


class JobHost(Protocol):
    """A host, as actions on its jobs use it."""

    def stop(self, key: JobKey, signal: Signal) -> None:
        """Send a signal to a job; does nothing when the job has ended or does not exist."""

    def remove(self, key: JobKey) -> None:
        """Remove a job, running or not; does nothing when it does not exist."""


class Performer(Protocol):
    """The work behind the actions that need more than their host: of the server, or of a simulation in tests.

    A method can be repeated, and raises RisemlError when it failed or when its effect is unknown.
    """

    def find_host(self, name: HostName) -> JobHost:
        """Return a host.

        Raises:
            Unreachable: it is not in the pool.
        """

    def ensure_image(self, action: EnsureImage, experiment: Experiment) -> None: ...
    def copy_image(self, action: CopyImage) -> None: ...
    def cancel_image(self, action: CancelImage) -> None: ...
    def fetch_data(self, action: FetchData, experiment: Experiment) -> None: ...
    def copy_data(self, action: CopyData, experiment: Experiment) -> None: ...
    def cancel_data(self, action: CancelData) -> None: ...
    def save_output(self, action: SaveOutput, experiment: Experiment) -> None: ...
    def inherit_output(self, action: InheritOutput, experiment: Experiment) -> None: ...
    def restore_output(self, action: RestoreOutput, experiment: Experiment) -> None: ...
    def cancel_restore(self, action: CancelRestore) -> None: ...
    def prepare_host(self, action: PrepareHost, experiment: Experiment) -> None: ...
    def start_job(self, action: StartJob, experiment: Experiment) -> None: ...
    def start_gang(self, action: StartGang, experiment: Experiment) -> None: ...
    def release_host(self, action: ReleaseHost, experiment: Experiment | None) -> None: ...


@dataclass(frozen=True, slots=True)
class Action:
    """One thing to do on a host."""

    host: HostName

    point_before: ClassVar[Point | None] = None  # the fault point before it is done
    point_after: ClassVar[Point | None] = None  # the fault point after it was done
    point_noted: ClassVar[Point | None] = None  # the fault point after its end was noted, also of a failure
    threads: ClassVar[str] = ""  # prefix of the separate threads of a host for it, if it can take minutes
    fills: ClassVar[Disk | None] = None  # the only disk that it can fill; None: several disks
    is_order: ClassVar[bool] = False  # True: the loop asks for it in each pass until its effect comes

    @property
    @abstractmethod
    def owner(self) -> int:
        """The id of the experiment that it belongs to."""

    @property
    def job(self) -> JobKey | None:
        """The job that it is about; None for an action on a whole host."""
        return None

    @property
    def is_given_once(self) -> bool:
        """True for an order that is never given again, however late its effect comes."""
        return False

    @abstractmethod
    def describe(self, experiment: str | None = None) -> str:
        """Return what the action does and where: `start 4.worker.1 on gpu1`.

        Args:
            experiment: the name of the experiment, as its user knows it; default: the id of its record.
        """

    @abstractmethod
    def describe_done(self) -> str:
        """Return what the action has done, without its subject: `started on gpu1`."""

    @abstractmethod
    def perform(self, performer: Performer, experiment: Experiment | None) -> None:
        """Do it.

        Args:
            performer: does the work.
            experiment: the record that the action belongs to; None when the experiment is closed.

        Raises:
            RisemlError: the action failed, or its effect is unknown.
        """

    def __str__(self) -> str:
        return self.describe()


@dataclass(frozen=True, slots=True)
class ExperimentAction(Action):
    """An action for a whole experiment."""

    experiment: int  # id of the record

    @property
    def owner(self) -> int:
        return self.experiment


@dataclass(frozen=True, slots=True)
class JobAction(Action):
    """An action on one job."""

    key: JobKey

    @property
    def owner(self) -> int:
        return self.key.experiment

    @property
    def job(self) -> JobKey | None:
        return self.key


class NeedsRecord:
    """An action that cannot be done for an experiment that is closed."""

    __slots__ = ()

    def perform(self, performer: Performer, experiment: Experiment | None) -> None:
        if experiment is None:
            raise EngineError(f"cannot {self}: the experiment is not in the store", permanent=True)
        self.perform_for(performer, experiment)

    @abstractmethod
    def perform_for(self, performer: Performer, experiment: Experiment) -> None:
        """Do it for this record; else as `Action.perform`."""


@dataclass(frozen=True, slots=True)
class EnsureImage(NeedsRecord, ExperimentAction):
    """Build or fetch an environment on a host. The output is the log of the experiment's build job."""

    reference: str  # name of the image at the engine

    point_before = Point.FETCHING
    threads = "build-"
    fills = Disk.HOST

    def describe(self, experiment: str | None = None) -> str:
        return f"build or fetch environment {self.reference} of {experiment or self.experiment} on {self.host}"

    def describe_done(self) -> str:
        return f"environment {self.reference} made on {self.host}"

    def perform_for(self, performer: Performer, experiment: Experiment) -> None:
        performer.ensure_image(self, experiment)


@dataclass(frozen=True, slots=True)
class CopyImage(ExperimentAction):
    """Copy an environment to a host from another host that has it."""

    reference: str  # name of the image at the engine
    source: HostName

    threads = "build-"
    fills = Disk.HOST

    def describe(self, experiment: str | None = None) -> str:
        owner = experiment or self.experiment
        return f"copy environment {self.reference} of {owner} from {self.source} to {self.host}"

    def describe_done(self) -> str:
        return f"environment {self.reference} copied from {self.source} to {self.host}"

    def perform(self, performer: Performer, experiment: Experiment | None) -> None:
        performer.copy_image(self)


@dataclass(frozen=True, slots=True)
class CancelImage(ExperimentAction):
    """Cancel the build of an environment for one experiment."""

    reference: str  # name of the image at the engine

    is_order = True

    def describe(self, experiment: str | None = None) -> str:
        return f"cancel environment {self.reference} of {experiment or self.experiment} on {self.host}"

    def describe_done(self) -> str:
        return f"environment {self.reference} cancelled on {self.host}"

    def perform(self, performer: Performer, experiment: Experiment | None) -> None:
        performer.cancel_image(self)


@dataclass(frozen=True, slots=True)
class FetchData(NeedsRecord, ExperimentAction):
    """Bring the data of an experiment into the cache of the server, for its hosts. `host` builds the environment."""

    threads = "data-"
    fills = Disk.CACHE

    def describe(self, experiment: str | None = None) -> str:
        return f"fetch the data of {experiment or self.experiment}"

    def describe_done(self) -> str:
        return "has its data"

    def perform_for(self, performer: Performer, experiment: Experiment) -> None:
        performer.fetch_data(self, experiment)


@dataclass(frozen=True, slots=True)
class CopyData(NeedsRecord, ExperimentAction):
    """Copy the data of an experiment from the cache of the server to a host that does not see that cache."""

    threads = "data-"
    fills = Disk.HOST

    def describe(self, experiment: str | None = None) -> str:
        return f"copy the data of {experiment or self.experiment} to {self.host}"

    def describe_done(self) -> str:
        return f"has its data on {self.host}"

    def perform_for(self, performer: Performer, experiment: Experiment) -> None:
        performer.copy_data(self, experiment)


@dataclass(frozen=True, slots=True)
class CancelData(ExperimentAction):
    """End the fetch of an experiment's data, or its copy to a host."""

    is_order = True

    def describe(self, experiment: str | None = None) -> str:
        return f"cancel the fetch of the data of {experiment or self.experiment}"

    def describe_done(self) -> str:
        return "needs its data no longer"

    def perform(self, performer: Performer, experiment: Experiment | None) -> None:
        performer.cancel_data(self)


@dataclass(frozen=True, slots=True)
class SaveOutput(NeedsRecord, ExperimentAction):
    """Copy what is new in the output of an experiment, which `host` has, into its store."""

    last: int  # the attempt whose jobs have ended; 0: its jobs still run

    threads = "save-"  # a store that does not answer must not delay other actions

    def describe(self, experiment: str | None = None) -> str:
        return f"save the output of {experiment or self.experiment}"

    def describe_done(self) -> str:
        return "has its output saved"

    def perform_for(self, performer: Performer, experiment: Experiment) -> None:
        performer.save_output(self, experiment)


@dataclass(frozen=True, slots=True)
class RestoreOutput(NeedsRecord, ExperimentAction):
    """Fill the output of an experiment with what was saved, before the jobs of an attempt start."""

    attempt: int

    threads = "restore-"  # an attempt that has its place waits for no data of others

    def describe(self, experiment: str | None = None) -> str:
        return f"restore the output of {experiment or self.experiment} on {self.host} for attempt {self.attempt}"

    def describe_done(self) -> str:
        return f"has its output for attempt {self.attempt} on {self.host}"

    def perform_for(self, performer: Performer, experiment: Experiment) -> None:
        performer.restore_output(self, experiment)


@dataclass(frozen=True, slots=True)
class InheritOutput(NeedsRecord, ExperimentAction):
    """Fill the output of a trial with the files of its parent, before its jobs start."""

    parent: int  # number of the trial in the same set

    threads = "restore-"  # as `RestoreOutput`

    def describe(self, experiment: str | None = None) -> str:
        return (
            f"copy the files of trial {self.parent} into the output of {experiment or self.experiment} on {self.host}"
        )

    def describe_done(self) -> str:
        return f"has the files of trial {self.parent} on {self.host}"

    def perform_for(self, performer: Performer, experiment: Experiment) -> None:
        performer.inherit_output(self, experiment)


@dataclass(frozen=True, slots=True)
class CancelRestore(ExperimentAction):
    """End the restoration of an experiment's output, or the copy of its parent's files."""

    is_order = True

    def describe(self, experiment: str | None = None) -> str:
        return f"cancel the restoration of the output of {experiment or self.experiment} on {self.host}"

    def describe_done(self) -> str:
        return f"needs its output on {self.host} no longer"

    def perform(self, performer: Performer, experiment: Experiment | None) -> None:
        performer.cancel_restore(self)


@dataclass(frozen=True, slots=True)
class PrepareHost(NeedsRecord, ExperimentAction):
    """Create what the experiment's jobs share on a host: the output folder, and the network with this subnet."""

    subnet: str | None  # CIDR; None: no private network

    def describe(self, experiment: str | None = None) -> str:
        return f"prepare {self.host} for {experiment or self.experiment}{self._describe_network()}"

    def describe_done(self) -> str:
        return f"prepared on {self.host}{self._describe_network()}"

    def perform_for(self, performer: Performer, experiment: Experiment) -> None:
        performer.prepare_host(self, experiment)

    def _describe_network(self) -> str:
        return f" with network {self.subnet}" if self.subnet else ""


@dataclass(frozen=True, slots=True)
class StartJob(NeedsRecord, JobAction):
    """Create and start one job."""

    point_before = Point.STARTING
    point_after = Point.STARTED
    point_noted = Point.GANG_STARTING

    def describe(self, experiment: str | None = None) -> str:
        return f"start {_name_job(self.key, experiment)} on {self.host}"

    def describe_done(self) -> str:
        return f"started on {self.host}"

    def perform_for(self, performer: Performer, experiment: Experiment) -> None:
        performer.start_job(self, experiment)


@dataclass(frozen=True, slots=True)
class StartGang(NeedsRecord, ExperimentAction):
    """Hand one attempt of a gang over to a host with its own queue, which starts the whole gang when it has room."""

    attempt: int

    point_before = Point.STARTING
    point_after = Point.STARTED
    point_noted = Point.GANG_STARTING

    def describe(self, experiment: str | None = None) -> str:
        again = "" if self.attempt == 1 else f" (attempt {self.attempt})"
        return f"hand {experiment or self.experiment}{again} over to {self.host}"

    def describe_done(self) -> str:
        return f"handed over to {self.host}"

    def perform_for(self, performer: Performer, experiment: Experiment) -> None:
        performer.start_gang(self, experiment)


@dataclass(frozen=True, slots=True)
class StopJob(JobAction):
    """Send a signal to a running job."""

    signal: Signal

    point_after = Point.TERMINATED
    is_order = True

    @property
    def is_given_once(self) -> bool:
        return self.signal is not Signal.KILL

    def describe(self, experiment: str | None = None) -> str:
        return f"send {self.signal.value} to {_name_job(self.key, experiment)} on {self.host}"

    def describe_done(self) -> str:
        return f"got {self.signal.value} on {self.host}"

    def perform(self, performer: Performer, experiment: Experiment | None) -> None:
        performer.find_host(self.host).stop(self.key, self.signal)


@dataclass(frozen=True, slots=True)
class RemoveJob(JobAction):
    """Remove the container or process group of a job, running or not."""

    point_before = Point.REMOVING

    def describe(self, experiment: str | None = None) -> str:
        return f"remove {_name_job(self.key, experiment)} from {self.host}"

    def describe_done(self) -> str:
        return f"removed from {self.host}"

    def perform(self, performer: Performer, experiment: Experiment | None) -> None:
        performer.find_host(self.host).remove(self.key)


@dataclass(frozen=True, slots=True)
class ReleaseHost(ExperimentAction):
    """Remove what the jobs of an experiment shared on a host, except the output."""

    point_before = Point.RELEASING
    point_after = Point.RELEASED

    def describe(self, experiment: str | None = None) -> str:
        return f"release {self.host} from {experiment or self.experiment}"

    def describe_done(self) -> str:
        return f"released on {self.host}"

    def perform(self, performer: Performer, experiment: Experiment | None) -> None:
        performer.release_host(self, experiment)


def _name_job(key: JobKey, experiment: str | None) -> str:
    """Return `4.worker.1`, and from the second attempt on `4.worker.1 (attempt 2)`."""
    name = f"{experiment or key.experiment}.{key.job}"
    return name if key.attempt == 1 else f"{name} (attempt {key.attempt})"
