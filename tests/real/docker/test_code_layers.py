"""The code of a project reaches an engine once, and each job finds the same files as in a container of its own."""

from __future__ import annotations

import hashlib
import io
import os
import tarfile
import threading
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import docker
import pytest

from riseml.base.errors import EngineError, StoreError
from riseml.base.names import HostName, JobName
from riseml.base.states import Network
from riseml.executors.base import BuildRequest, Cancellation
from riseml.executors.capabilities import Inventory, InventoryItem, InventoryKind
from riseml.executors.docker import code_layers, labels
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
from tests.support.rig import BASE
from tests.support.waiting import DEADLINE

pytestmark = pytest.mark.every_engine

OWNER = Owner("paul", 1234, 5678)
STEPS = (
    "echo made > made.txt",
    "mkdir -p d1 && echo made > d1/made.txt",
    "echo made > replaced.txt",
    # One environment for each worker of the tests: two that build one at the same time may get two images.
    f"true {os.environ.get('PYTEST_XDIST_WORKER', '')}",
)


class Unpacked:
    """The same files without the state: they are unpacked into the container of each job, as small projects are."""

    def __init__(self, project: ProjectFiles) -> None:
        self._project = project

    def read_files(self) -> Iterator[tuple[ArchiveEntry, Iterator[bytes]]]:
        return self._project.read_files()


class Site:
    """An executor with a server's id of its own, and the states of one project."""

    def __init__(self, url: str, folder: Path) -> None:
        self.server = uuid.uuid4().hex
        self.api = docker.APIClient(base_url=url, version="auto", timeout=DEADLINE)
        self.executor = DockerExecutor(HostSpec(HostName("here"), url), self.server, Engine(url))
        self.store = SnapshotStore(folder / "snapshots")
        self.project = folder / "project"
        self.image = Image(BASE, STEPS, (), hashlib.sha256(repr(STEPS).encode()).hexdigest())  # the next tests find it
        self.executor.ensure_image(BuildRequest(self.image, None, print, Cancellation()))
        self._count = 0
        self.stores_compressed = code_layers.stores_compressed(self.api.info())

    def keep(self) -> tuple[str, KeptState]:
        """Store the project as it is now."""
        snapshot = take_snapshot(list_project_files(self.project))
        if not self.store.has_snapshot(snapshot.digest):
            tar = self.project.parent / "upload.tar"
            tar.write_bytes(b"".join(pack_snapshot(snapshot)))
            self.store._keep_archive(snapshot.digest, tar)
        found = self.store.find_files(snapshot.digest)
        assert isinstance(found, KeptState)
        return snapshot.digest, found

    def start(self, script: str, digest: str, code: ProjectFiles, experiment: int = 1) -> str:
        """Start a job, and return the id of its container."""
        self._count += 1
        key = JobKey(experiment, JobName(f"worker.{self._count}"), 1)
        self.executor.start(make_launch(key, self.server, self.image, digest, script), code)
        return self.executor.observe(frozenset()).containers[key].id

    @property
    def inventory(self) -> Inventory:
        assert self.executor.capabilities.inventory is not None
        return self.executor.capabilities.inventory

    def layers(self) -> list[InventoryItem]:
        """Return the layers that the engine has of this server, the newest last."""
        found = self.inventory.list_inventory(frozenset())
        ours = [item for item in found if item.kind is InventoryKind.CODE and item.server == self.server]
        # The engine's list has whole seconds, and two layers are often made within one.
        return sorted(ours, key=lambda item: str(self.api.inspect_image(item.name)["Created"]))

    def read(self, container: str) -> list[tuple[object, ...]]:
        """Return every entry of a job's working folder, as the engine gives it."""
        stream, _ = self.api.get_archive(container, "/code")
        found = []
        with tarfile.open(fileobj=io.BytesIO(b"".join(stream))) as tar:
            for one in tar:
                file = tar.extractfile(one) if one.isreg() else None
                times = one.mtime if not one.isdir() or one.name == "code/empty" else None  # others: when a file came
                content = None if file is None else file.read()
                found.append((one.name, one.type, one.mode, one.uid, one.gid, times, one.linkname, content))
        return sorted(found, key=lambda entry: str(entry[0]))

    def helpers(self) -> list[str]:
        rows = self.api.containers(all=True, filters={"label": f"{labels.SERVER}={self.server}"})
        return [row["Names"][0] for row in rows if labels.JOB not in row["Labels"]]

    def close(self) -> None:
        for row in self.api.containers(all=True, filters={"label": f"{labels.SERVER}={self.server}"}):
            self.api.remove_container(row["Id"], force=True, v=True)
        for layer in self.layers():  # an older one first: others lie on it
            self.inventory.discard_item(layer)
        assert self.layers() == []
        assert not self.api.images(filters={"label": f"{labels.SERVER}={self.server}"}), "none without a name is left"
        self.api.close()


