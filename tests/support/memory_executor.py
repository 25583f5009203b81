"""A host in memory: the fake of `executors.base`, with the behaviour that was measured on a real engine.

A reply may be lost after the work was done; a failed start leaves a container that never started; a host may stop
answering and come back with its jobs still running; a repeated start finds the container of the first one.
"""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path

from riseml.base.errors import EngineError, Unreachable
from riseml.base.names import HostName
from riseml.base.stream_messages import CommandRequest, WindowSize
from riseml.control.actions import Signal
from riseml.executors.base import (
    BuildRequest,
    HostSetup,
    ImageMissing,
    NotThere,
    Output,
    PortClosed,
    Report,
    SubnetTaken,
    WorkReport,
    ignore_report,
)
from riseml.executors.capabilities import (
    Capabilities,
    EnvironmentReview,
    Finding,
    GpuReading,
    HostReport,
    InventoryItem,
    InventoryKind,
    StorageRequest,
    UseMeter,
    never,
)
from riseml.executors.job_streams import JobStream, NoControl, RawCodec
from riseml.files.archives.project_files import ProjectFiles
from riseml.files.local_files import LocalFiles
from riseml.files.storage_files import StorageFiles, translate_files_error
from riseml.job_programs.folder_paths import enter_folder, split_path
from riseml.model import (
    Capacity,
    ContainerObservation,
    Frame,
    HostObservation,
    Image,
    ImageObservation,
    JobKey,
    Launch,
    LogCursor,
    Mount,
    Sample,
)
from tests.support.memory_data import MemoryData
from tests.support.waiting import DEADLINE

KILLED = 128 + 9
TERMINATED = 128 + 15


@dataclass
class Faults:
    """The faults of a host. The counts go down with each call that fails."""

    silent: bool = False  # the host answers no call
    late: bool = False  # the host lists its jobs, and does not say how they are
    lost_replies: int = 0  # this many calls do their work, and their answer is lost
    bad_starts: int = 0  # this many starts fail for good
    ignores_term: bool = False  # jobs survive SIGTERM
    no_registry: bool = False  # images cannot be fetched
    refused_environment: str = ""  # why the host makes no environment; a review returns it
    taken_subnets: set[str] = field(default_factory=set)  # no network can have these


class MemoryCommand:
    """A command that a job runs: the job's end of its stream, and what happened to it. A test plays the command."""

    def __init__(self, order: CommandRequest) -> None:
        self.order = order
        self.sizes: list[WindowSize] = [] if order.terminal is None else [order.terminal]
        self.exit_code = 0  # the exit code of the command
        self.ended = threading.Event()  # the server has ended the command
        self.far, self.near = socket.socketpair()  # the job's end, and the server's

    def resize(self, size: WindowSize) -> None:
        self.sizes.append(size)

    def find_exit_code(self) -> int | None:
        return self.exit_code

    def end(self) -> None:
        self.ended.set()


@dataclass(slots=True)
class MemoryMeter:
    """Gives the samples that a test has chosen, one after the other, and then none."""

    check: Callable[[], None]  # raises `NotThere` or `Unreachable`
    samples: Iterator[Sample]

    def read_use(self) -> Sample | None:
        self.check()
        return next(self.samples, None)


