"""One action: what is wrong on the server's own disk is said as that, and not taken for trouble of an engine."""

from __future__ import annotations

import io
import json
import os
import shutil
import tarfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NoReturn

import pytest
import yaml

from riseml.base.annotations import NO_ANNOTATION
from riseml.base.errors import DiskFull, EngineError, RisemlError, StoreError
from riseml.base.names import HostName, JobName
from riseml.base.settings import Settings
from riseml.base.states import State
from riseml.control.actions import Action, CopyImage, EnsureImage, PrepareHost, ReleaseHost, StartGang, StartJob
from riseml.executors.base import BuildRequest, HostSetup, Work, WorkReport
from riseml.executors.capabilities import Capabilities, DiskUse, InventoryItem, never
from riseml.executors.pool import HostPool
from riseml.files.storage.outputs import RECORD
from riseml.model import Capacity, Frame, JobKey, Owner
from riseml.planning.launch import make_address_tokens
from riseml.planning.plan import first_jobs
from riseml.server.api.views.metric_views import show_summary
from riseml.server.clock import now
from riseml.server.data.clean import Cleaner
from riseml.server.data.data_fetcher import DataFetcher
from riseml.server.data.disk_reclaimer import DiskReclaimer
from riseml.server.hosts.host_set import HostSet
from riseml.server.hosts.registry_logins import RegistryLogins
from riseml.server.reconcile.activities import Activities
from riseml.server.reconcile.actor import Actor
from riseml.server.reconcile.capsule_writer import CapsuleWriter
from riseml.server.reconcile.notifier import Notifier
from riseml.server.reconcile.run_secrets import RunSecrets
from riseml.store.capsules import CapsuleStore
from riseml.store.database import Database
from riseml.store.experiments import ExperimentStore
from riseml.store.insertion import NewExperiments
from riseml.store.logs.log_store import LogStore, read_all_lines
from riseml.store.metrics.metric_summary import MetricSummary
from riseml.store.projects.snapshots import SnapshotStore
from riseml.store.sealed_variables import VariableSeals
from riseml.store.secret_store import SecretStore
from riseml.store.usage import LastUseReader
from tests.support.memory_cluster import MemoryCluster
from tests.support.memory_executor import MemoryExecutor
from tests.support.waiting import DEADLINE, wait_for
from tests.unit.control.simulation import make_plan

HOST = HostName("h1")
MASTER = JobKey(1, JobName("master"), 1)
CONFIG = "project: toaster\ntrain:\n  run: 'true'\n  cpus: 2\n"


class Talking(MemoryExecutor):
    """A host whose builds print a line."""

    def ensure_image(self, order: BuildRequest) -> None:
        order.emit("Step 1")
        super().ensure_image(order)


class FullLogs(LogStore):
    """Logs on a disk that is full."""

    def append_frames(self, key: JobKey, frames: Iterable[Frame]) -> None:
        raise OSError(28, "No space left on device")


class Scene:
    """One experiment on one host, without a server."""

    def __init__(self, folder: Path, config: str = CONFIG, snapshot: str = "", logs: type[LogStore] = LogStore) -> None:
        self.settings = Settings(folder, folder / "output", folder / "data")
        database = Database(f"sqlite:///{folder}/riseml.db")
        experiments = self.experiments = ExperimentStore(database)
        plan = make_plan("master")
        jobs = tuple(replace(job, state=State.STARTING, host=HOST) for job in first_jobs(plan))
        submitted = NewExperiments(Owner("paul", 0, 0), "toaster", config, snapshot, ((plan, jobs),))
        ((self.detail,), _) = experiments.add_experiments(submitted, datetime(2026, 8, 31, tzinfo=UTC))
        pool = HostPool((Talking(HOST, Capacity(4.0, 4096)),), 2.0, lambda *_: None)
        hosts = self.hosts = HostSet(self.settings, "5e17e4", pool)
        snapshots = SnapshotStore(folder / "snapshots")
        self.activities = Activities()
        self.capsule_writer = CapsuleWriter(
            hosts, snapshots, CapsuleStore(folder / "capsules"), lambda _: {}, lambda _: NO_ANNOTATION, "2.0"
        )
        self.logs = logs(folder / "logs")
        made = experiments, self.logs, snapshots, Notifier(), self.activities, self.capsule_writer
        data = DataFetcher("5e17e4", hosts)
        usage = LastUseReader(database)
        self.cleaner = Cleaner("5e17e4", pool, snapshots, CapsuleStore(folder / "capsules"), usage, data)
        seals = VariableSeals(self.settings.key_file, "5e17e4")
        store = SecretStore(database, seals)
        more = RunSecrets(store, seals), RegistryLogins(store, self.settings, {})
        self.actor = Actor("5e17e4", hosts, *made, data, DiskReclaimer(self.cleaner, hosts), *more)

    def perform(self, action: Action) -> None:
        self.actor.perform(action, self.detail.experiment)

    def refusal(self, action: Action) -> RisemlError:
        with pytest.raises(RisemlError) as raised:
            self.perform(action)
        return raised.value