def make_launch(key: JobKey, server: str, image: Image, digest: str, script: str) -> Launch:
    return Launch(
        key=key,
        server=server,
        title=f"paul.1.{key.job}",
        hostname=key.job.replace(".", "-"),
        image=image,
        command=("/bin/sh", "-ec", script),
        environment=(),
        resources=Resources(0.1, 32, 0),
        limits=Limits(),
        shm_size=64,
        owner=OWNER,
        snapshot=digest,
        network=Network.HOST,
    )


@pytest.fixture
def site(engine_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    monkeypatch.setattr(code_layers, "LEAST_COMPRESSED", code_layers.LEAST_SIZE)  # a small project in any image store
    made = Site(engine_url, tmp_path)
    try:
        yield made
    finally:
        made.close()


def fill(project: Path) -> None:
    """Write 2 MiB in files of every kind, with times of their own."""
    for number in range(40):
        place = project / f"d{number % 4}"
        place.mkdir(parents=True, exist_ok=True)
        (place / f"f{number}.txt").write_bytes(bytes([number]) * (50 << 10))
        os.utime(place / f"f{number}.txt", (1_600_000_000 + number, 1_600_000_000 + number))
    (project / "replaced.txt").write_text("of the project")
    (project / os.fsdecode(b"\xff\xfe \n")).write_bytes(b"odd")
    (project / "empty").mkdir()
    (project / "run.sh").write_text("#!/bin/sh\n")
    (project / "run.sh").chmod(0o755)
    (project / "link").symlink_to("d1/f1.txt")


def test_jobs_share_a_layer_and_find_what_a_container_of_their_own_has(site: Site) -> None:
    fill(site.project)
    digest, code = site.keep()
    begin = threading.Barrier(4)

    def start(number: int) -> str:
        begin.wait(DEADLINE)
        return site.start(f"echo {number} >> d1/f1.txt; rm d2/f2.txt; echo done; exec sleep 600", digest, code)

    with ThreadPoolExecutor(4) as pool:
        writers = list(pool.map(start, range(4)))
    reader = site.start("exec sleep 600", digest, code)
    alone = site.start("exec sleep 600", digest, Unpacked(code))
    (layer,) = site.layers()
    assert (layer.reference, layer.size) == (digest, code.size)
    assert {site.api.inspect_container(one)["Config"]["Image"] for one in (*writers, reader)} == {layer.name}
    assert site.helpers() == []
    assert site.read(reader) == site.read(alone), "nothing differs, and no job sees what another one writes"
    assert ("code/made.txt", b"made\n") in [(entry[0], entry[-1]) for entry in site.read(reader)]


def test_only_what_differs_is_written_for_the_next_state(site: Site) -> None:
    fill(site.project)
    site.start("exec sleep 600", *site.keep())
    (site.project / "d1" / "f1.txt").write_bytes(b"changed")
    (site.project / "d1" / "new.txt").write_bytes(b"new")
    (site.project / "run.sh").chmod(0o644)
    (site.project / "link").unlink()
    (site.project / "link").symlink_to("d1/f5.txt")
    digest, code = site.keep()
    second = site.start("exec sleep 600", digest, code)
    assert [layer.size for layer in site.layers()][1:] == [len(b"changed" + b"new" + b"#!/bin/sh\n")]
    assert site.read(second) == site.read(site.start("exec sleep 600", digest, Unpacked(code)))
    (site.project / "d1" / "f1.txt").unlink()
    digest, code = site.keep()
    third = site.start("exec sleep 600", digest, code)
    assert site.layers()[-1].size == code.size, "a file that is gone needs a layer on the environment"
    assert site.read(third) == site.read(site.start("exec sleep 600", digest, Unpacked(code)))
    with pytest.raises(EngineError, match="using"):
        site.inventory.discard_item(site.layers()[0])


def test_a_start_that_is_repeated_and_a_layer_that_is_gone(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(site.project)
    digest, code = site.keep()
    key = JobKey(2, JobName("train"), 1)
    launch = make_launch(key, site.server, site.image, digest, "exec sleep 600")

    def refuse() -> None:
        raise StoreError("another server has taken over")

    with monkeypatch.context() as patch, pytest.raises(StoreError, match="another server has taken over"):
        patch.setattr(site.executor, "_check_start", refuse)  # the server loses its claim with the container made
        site.executor.start(launch, code)
    assert not site.executor.observe(frozenset()).containers[key].started
    site.executor.start(launch, code)
    assert site.executor.observe(frozenset()).containers[key].running
    name = site.api.inspect_container(f"riseml-{site.server[:8]}-2-train-a1")["Config"]["Image"]
    site.executor.remove(key)
    site.inventory.discard_item(site.layers()[0])
    helper = f"riseml-{site.server[:8]}-code-forgotten"
    marks = {labels.SERVER: site.server, labels.HELPER: "code"}
    site.api.create_container(site.image.reference, ["-"], name=helper, labels=marks)
    again = site.start("exec sleep 600", digest, code)
    assert [layer.name for layer in site.layers()] == [site.api.inspect_container(again)["Config"]["Image"]] == [name]
    site.executor._helpers.remove_forgotten(site.api)
    assert site.helpers() == []


def test_a_job_gets_its_code_when_a_layer_that_an_earlier_job_had_is_gone(site: Site) -> None:
    fill(site.project)
    digest, code = site.keep()

    def start() -> str:
        site.executor.observe(frozenset({site.image.reference}))  # as before each start
        return site.start("exec sleep 600", digest, code)

    first = start()
    site.api.remove_container(first, force=True)
    site.inventory.discard_item(site.layers()[0])
    second = start()
    assert site.layers() == [], "the executor did not look for it: the code is unpacked into the container"
    third = start()
    assert [layer.name for layer in site.layers()] == [site.api.inspect_container(third)["Config"]["Image"]]
    assert site.read(second) == site.read(third)


def test_a_small_project_gets_its_layer_when_a_second_experiment_has_used_it(site: Site) -> None:
    site.project.mkdir()
    (site.project / "train.py").write_text("pass\n")
    digest, code = site.keep()
    first = [site.start("exec sleep 600", digest, code) for _ in range(2)]
    assert site.layers() == []
    second = site.start("exec sleep 600", digest, code, 2)
    third = site.start("exec sleep 600", digest, code, 3)
    found = [layer.name for layer in site.layers()]
    used = {site.api.inspect_container(one)["Config"]["Image"] for one in (*first, second)}
    assert not used & {*found}
    if site.stores_compressed:
        assert found == [], "a layer takes longer there than it saves"
    else:
        assert found == [site.api.inspect_container(third)["Config"]["Image"]]
    assert site.read(first[0]) == site.read(second) == site.read(third)
    assert site.helpers() == []
