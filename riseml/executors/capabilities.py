"""What a host can do beyond `executors.base.Executor`: one object for each capability. A caller asks for it first.

Example:
    >>> inventory = executor.capabilities.inventory
    >>> items = [] if inventory is None else inventory.list_inventory(references)

A new capability is a Protocol of at most five methods here, with the records that it exchanges, and a field of
`Capabilities`. An executor that has it gives an object; processes, for example, do not move environments. The errors
are those of `executors.base`: `Unreachable` and `EngineError`.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from datetime import datetime
from enum import Enum
from typing import Protocol

from riseml.base.records import dataclass
from riseml.base.secrets import RegistryCredential
from riseml.base.stream_messages import CommandRequest
from riseml.diagnosis.stacks import ProcessStacks
from riseml.executors.base import Output, Report, ignore_report
from riseml.executors.gangs import GangRequest, MachineLister
from riseml.executors.job_stacks import ProfileRequest, RecordedProfile, StackRequest
from riseml.executors.job_streams import JobStream
from riseml.executors.written_files import Unread, WrittenFile, WrittenRequest
from riseml.files.archives.project_files import ProjectFiles
from riseml.files.storage_files import StorageFiles
from riseml.model import Gpu, Image, JobKey, Mount, Sample


class GangRunner(Protocol):
    """Has its own queue, places jobs itself, and starts the jobs of a gang together.

    Its observation has `HostObservation.queue`, so that riseml hands gangs over at once, and each job that waits there
    has `ContainerObservation.waits`. A gang also ends by `job_programs.gang_rules` while no server runs; a job that
    ended by these rules has `ContainerObservation.ending`.
    """

    def start_gang(self, gang: GangRequest, code: ProjectFiles | None) -> None:
        """Put a gang into the queue of the host, with the project's files `code` in each working directory.

        Raises:
            EngineError: the host refuses the gang (permanent), or an earlier attempt has not ended.
        """


class ImageMover(Protocol):
    """Copies environments to and from other hosts of its kind."""

    def export_image(self, reference: str) -> Iterator[bytes]:
        """Yield an environment in the form that `import_image` of another host reads.

        Raises:
            EngineError: the environment is not present.
        """

    def import_image(self, reference: str, stream: Iterator[bytes]) -> None:
        """Store what another host exported; return when the environment is present."""

    def measure_image(self, reference: str) -> int | None:
        """Return about how many bytes `export_image` yields; None: not known."""

    def publish_image(self, reference: str, registry: str, report: Report = ignore_report) -> str:
        """Push an environment to a registry that the other hosts reach; return its name there, with its digest."""

    def fetch_image(self, reference: str, published: str, report: Report = ignore_report) -> None:
        """Pull an environment that another host published, by the name that `publish_image` returned."""


class ImageResolver(Protocol):
    """Resolves the tags of images at their registries."""

    def resolve_in_registry(self, base: str, credential: RegistryCredential | None = None) -> str:
        """Return the image with the digest that its registry gives for the tag: `python@sha256:...`.

        Args:
            base: the image.
            credential: for the registry; None: it needs none.

        Raises:
            EngineError: the registry does not answer, or does not have the image.
        """

    def check_registry(self, digest: str, credential: RegistryCredential | None = None) -> None:
        """Check that the registry of an image, such as `python@sha256:...`, has the image.

        Raises:
            EngineError: the registry does not answer, or does not have the image.
        """


@dataclass(frozen=True, slots=True)
class EnvironmentReview:
    """Which environment a host would build."""

    replaced_by: str  # what jobs get instead of the image: `a virtual environment with tensorboard`; empty: the image
    refusal: str = ""  # why the host can never build the environment; empty: it can


class EnvironmentReviewer(Protocol):
    """Reports before a build which environment the host would make."""

    def review_environment(self, image: Image) -> EnvironmentReview:
        """Return which environment the host would make; change nothing, and run no step."""


class InventoryKind(Enum):
    """A kind of object that riseml leaves on a host, or next to the store. `system clean` removes the kinds in this
    order."""

    CONTAINER = "container"
    NETWORK = "network"
    FOLDER = "folder"  # what the processes of an experiment share
    CODE = "code"  # a project's files on top of an environment
    ENVIRONMENT = "environment"  # an image, or a virtual environment
    SNAPSHOT = "snapshot"  # a project archive
    CAPSULE = "capsule"  # the server's copy of one
    SAVED = "saved"  # what the server knows of an output in a store
    DATA = "data"  # data that the server fetched


@dataclass(frozen=True, slots=True)
class InventoryItem:
    """One object of any riseml server on a host."""

    kind: InventoryKind
    identity: str  # id of the object at the host
    name: str  # for people
    server: str = ""  # id of the server that made it; empty: not known
    experiment: int | None = None
    reference: str = ""  # reference of an environment; for code, the digest of the project
    running: bool = False
    size: int | None = None  # bytes
    made_at: datetime | None = None
    environments: tuple[str, ...] = ()  # environments on the host that contain this image of an install step


def never() -> bool:
    """Return False: nothing needs an object of the inventory."""
    return False


class Inventory(Protocol):
    """Lists and removes everything of riseml on the host, other servers' objects too."""

    def list_inventory(self, references: frozenset[str]) -> list[InventoryItem]:
        """Return every object of riseml.

        Args:
            references: environments that may be present, for a host that cannot list their names.
        """

    def discard_item(self, item: InventoryItem, is_needed: Callable[[], bool] = never) -> None:
        """Remove an object of the inventory; does nothing when it does not exist.

        Args:
            item: the object.
            is_needed: is asked at the last moment; True: the object stays. An observation that begins after the
                answer does not show an environment that is removed.

        Raises:
            EngineError: it is in use.
        """