def test_users_see_how_far_a_host_is_only_while_it_works(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    experiment = scene.detail.experiment
    seen: list[tuple[HostName, WorkReport]] = []

    class Watched(MemoryExecutor):
        def ensure_image(self, order: BuildRequest) -> None:
            super().ensure_image(order)
            seen.extend(scene.activities.list_activities(experiment))

    host = Watched(HOST, Capacity(4.0, 4096))
    step = WorkReport(Work.INSTALL, "pip install x", 1, 2)
    host.reports = (WorkReport(Work.PULL, "python:3.11", 5, 9), step)
    scene.hosts.pool.replace_executors((host,))
    scene.perform(EnsureImage(HOST, 1, experiment.images[0].reference))
    assert seen == [(HOST, step)]
    assert scene.activities.list_activities(experiment) == []


def test_an_environment_that_travels_is_counted(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    reference = scene.detail.experiment.images[0].reference
    h2 = HostName("h2")

    class Taker(MemoryExecutor):
        def import_image(self, reference: str, stream: Iterator[bytes]) -> None:
            super().import_image(reference, stream)
            seen.extend(scene.activities.list_activities(scene.detail.experiment))

    seen: list[tuple[HostName, WorkReport]] = []
    source = MemoryExecutor(HOST, Capacity(4.0, 4096))
    source.images.add(reference)
    scene.hosts.pool.replace_executors((source, Taker(h2, Capacity(4.0, 4096))))
    scene.perform(CopyImage(h2, 1, reference, HOST))
    size = len(reference.encode())
    assert seen == [(h2, WorkReport(Work.SEND, reference, size, size))]


def test_a_project_whose_files_are_gone_never_starts(tmp_path: Path) -> None:
    error = Scene(tmp_path, snapshot="ab" * 32).refusal(StartJob(HOST, MASTER))
    assert isinstance(error, EngineError)
    assert error.permanent
    assert "the project's files abababababab are gone" in error.message


def test_the_capsule_is_written_while_the_host_makes_the_network(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    shared: list[HostSetup] = []

    class Networked(MemoryExecutor):
        def prepare(self, share: HostSetup) -> None:
            shared.append(share)
            assert (folder / RECORD).is_file()  # before the network, which says that the host is prepared
            wait_for("the capsule in the output", lambda: capsule.is_file() or None, DEADLINE)

    folder = tmp_path / "output/paul/toaster/1"
    capsule = folder / ".riseml/capsule.json"
    scene.hosts.pool.replace_executors((Networked(HOST, Capacity(4.0, 4096)),))
    scene.perform(PrepareHost(HOST, 1, None))
    assert [share.output for share in shared] == [None]


@pytest.mark.parametrize("lost", ["both", "in the output", "at the server", "none"])
def test_a_start_writes_the_capsule_that_a_server_which_was_killed_did_not(tmp_path: Path, lost: str) -> None:
    scene = Scene(tmp_path)
    scene.perform(PrepareHost(HOST, 1, None))
    written, kept = tmp_path / "output/paul/toaster/1/.riseml/capsule.json", tmp_path / "capsules/1.json"
    text = written.read_text()
    for path in {"both": [written, kept], "in the output": [written], "at the server": [kept], "none": []}[lost]:
        path.unlink()
    executor = MemoryExecutor(HOST, Capacity(4.0, 4096))
    executor.images.add(scene.detail.experiment.images[0].reference)
    scene.hosts.pool.replace_executors((executor,))
    capsule_writer = CapsuleWriter(
        scene.hosts, scene.actor.snapshots, CapsuleStore(kept.parent), lambda _: {}, lambda _: NO_ANNOTATION, "2.0"
    )
    scene.actor = replace(scene.actor, capsules=capsule_writer)
    scene.perform(StartJob(HOST, MASTER))
    assert written.read_text() == kept.read_text() == text
    kept.unlink()
    scene.perform(StartJob(HOST, MASTER))
    assert not kept.exists()  # it is looked for once


def test_a_data_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "data").touch()
    error = Scene(tmp_path).refusal(PrepareHost(HOST, 1, None))
    assert isinstance(error, EngineError)
    assert error.permanent
    assert str(tmp_path / "data") in error.message


def test_a_build_log_that_cannot_be_written_is_trouble_of_the_store(tmp_path: Path) -> None:
    error = Scene(tmp_path, logs=FullLogs).refusal(EnsureImage(HOST, 1, "base"))
    assert isinstance(error, StoreError)
    assert "No space left on device" in error.message


@pytest.mark.parametrize("value", ["2026-13-45", "=", "0b_"])
def test_what_yaml_alone_would_refuse_is_written_down_as_it_stands(tmp_path: Path, value: str) -> None:
    scene = Scene(tmp_path, f"{CONFIG}  parameters:\n    day: {value}\n")
    scene.perform(PrepareHost(HOST, 1, None))
    record = yaml.safe_load((tmp_path / "output" / "paul" / "toaster" / "1" / RECORD).read_text())
    assert record["config"]["train"]["parameters"] == {"day": value}


def test_numbers_of_the_configuration_stay_numbers(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    scene.perform(PrepareHost(HOST, 1, None))
    record = yaml.safe_load((tmp_path / "output" / "paul" / "toaster" / "1" / RECORD).read_text())
    assert record["config"]["train"]["cpus"] == 2


def test_a_capsule_is_begun_with_the_output_and_completed_at_the_end(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    scene.perform(PrepareHost(HOST, 1, None))
    file = tmp_path / "output" / "paul" / "toaster" / "1" / ".riseml" / "capsule.json"
    begun = json.loads(file.read_text())
    assert (begun["complete"], begun["data"]["entries"]) == (False, [])
    (tmp_path / "data" / "later").mkdir(parents=True)
    release, ended = ReleaseHost(HOST, 1), replace(scene.detail.experiment, state=State.FINISHED)
    scene.actor.perform(release, scene.detail.experiment)
    assert not json.loads(file.read_text())["complete"], "it has not ended"
    scene.actor.perform(release, ended)
    done = json.loads(file.read_text())
    assert (done["complete"], done["state"], done["data"]) == (True, "FINISHED", begun["data"])


@pytest.mark.parametrize("kind", ["link", "file", "pipe", "folder"])
def test_what_a_job_puts_in_place_of_its_capsule_keeps_no_host(
    tmp_path: Path, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    scene = Scene(tmp_path)
    scene.perform(PrepareHost(HOST, 1, None))
    folder, victim = tmp_path / "output" / "paul" / "toaster" / "1" / ".riseml", tmp_path / "victim"
    victim.mkdir()
    shutil.rmtree(folder)
    match kind:
        case "link":
            folder.symlink_to(victim)
        case "file":
            folder.write_text("")
        case "pipe":
            os.mkfifo(folder)
        case "folder":
            (folder / "capsule.json" / "x").mkdir(parents=True)
    scene.actor.perform(ReleaseHost(HOST, 1), replace(scene.detail.experiment, state=State.FAILED))
    assert list(victim.iterdir()) == []
    assert "the capsule of 1 is not in its output" in caplog.text
    kept = scene.capsule_writer.show_capsule(scene.detail.experiment, CONFIG)
    assert (kept["complete"], kept["state"]) == (True, "FAILED"), "the server has it"


def test_a_capsule_reaches_a_host_whose_files_the_server_does_not_see(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = Scene(tmp_path)
    monkeypatch.setattr(HostSet, "is_this_machine", lambda *_: False)
    scene.perform(PrepareHost(HOST, 1, None))
    scene.actor.perform(ReleaseHost(HOST, 1), replace(scene.detail.experiment, state=State.FINISHED))
    executor = scene.hosts.pool.executors[HOST]
    assert isinstance(executor, MemoryExecutor)
    begun, done = executor.outputs[1]
    path = "paul/toaster/1/.riseml/capsule.json"
    for output, complete in ((begun, False), (done, True)):
        with tarfile.open(fileobj=io.BytesIO(output.tar)) as tar:
            file = tar.extractfile(path)
            assert file is not None
            assert json.load(file)["complete"] is complete
            record = tar.extractfile(f"paul/toaster/1/{RECORD}")
            assert record is not None
            assert (b"state: FINISHED" in record.read()) is complete


LOSS = show_summary(MetricSummary("loss", 1, 0.5, None, "", 1, 0.5, None, 0.5, None))


@pytest.mark.parametrize("error", [StoreError("the store is away"), KeyError("loss")])
def test_metrics_that_cannot_be_read_hold_up_no_capsule_for_long(tmp_path: Path, error: Exception) -> None:
    scene = Scene(tmp_path)

    def fail(_: int) -> NoReturn:
        raise error

    hosts, snapshots = scene.hosts, SnapshotStore(tmp_path / "snapshots")
    capsule_writer = CapsuleWriter(
        hosts, snapshots, CapsuleStore(tmp_path / "capsules"), fail, lambda _: NO_ANNOTATION, "2.0"
    )
    assert capsule_writer.begin_capsule(scene.detail.experiment, CONFIG) is not None
    ended = replace(scene.detail.experiment, state=State.FINISHED, ended_at=now())
    with pytest.raises(StoreError, match="cannot be read yet"):
        capsule_writer.complete_capsule(ended, CONFIG, None)
    ended = replace(ended, ended_at=now() - timedelta(minutes=1))
    assert capsule_writer.complete_capsule(ended, CONFIG, None) is not None
    assert not capsule_writer.show_capsule(ended, CONFIG)["results"]
    later = CapsuleWriter(
        hosts, snapshots, CapsuleStore(tmp_path / "capsules"), lambda _: {"loss": LOSS}, lambda _: NO_ANNOTATION, "2.0"
    )
    assert later.show_capsule(ended, CONFIG)["results"] == {"loss": LOSS}, "once they can be read"


def test_a_gang_goes_to_a_cluster_as_one_thing_with_tokens_for_its_addresses(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    assert "does not start gangs" in scene.refusal(StartGang(HOST, 1, 1)).message
    cluster = MemoryCluster(HOST, Capacity(4.0, 4096))
    scene.hosts.pool.replace_executors((cluster,))
    scene.perform(StartGang(HOST, 1, 1))
    (gang,) = cluster.gangs.values()
    assert (gang.title, gang.attempt, [role.launch.key for role in gang.roles]) == ("paul.1", 1, [MASTER])
    variables = dict(gang.roles[0].launch.environment)
    assert (variables["RISEML_HOST"], variables["RISEML_PORT"]) == make_address_tokens(MASTER.job)


class FullHost(MemoryExecutor):
    """A host of another machine whose first build or start finds no room; a layer of code takes 30 % of its disk."""

    def __init__(self, error: EngineError, *, line: str = "", while_building: int = 0, after: int = 60) -> None:
        super().__init__(HOST, Capacity(4.0, 4096))
        self.error = error
        self.line = line
        self.while_building = while_building
        self.percent = after
        self.after = after
        self.tries = 0

    @property
    def capabilities(self) -> Capabilities:
        return replace(super().capabilities, disk=self)

    def read_disk(self) -> DiskUse | None:
        return DiskUse(self.percent)

    def discard_item(self, item: InventoryItem, is_needed: Callable[[], bool] = never) -> None:
        super().discard_item(item, is_needed)
        self.percent -= 30

    def ensure_image(self, order: BuildRequest) -> None:
        self.percent, before = max(self.percent, self.while_building), self.percent
        if self.line:
            order.emit(self.line)
        self.percent = before
        self._fail_once()
        super().ensure_image(order)

    def prepare(self, share: HostSetup) -> None:
        self._fail_once()
        super().prepare(share)

    def _fail_once(self) -> None:
        self.tries += 1
        if self.tries == 1:
            raise self.error


STEP_FAILED = EngineError("install step 1 failed with exit code 1: pip install x", permanent=True)
NO_ROOM = DiskFull("the disk of the host is full: no space left on device", permanent=True)
PIP_LINE = "ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device"


@pytest.mark.parametrize(
    ("host", "is_build", "gone"),
    [
        (FullHost(NO_ROOM), True, 1),  # the engine itself says so
        (FullHost(STEP_FAILED, line=PIP_LINE, while_building=97), True, 1),
        (FullHost(STEP_FAILED, line="x" * 70, while_building=97), True, 0),  # it failed for another reason
        (FullHost(STEP_FAILED, line=PIP_LINE, while_building=50), True, 0),  # a small disk of the step, as /dev/shm
        (FullHost(NO_ROOM, after=40), False, 0),  # the disk of outputs, which is another one
        (FullHost(NO_ROOM, after=96), False, 1),
    ],
)
def test_what_finds_a_full_disk_gets_room_and_is_tried_once_more(
    tmp_path: Path, *, host: FullHost, is_build: bool, gone: int
) -> None:
    scene = Scene(tmp_path)
    host.layers = {"c" * 64, "d" * 64}
    scene.hosts.pool.replace_executors((host,))
    reference = scene.detail.experiment.images[0].reference
    action: Action = EnsureImage(HOST, 1, reference) if is_build else PrepareHost(HOST, 1, None)
    if gone:
        scene.perform(action)
    else:
        assert scene.refusal(action) is host.error
    lines = [line.text.decode() for line in read_all_lines(scene.logs, 1)]
    told = f"The disk of {HOST} was full: the server has removed {gone} of what no experiment needs, and tries again"
    assert (len(host.layers), host.tries) == (2 - gone, 1 + gone)
    assert lines.count(told) == gone


def test_a_full_disk_from_which_nothing_may_go_is_named_and_not_tried_again(tmp_path: Path) -> None:
    scene, host = Scene(tmp_path), FullHost(NO_ROOM)
    scene.hosts.pool.replace_executors((host,))
    action = EnsureImage(HOST, 1, scene.detail.experiment.images[0].reference)
    assert scene.refusal(action) is NO_ROOM
    lines = [line.text.decode() for line in read_all_lines(scene.logs, 1)]
    assert lines == [f"The disk of {HOST} was full, and nothing is left on it that no experiment needs"]
    assert host.tries == 1


def test_a_server_that_makes_no_room_leaves_a_full_disk_as_it_is(tmp_path: Path) -> None:
    scene, host = Scene(tmp_path), FullHost(NO_ROOM)
    scene.hosts.settings = replace(scene.settings, clean_above=None)
    host.layers = {"c" * 64}
    scene.hosts.pool.replace_executors((host,))
    assert scene.refusal(EnsureImage(HOST, 1, scene.detail.experiment.images[0].reference)) is NO_ROOM
    assert (len(host.layers), host.tries) == (1, 1)


def test_an_action_does_not_reach_its_host_while_another_server_may_act(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    host = MemoryExecutor(HOST, Capacity(4.0, 4096))
    scene.hosts.pool.replace_executors((host,))

    def refuse() -> None:
        raise StoreError("the claim of this server is not renewed")

    reference = scene.detail.experiment.images[0].reference
    scene.actor = replace(scene.actor, check_claim=refuse)
    assert "the claim of this server" in scene.refusal(EnsureImage(HOST, 1, reference)).message
    assert reference not in host.images