class MemoryExecutor:
    """One host in memory.

    Args:
        name, capacity: its name in the pool, and what it holds.
        site: its labels, addresses and swarm, and whether it takes new jobs; its other fields are ignored.
    """

    contained = True
    url = ""
    is_local = True

    def __init__(self, name: HostName, capacity: Capacity, site: HostObservation | None = None) -> None:
        self.name = name
        self.capacity = capacity
        self.site = site or HostObservation(capacity)
        self.drains = True  # the log of a job that ends is stored at once; False: after `drain`
        self.now: datetime | None = None  # the server's time of day
        self.ahead = timedelta()  # how far the host's time of day is ahead of that
        self.uptime = 0.0  # seconds, by a monotonic clock
        self.measures = False  # the host says how long jobs have run by that clock
        self.began: dict[JobKey, float] = {}  # the uptime at which each job started
        self.faults = Faults()
        self.containers: dict[JobKey, ContainerObservation] = {}
        self.networks: dict[int, str] = {}  # subnets by experiment
        self.images: set[str] = set()  # references
        self.tags: dict[str, str] = {}  # tag -> its image, here and at the registry; without an entry, the first
        self.processor_times: dict[JobKey, float] = {}  # seconds; a job without an entry has used none
        self.samples: dict[JobKey, Iterable[Sample]] = {}  # the samples of a job, in order
        self.reports: tuple[WorkReport, ...] = ()  # the output of builds on this host
        self.layers: set[str] = set()  # digests of the projects whose code the host keeps
        self.packages: dict[str, tuple[str, ...]] = {}  # the packages of each environment, by reference
        self.outputs: dict[int, list[Output]] = {}  # what was written into the output of each experiment, in order
        self.writes = 0  # calls that change the host
        self.launches: list[Launch] = []  # every start, in order
        self.report = HostReport((), frozenset(filter(None, [self.site.swarm])))  # what it says of itself
        self.gpus: tuple[GpuReading, ...] = ()  # the load of its GPUs; `site` has their models
        self.gpu_trouble: EngineError | None = None  # why its GPUs cannot be read
        self.files: dict[tuple[str, str], bytes] = {}  # by source of the mount and name; hosts may share one of these
        self.storages: dict[str, Path] = {}  # where this machine has the files of a mount, by its source
        self.data = MemoryData()
        self.commands: list[MemoryCommand] = []  # every command in a job, in order
        self.ports: dict[int, int] = {}  # port of a job -> port of this machine where a test listens for it

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(
            access=self,
            check=self,
            data=self.data,
            gpus=self,
            images=self,
            inventory=self,
            outputs=self,
            packages=self,
            reviewer=self,
            storage=self,
            use=self,
        )

    def reconnect(self) -> None:
        pass

    def close(self) -> None:
        pass

    def describe(self) -> str:
        return "memory"

    def observe(self, references: frozenset[str]) -> HostObservation:
        self._demand_answer()
        return replace(
            self.site,
            capacity=self.capacity,
            containers=self._observe_containers(),
            images=self._observe_images(references),
            networks=dict(self.networks),
        )

    def review_environment(self, image: Image) -> EnvironmentReview:
        return EnvironmentReview("", self.faults.refused_environment)

    def ensure_image(self, order: BuildRequest) -> None:
        self._begin_write()
        order.cancellation.check()
        for report in self.reports:
            order.report(report)
        base = order.image.resolved or self._resolve_tag(order.image.base)
        if self.faults.no_registry and not self._has_image(base):
            raise ImageMissing(f"the image {base} is not on the host and cannot be fetched", permanent=True)
        self.images |= {base, order.image.reference}
        self._end_write()

    def export_image(self, reference: str) -> Iterator[bytes]:
        self._demand_answer()
        if not self._has_image(reference):
            raise EngineError(f"the image is not there: {reference}")
        yield reference.encode()

    def import_image(self, reference: str, stream: Iterator[bytes]) -> None:
        self._begin_write()
        self.images.add(b"".join(stream).decode())
        self._end_write()

    def measure_image(self, reference: str) -> int | None:
        self._demand_answer()
        return len(reference.encode()) if self._has_image(reference) else None

    def publish_image(self, reference: str, registry: str, report: Report = ignore_report) -> str:
        self._demand_answer()
        if not self._has_image(reference):
            raise EngineError(f"the image is not there: {reference}")
        return f"{registry}/{reference}"

    def fetch_image(self, reference: str, published: str, report: Report = ignore_report) -> None:
        self._begin_write()
        self.images.add(reference)
        self._end_write()

    def prepare(self, share: HostSetup) -> None:
        self._begin_write()
        if share.subnet in self.faults.taken_subnets:
            raise SubnetTaken(f"the subnet {share.subnet} is in use on the host")
        self.networks[share.experiment] = share.subnet or ""
        if share.output is not None:
            self.outputs.setdefault(share.experiment, []).append(share.output)
        self._end_write()

    def update_output(self, experiment: int, output: Output) -> None:
        self._begin_write()
        self.outputs.setdefault(experiment, []).append(output)
        self._end_write()

    def list_packages(self, reference: str) -> tuple[str, ...] | None:
        self._demand_answer()
        return self.packages.get(reference)

    def start(self, launch: Launch, code: ProjectFiles | None) -> None:
        self._begin_write()
        if launch.key not in self.containers and not self._has_image(launch.image.reference):
            raise EngineError(f"the image is not there: {launch.image.reference}")
        self.launches.append(launch)
        if code is not None and launch.snapshot:
            self.layers.add(launch.snapshot)
        container = self.containers.setdefault(
            launch.key, ContainerObservation(launch.key, str(launch.key), started=False)
        )
        if self.faults.bad_starts:
            self.faults.bad_starts -= 1
            self.containers[launch.key] = replace(container, error="exec: no such file")
            raise EngineError("exec: no such file", permanent=True)
        if not container.started and not container.error:
            self.containers[launch.key] = replace(container, started=True, started_at=self._read_time())
            self.began[launch.key] = self.uptime
        self._end_write()

    def stop(self, key: JobKey, signal: Signal) -> None:
        self._begin_write()
        container = self.containers.get(key)
        if container is not None and container.running and not (signal is Signal.TERM and self.faults.ignores_term):
            self.exit(key, TERMINATED if signal is Signal.TERM else KILLED)
        self._end_write()

    def remove(self, key: JobKey) -> None:
        self._begin_write()
        self.containers.pop(key, None)
        self._end_write()

    def release(self, experiment: int) -> None:
        self._begin_write()
        self.networks.pop(experiment, None)
        self._end_write()

    def list_inventory(self, references: frozenset[str]) -> list[InventoryItem]:
        self._demand_answer()
        return [
            *(
                InventoryItem(InventoryKind.CONTAINER, str(key), str(key), "", key.experiment)
                for key in self.containers
            ),
            *(InventoryItem(InventoryKind.NETWORK, str(number), str(number), "", number) for number in self.networks),
            *(InventoryItem(InventoryKind.CODE, name, name, reference=name) for name in sorted(self.layers)),
            *(InventoryItem(InventoryKind.ENVIRONMENT, name, name, reference=name) for name in sorted(self.images)),
        ]

    def discard_item(self, item: InventoryItem, is_needed: Callable[[], bool] = never) -> None:
        self._begin_write()
        if is_needed():
            raise EngineError(f"an experiment needs {item.name}")
        if item.kind is InventoryKind.CONTAINER:
            self.containers = {
                key: container for key, container in self.containers.items() if str(key) != item.identity
            }
        elif item.kind is InventoryKind.NETWORK:
            self.networks.pop(int(item.identity), None)
        elif item.kind is InventoryKind.CODE:
            self.layers.discard(item.identity)
        else:
            self.images.discard(item.identity)
        self._end_write()

    def check_host(self) -> HostReport:
        self._demand_answer()
        return self.report

    def read_file(self, mount: Mount, name: str) -> bytes | None:
        self._demand_answer()
        return self.files.get((mount.source, name))

    def write_file(self, mount: Mount, name: str, content: bytes) -> None:
        self._begin_write()
        self.files[mount.source, name] = content
        self._end_write()

    def read_gpus(self) -> tuple[GpuReading, ...]:
        self._demand_answer()
        if self.gpu_trouble is not None:
            raise self.gpu_trouble
        return self.gpus

    def check_privacy(self, mount: Mount, name: str) -> Finding | None:
        self._demand_answer()
        return None

    def read_log(self, key: JobKey, cursor: LogCursor, *, follow: bool) -> Iterator[list[Frame]]:
        self._demand_answer()
        yield from ()

    def sample(self, key: JobKey) -> Iterator[Sample]:
        self._demand_answer()
        yield from self.samples.get(key, ())

    def open_meter(self, key: JobKey) -> UseMeter:
        return MemoryMeter(lambda: self._demand_running(key), iter(self.samples.get(key, ())))

    def measure_processor_time(self, key: JobKey) -> float:
        self._demand_running(key)
        return self.processor_times.get(key, 0.0)

    def open_command(self, key: JobKey, order: CommandRequest) -> JobStream:
        self._demand_running(key)
        command = MemoryCommand(order)
        self.commands.append(command)
        return JobStream(command.near, RawCodec(), command)

    def open_port(self, key: JobKey, port: int) -> JobStream:
        self._demand_running(key)
        if port not in self.ports:
            raise PortClosed(f"nothing listens on port {port}", permanent=True)
        return JobStream(socket.create_connection(("127.0.0.1", self.ports[port])), RawCodec(), NoControl())

    def open_storage(self, order: StorageRequest) -> StorageFiles:
        self._demand_answer()
        folder = self.storages.get(order.mount.source)
        if folder is None:
            raise EngineError(f"the host has no {order.mount.source}", permanent=True)

        def open_root() -> int:
            with translate_files_error(order.title):
                root = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
                try:
                    return enter_folder(root, split_path(order.below), order.below)
                finally:
                    os.close(root)

        return LocalFiles(order.title, open_root, open_root)

    def changes(self) -> Iterator[None]:
        threading.Event().wait()
        yield from ()

    def exit(self, key: JobKey, code: int, *, oom: bool = False) -> None:
        """End a job as if by itself."""
        ended = replace(self._measure(self.containers[key]), exit_code=code, oom=oom, drained=self.drains)
        self.containers[key] = replace(ended, finished_at=self._read_time())

    def drain(self, key: JobKey) -> None:
        """Let the server store the rest of the log of a job that has ended."""
        container = self.containers[key]
        self.containers[key] = replace(container, drained=container.started and not container.running)

    def move_tag(self, tag: str, number: int) -> None:
        """Move a tag to another image; the earlier image stays on the host."""
        if tag in self.images:
            self.images |= {self._resolve_tag(tag), f"{tag}@{number}"}
        self.tags[tag] = f"{tag}@{number}"

    def _observe_containers(self) -> dict[JobKey, ContainerObservation]:
        if not self.faults.late:
            return {key: self._measure(container) for key, container in self.containers.items()}
        return {
            key: ContainerObservation(key, container.id, started=True, late=True)
            for key, container in self.containers.items()
        }

    def _read_time(self) -> datetime | None:
        return None if self.now is None else self.now + self.ahead

    def _measure(self, container: ContainerObservation) -> ContainerObservation:
        """Return a container with the seconds that it has run, if the host measures them."""
        if not self.measures or not container.running:
            return container
        return replace(container, ran=self.uptime - self.began[container.key])

    def _observe_images(self, references: frozenset[str]) -> dict[str, ImageObservation]:
        tags = [reference for reference in references if "@" not in reference]
        images = {tag: ImageObservation(present=tag in self.images, resolved=self._resolve_tag(tag)) for tag in tags}
        fixed = (references - images.keys()) | {self._resolve_tag(tag) for tag in tags}
        return {**images, **{reference: ImageObservation(present=self._has_image(reference)) for reference in fixed}}

    def _resolve_tag(self, tag: str) -> str:
        return self.tags.get(tag, f"{tag}@1")

    def _has_image(self, reference: str) -> bool:
        return reference in self.images or any(self._resolve_tag(tag) == reference for tag in self.images)

    def _demand_running(self, key: JobKey) -> None:
        self._demand_answer()
        container = self.containers.get(key)
        if container is None or not container.running:
            raise NotThere(f"the job does not run: {key.job}")

    def _demand_answer(self) -> None:
        if self.faults.silent:
            raise Unreachable(f"host {self.name} does not answer")

    def _begin_write(self) -> None:
        self._demand_answer()
        self.writes += 1

    def _end_write(self) -> None:
        """Answer after doing the work, unless this reply is to be lost."""
        if self.faults.lost_replies:
            self.faults.lost_replies -= 1
            raise Unreachable(f"host {self.name} did not answer in time")


class SlowExecutor(MemoryExecutor):
    """A host that answers after `may` is set."""

    def __init__(self, name: HostName, capacity: Capacity) -> None:
        super().__init__(name, capacity)
        self.may = threading.Event()

    def observe(self, references: frozenset[str]) -> HostObservation:
        assert self.may.wait(DEADLINE)
        return super().observe(references)