@dataclass(frozen=True, slots=True)
class DiskUse:
    """How full a file system is."""

    percent: int  # as `df` shows it: of what users may fill, rounded up
    device: str = ""  # equal for folders of this machine on one file system; empty: on another machine


class DiskMeter(Protocol):
    """Measures how full the disk of the host is that holds its environments."""

    def read_disk(self) -> DiskUse | None:
        """Return how full it is; None: the host cannot tell.

        Raises:
            Unreachable: the host does not answer.
            EngineError: it cannot be measured now.
        """


class Outcome(Enum):
    """The result of one check of a host."""

    OK = "ok"
    NOTE = "note"  # harmless, but worth knowing
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check of a host, with a sentence for people."""

    topic: str  # what was checked: `connection`, `clock`
    outcome: Outcome
    message: str


@dataclass(frozen=True, slots=True)
class HostReport:
    """The properties of a host that answers, for checks that compare hosts."""

    findings: tuple[Finding, ...]
    managers: frozenset[str] = frozenset()  # ids of managers of the Docker Swarm that it belongs to; empty: none
    leaderless: bool = False  # it manages that swarm, which has no leader now
    kernel: str = ""  # release of its kernel: `6.1.0-18-amd64`; empty: not known
    engine: str = ""  # identifies its engine; equal texts most likely mean the same engine; empty: not known


class HostCheck(Protocol):
    """Checks for `riseml pool check` whether the host meets the needs of a pool."""

    def check_host(self) -> HostReport:
        """Return the findings that need no other host.

        Raises:
            Unreachable: the host does not answer.
        """

    def read_file(self, mount: Mount, name: str) -> bytes | None:
        """Return the content of a small file in a folder or volume of the host; None: there is no such file.

        Raises:
            EngineError: the host cannot mount it.
        """

    def write_file(self, mount: Mount, name: str, content: bytes) -> None:
        """Write a small file, for its owner alone, into a folder or volume of the host.

        Raises:
            EngineError: the host cannot mount it, or not write there.
        """

    def check_privacy(self, mount: Mount, name: str) -> Finding | None:
        """Return a finding when other users of the host can reach files of jobs in a folder or volume; else None.

        Args:
            mount: the root of outputs.
            name: a small file that `write_file` has written there.

        Raises:
            EngineError: the host cannot mount it.
        """


@dataclass(frozen=True, slots=True)
class GpuReading:
    """A GPU with its current load. A field is None when the driver does not report it."""

    gpu: Gpu
    percent: float | None = None  # percent of the time in which the GPU worked
    mem_used: int | None = None  # bytes
    temperature: float | None = None  # degrees Celsius
    power: float | None = None  # watts
    power_limit: float | None = None  # watts


class GpuReporter(Protocol):
    """Reports the GPUs of the host and their load."""

    def read_gpus(self) -> tuple[GpuReading, ...]:
        """Return every GPU that jobs may use here, in the order of nvidia-smi; empty without any.

        Raises:
            Unreachable: the host does not answer.
            EngineError: the driver or the reading program fails; the message has the reason.
        """


class UseMeter(Protocol):
    """Measures what one job uses at each call."""

    def read_use(self) -> Sample | None:
        """Return what the job has used since the previous reading; None the first time.

        Raises:
            NotThere: the job does not run.
            Unreachable: the host does not answer.
        """


class UseMeasurer(Protocol):
    """Measures what jobs use at moments that the caller chooses: it costs less than `Executor.sample`."""

    def open_meter(self, key: JobKey) -> UseMeter:
        """Return a meter of a job. The meter has measured nothing yet, and needs no closing."""

    def measure_processor_time(self, key: JobKey) -> float:
        """Return the seconds that all processes of a running job have used together since it started.

        The value may decrease when a process ends.

        Raises:
            NotThere: the job does not run.
            Unreachable: the host does not answer.
        """


class JobAccess(Protocol):
    """Opens two-way streams into the running jobs of the host."""

    def open_command(self, key: JobKey, request: CommandRequest) -> JobStream:
        """Start a command in a job, with the job's user, folder and variables.

        What the command starts ends with it, or with the stream, or with the job, whichever is first.

        Raises:
            NotThere: the job does not run.
        """

    def open_port(self, key: JobKey, port: int) -> JobStream:
        """Connect to a port on which a process of a job listens.

        Raises:
            NotThere: the job does not run.
            PortClosed: no process of the job listens on the port.
        """


class OutputWriter(Protocol):
    """Writes into output folders on a host whose files the server does not see."""

    def update_output(self, experiment: int, output: Output) -> None:
        """Unpack the tar below the root of outputs again; replace existing files.

        Raises:
            EngineError: a part of the folder is a link, or another user made it (permanent).
        """


class WrittenReader(Protocol):
    """Reads what a job that has ended wrote outside of its output folder, until the job is removed."""

    def read_written(self, request: WrittenRequest) -> Iterator[WrittenFile | Unread]:
        """Yield the files and links that the job has made or changed in its working folder, and those elsewhere that
        the request wants. Files of the project that the job has not changed are left out.

        Raises:
            EngineError: they cannot be read now.
            NotThere: the job does not exist.
        """


@dataclass(frozen=True, slots=True)
class DataVolume:
    """A volume of a host with a copy of data that a server has fetched."""

    name: str
    key: str  # key of the set of data


class HostData(Protocol):
    """Holds one server's copies of fetched data in volumes, for jobs of a host that does not see the server's cache."""

    def list_volumes(self) -> frozenset[str]:
        """Return the names of the volumes."""

    def make_volume(self, volume: DataVolume) -> None:
        """Make an empty volume; does nothing when it exists."""

    def write_tar(self, volume: DataVolume, tar: Iterator[bytes]) -> None:
        """Unpack a tar in a volume.

        Raises:
            EngineError: the disk of the host is full (permanent), or the volume is gone.
        """

    def read_tar(self, volume: DataVolume) -> Generator[bytes, None, None]:
        """Write a volume to the disk of the host, then yield everything in it as a tar, whose names begin with the
        name of one folder.

        Raises:
            EngineError: the host cannot write it, or does not show it.
        """

    def remove_volume(self, name: str) -> None:
        """Remove a volume; does nothing when it does not exist.

        Raises:
            EngineError: a container uses it.
        """


ListUsed = Callable[[], frozenset[str]]
"""Returns references of environments that are in use."""


class BuildReaper(Protocol):
    """Runs builds of environments that outlive the server: the next server follows them, or ends them."""

    def end_unwanted_builds(self, references: frozenset[str], list_used: ListUsed = frozenset) -> None:
        """End the builds of this server that no experiment waits for and no thread follows, and the removals of
        environments that an earlier server has begun. It returns at once; what could not be ended is tried again at the
        next call.

        Args:
            references: the environments that experiments wait for.
            list_used: returns the environments of all open experiments.
        """


class PackageLister(Protocol):
    """Lists the Python packages of an environment after its install steps."""

    def list_packages(self, reference: str) -> tuple[str, ...] | None:
        """Return the output of `pip freeze` at the end of the build; None: it did not run, or the environment is
        gone."""


@dataclass(frozen=True, slots=True)
class StorageRequest:
    """Which files of a host the caller wants."""

    title: str  # their name for people: `output://4`
    mount: Mount  # the folder or volume of the host
    below: str = ""  # the folder in it that counts as the root; empty: the mount itself
    user: tuple[int, int] | None = None  # uid and gid that read and write; None: the owner of the mount
    image: str = ""  # an environment that the host most likely has; empty: none is known


class StorageAccess(Protocol):
    """Lists, reads, writes and removes files on a host whose files the server does not see."""

    def open_storage(self, request: StorageRequest) -> StorageFiles:
        """Return the files of a folder or volume.

        Raises:
            EngineError: the host cannot mount it.
        """


class StackReader(Protocol):
    """Reads what the processes of running jobs do, from outside: a job needs no right and no program for it."""

    def read_stacks(self, key: JobKey, request: StackRequest) -> tuple[ProcessStacks, ...]:
        """Return the processes of a job with their stacks. Each process stops for some milliseconds.

        Raises:
            NotThere: the job does not run.
            EngineError: nothing could be read.
        """

    def record_profile(self, key: JobKey, request: ProfileRequest) -> RecordedProfile:
        """Return where the Python processes of a job are, for some seconds. Blocks for so long.

        Raises:
            NotThere: the job does not run.
            EngineError: nothing could be recorded.
        """


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a host can do beyond `executors.base.Executor`; None: it cannot."""

    access: JobAccess | None = None
    builds: BuildReaper | None = None
    check: HostCheck | None = None
    data: HostData | None = None
    disk: DiskMeter | None = None
    gangs: GangRunner | None = None
    gpus: GpuReporter | None = None
    images: ImageMover | None = None
    inventory: Inventory | None = None
    machines: MachineLister | None = None
    outputs: OutputWriter | None = None
    packages: PackageLister | None = None
    registries: ImageResolver | None = None
    reviewer: EnvironmentReviewer | None = None
    secret_files: bool | None = None  # True: jobs may read secrets as files in memory
    stacks: StackReader | None = None
    storage: StorageAccess | None = None
    use: UseMeasurer | None = None
    written: WrittenReader | None = None
