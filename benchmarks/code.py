"""How a project's code reaches eight jobs on one engine: in an image layer that they share, or as a copy for each.

The bench measures the executor alone: the time from the call that starts eight jobs at once until the last container
runs, and the space that the code takes on the engine's disk, as the engine counts it.
"""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from benchmarks.common import Bar, BenchContext, Measure, Report, bar_at_most, interleave, median, select_measures
from benchmarks.engine import BASE, BenchEngine
from riseml.base.names import HostName, JobName
from riseml.base.states import Network
from riseml.executors.capabilities import InventoryKind
from riseml.executors.docker import labels
from riseml.executors.docker.executor import DockerExecutor
from riseml.executors.transports.engine_client import Engine
from riseml.files.archives.entries import ArchiveEntry
from riseml.files.archives.project_files import KeptState, ProjectFiles
from riseml.files.project.archive import pack_snapshot, take_snapshot
from riseml.files.project.listing import list_project_files
from riseml.model import Image, JobKey, Launch, Owner
from riseml.spec.config.types import Limits, Resources
from riseml.spec.pool.types import HostSpec
from riseml.store.projects.snapshots import SnapshotStore

_JOBS = 8
_FILES = 1_000
_SIZE = 1_000_000  # bytes of each
_MB = 1e6
_LAYER = "a layer that all share"
_COPIES = "unpacked for each job"
_FIRST = "first time"
_CHANGED = "again, one file changed"
_SAME = "again, nothing changed"
_DISK = "the engine's disk, first time"
_CAUSE = "both contenders write the code to the engine's disk, which other programs may have used at the same time"


class _Unpacked:
    """The files of a project without their stored state: the executor unpacks them into each container."""

    def __init__(self, project: ProjectFiles) -> None:
        self._project = project

    def read_files(self) -> Iterator[tuple[ArchiveEntry, Iterator[bytes]]]:
        return self._project.read_files()


def run(context: BenchContext) -> Report:
    report = Report()
    project = context.folder / "project"
    store = SnapshotStore(context.folder / "snapshots")
    files = context.rounds(_FILES, _FILES // 32)
    _write(project, files)
    contenders = {
        _LAYER: lambda turn: _Round(context, project, store).measure(turn, shares=True),
        _COPIES: lambda turn: _Round(context, project, store).measure(turn, shares=False),
    }
    results = interleave(context.rounds(3), contenders)
    for name in (_FIRST, _CHANGED, _SAME):
        report.add(f"{_JOBS} jobs run, {name}", *select_measures(results, name))
    disk = {name: Measure(name, tuple(kinds[_DISK]), "MB") for name, kinds in results.items()}
    report.add(_DISK, *disk.values())
    code = files * _SIZE / _MB
    report.bars = [
        bar_at_most(f"disk of {_JOBS} jobs: one copy of {code:,.0f} MB", disk[_LAYER].median, 1.1 * code, "MB"),
        *(_bar_behind(results, name) for name in (_FIRST, _CHANGED, _SAME)),
    ]
    return report


def _bar_behind(results: Mapping[str, Mapping[str, list[float]]], name: str) -> Bar:
    requirement = f"{_JOBS} jobs run, {name}: not behind a copy for each"
    return bar_at_most(requirement, median(results[_LAYER][name]), median(results[_COPIES][name]), "s", _CAUSE)


def _write(project: Path, files: int) -> None:
    project.mkdir()
    for number in range(files):
        (project / f"{number}.bin").write_bytes(random.Random(number).randbytes(_SIZE))


class _Round:
    """One executor with a server ID of its own: it finds nothing of an earlier round on the engine."""

    def __init__(self, context: BenchContext, project: Path, store: SnapshotStore) -> None:
        self._server = uuid.uuid4().hex
        self._engine = BenchEngine(context.engine)
        self._executor = DockerExecutor(
            HostSpec(HostName("here"), context.engine), self._server, Engine(context.engine)
        )
        assert self._executor.capabilities.inventory is not None
        self._inventory = self._executor.capabilities.inventory
        self._project = project
        self._store = store

    def measure(self, turn: int, *, shares: bool) -> Mapping[str, float]:
        try:
            figures = {_FIRST: self._start(1, shares=shares), _DISK: self._count_disk()}
            self._remove_jobs()
            figures[_SAME] = self._start(2, shares=shares)
            self._remove_jobs()
            (self._project / "0.bin").write_bytes(random.Random(f"{turn} {shares}").randbytes(_SIZE))
            return {**figures, _CHANGED: self._start(3, shares=shares)}
        finally:
            self._clean_up()

    def _start(self, experiment: int, *, shares: bool) -> float:
        """Start eight jobs, and return the seconds until the last one runs."""
        digest, code = self._keep()
        launches = [
            self._make_launch(JobKey(experiment, JobName(f"worker.{index}"), 1), digest) for index in range(_JOBS)
        ]
        with ThreadPoolExecutor(_JOBS) as pool:
            begun = time.perf_counter()
            list(pool.map(lambda launch: self._executor.start(launch, code if shares else _Unpacked(code)), launches))
            return time.perf_counter() - begun

    def _keep(self) -> tuple[str, KeptState]:
        """Store the current files as the server does, and return their digest and the stored state."""
        snapshot = take_snapshot(list_project_files(self._project))
        if not self._store.has_snapshot(snapshot.digest):
            tar = self._project.with_name("upload.tar")
            with tar.open("wb") as file:
                file.writelines(pack_snapshot(snapshot))
            self._store._keep_archive(snapshot.digest, tar)
            tar.unlink()
        state = self._store.find_files(snapshot.digest)
        if not isinstance(state, KeptState):
            raise RuntimeError("the server does not have the project that it was sent")
        return snapshot.digest, state

    def _make_launch(self, key: JobKey, digest: str) -> Launch:
        return Launch(
            key=key,
            server=self._server,
            title=f"bench.{key.experiment}.{key.job}",
            hostname=key.job.replace(".", "-"),
            image=Image(BASE),
            command=("/bin/sh", "-ec", "exec sleep 600"),
            environment=(),
            resources=Resources(0.05, 32, 0),
            limits=Limits(),
            shm_size=64,
            owner=Owner("bench", 1000, 1000),
            snapshot=digest,
            network=Network.HOST,
        )

    def _count_disk(self) -> float:
        """Return the MB that the code layers and the files written by the containers take."""
        filters = {"label": labels.label_filter(labels.SERVER, self._server)}
        written = sum(int(row.get("SizeRw") or 0) for row in self._engine.api.containers(filters=filters, size=True))
        items = self._inventory.list_inventory(frozenset())
        layers = (item for item in items if item.kind is InventoryKind.CODE and item.server == self._server)
        return (written + sum(layer.size or 0 for layer in layers)) / _MB

    def _remove_jobs(self) -> None:
        self._engine.remove(labels.label_filter(labels.SERVER, self._server))

    def _clean_up(self) -> None:
        self._remove_jobs()
        for item in self._inventory.list_inventory(frozenset()):
            if item.kind is InventoryKind.CODE and item.server == self._server:
                self._inventory.discard_item(item)
