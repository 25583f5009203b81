"""What no experiment owns is found and removed, and nothing else: on an engine, among processes, beside the store."""

from __future__ import annotations

import errno
import ipaddress
import os
import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path

import docker
import pytest

from riseml.base.errors import UsageError
from riseml.base.names import STEP_REPOSITORY, HostName
from riseml.base.settings import Settings
from riseml.base.states import State
from riseml.data_stores import data_cache
from riseml.data_stores.data_cache import DataCache, remove_tree
from riseml.data_stores.save_notes import SaveNote
from riseml.executors.base import Executor
from riseml.executors.capabilities import InventoryKind
from riseml.executors.docker.executor import DockerExecutor
from riseml.executors.docker.labels import ENVIRONMENT, EXPERIMENT, JOB, SERVER, STEP_SERVER
from riseml.executors.pool import HostPool
from riseml.executors.process.executor import ProcessExecutor
from riseml.executors.transports.engine_client import Engine
from riseml.model import Capacity, Experiment, Image, Owner
from riseml.planning.plan import first_jobs
from riseml.server.clock import now
from riseml.server.data.clean import Cleaner
from riseml.server.data.data_fetcher import DataFetcher
from riseml.server.data.disk_reclaimer import DiskReclaimer
from riseml.server.data.leftover_judge import CleanRequest
from riseml.server.hosts.host_set import HostSet
from riseml.spec.pool.types import HostSpec
from riseml.store.capsules import CapsuleStore
from riseml.store.database import Database
from riseml.store.experiments import ExperimentStore
from riseml.store.insertion import NewExperiments
from riseml.store.marks import KeptOutputs
from riseml.store.projects.snapshots import SnapshotStore
from riseml.store.usage import NOTHING_USED, LastUseReader
from tests.support.archives import find_digest, pack
from tests.support.disks import mount_disk
from tests.support.memory_executor import MemoryExecutor
from tests.support.rig import BASE, Rig, gang
from tests.support.root import need_root
from tests.support.waiting import DEADLINE, wait_for
from tests.unit.control.simulation import make_plan

NOW = now()
LATER = NOW + timedelta(days=40)
PLAIN = CleanRequest(caches=False, idle=timedelta(days=30))
ALL = replace(PLAIN, caches=True)


class Place:
    """A store with its files, and hosts."""

    def __init__(self, home: Path, *executors: Executor, server: str = "") -> None:
        self.server = server or uuid.uuid4().hex
        self.database = Database(f"sqlite:///{home}/riseml.db")
        self.experiments = ExperimentStore(self.database)
        self.snapshots = SnapshotStore(home / "snapshots")
        pool = HostPool(executors, DEADLINE, lambda *_: None)
        self.capsules = CapsuleStore(home / "capsules")
        self.hosts = HostSet(Settings(home, home / "output", home / "data"), self.server, pool)
        self.data = DataFetcher(self.server, self.hosts)
        usage = LastUseReader(self.database)
        self.cleaner = Cleaner(self.server, pool, self.snapshots, self.capsules, usage, self.data)

    def submit(self, *, digest: str = "", image: Image | None = None) -> Experiment:
        plan = replace(make_plan("train"), image=image or Image(BASE))
        owner = Owner("paul", 1000, 1000)
        made, _ = self.experiments.add_experiments(
            NewExperiments(owner, "toaster", "", digest, ((plan, first_jobs(plan)),)), NOW
        )
        return made[0].experiment

    def close(self, experiment: Experiment, moment: datetime = NOW) -> None:
        after = replace(experiment, closed=True, state=State.FINISHED, ended_at=moment)
        assert self.experiments.save_decision(experiment, after, moment)

    def names(self, wish: CleanRequest = PLAIN, at: datetime = LATER) -> list[str]:
        return [one.item.name for one in self.cleaner.find_leftovers(wish, at).leftovers]

    def clean(self, wish: CleanRequest = PLAIN, at: datetime = LATER) -> list[str]:
        done = self.cleaner.remove_leftovers(self.cleaner.find_leftovers(wish, at))
        assert [one.problem for one in done.leftovers if not one.removed] == []
        return [one.item.name for one in done.leftovers]


@pytest.fixture
def make_place(tmp_path: Path) -> Iterator[Callable[..., Place]]:
    made: list[Place] = []

    def make(*executors: Executor, server: str = "", home: Path = tmp_path) -> Place:
        made.append(Place(home, *executors, server=server))
        return made[-1]

    yield make
    for place in made:
        place.database.close()


@pytest.fixture
def api(engine_url: str) -> Iterator[docker.APIClient]:
    with docker.APIClient(base_url=engine_url, version="auto", timeout=DEADLINE) as client:
        yield client


class Litter:
    """Things on the engine, which are removed at the end whatever happens."""

    def __init__(self, api: docker.APIClient) -> None:
        self.api = api
        self.made: list[tuple[str, str]] = []

    def container(self, server: str, experiment: int | None) -> str:
        labels = {SERVER: server, JOB: "train"} | ({} if experiment is None else {EXPERIMENT: str(experiment)})
        name = f"riseml-{server[:8]}-litter-{uuid.uuid4().hex[:6]}"
        self.api.create_container(BASE, ["true"], name=name, labels=labels)
        self.made.append(("container", name))
        return name

    def network(self, server: str, experiment: int) -> str:
        name = f"riseml-{server[:8]}-litter-{uuid.uuid4().hex[:6]}"
        labels = {SERVER: server, EXPERIMENT: str(experiment)}
        ipam = docker.types.IPAMConfig(pool_configs=[docker.types.IPAMPool(subnet=self._free_subnet())])
        self.api.create_network(name, labels=labels, ipam=ipam)
        self.made.append(("network", name))
        return name

    def _free_subnet(self) -> str:
        """One that meets no network of the engine; another run of these tests begins somewhere else."""
        configs = [config for row in self.api.networks() for config in row["IPAM"]["Config"] or ()]
        taken = [ipaddress.ip_network(config["Subnet"]) for config in configs]
        subnets = [*ipaddress.ip_network("198.19.128.0/17").subnets(new_prefix=29)]
        begin = uuid.uuid4().int % len(subnets)
        free = (one for one in subnets[begin:] + subnets[:begin] if not any(one.overlaps(other) for other in taken))
        return str(next(free))

    def image(self, below: str = BASE) -> Image:
        digest = uuid.uuid4().hex * 2
        made = Image(BASE, ("true",), (), digest)
        holder = self.api.create_container(below, ["true"])["Id"]
        repository, tag = made.reference.split(":")
        self.api.commit(holder, repository, tag, changes=[f"LABEL {ENVIRONMENT}={digest}"])
        self.api.remove_container(holder)
        self.made.append(("image", made.reference))
        return made

    def step(self, server: str) -> str:
        holder = self.api.create_container(BASE, ["true"])["Id"]
        self.api.put_archive(holder, "/", pack({"step": uuid.uuid4().hex}))
        self.made.append(("container", holder))
        name, tag = STEP_REPOSITORY, uuid.uuid4().hex
        self.api.commit(holder, name, tag, changes=[f"LABEL {STEP_SERVER}={server}"])
        self.made.append(("image", f"{name}:{tag}"))
        return f"{name}:{tag}"

    def left(self) -> set[str]:
        containers = {row["Names"][0].lstrip("/") for row in self.api.containers(all=True)}
        images = {tag for row in self.api.images() for tag in row["RepoTags"] or ()}
        there = containers | images | {row["Name"] for row in self.api.networks()}
        return {name for _, name in self.made} & there

    def remove(self) -> None:
        for kind, name in self.made:
            try:
                match kind:
                    case "container":
                        self.api.remove_container(name)
                    case "network":
                        self.api.remove_network(name)
                    case _:
                        self.api.remove_image(name)
            except docker.errors.NotFound:
                continue


@pytest.fixture
def litter(api: docker.APIClient) -> Iterator[Litter]:
    made = Litter(api)
    yield made
    made.remove()


@pytest.fixture
def on_engine(make_place: Callable[..., Place], engine_url: str) -> Place:
    server = uuid.uuid4().hex
    executor = DockerExecutor(HostSpec(HostName("local"), engine_url), server, Engine(engine_url))
    return make_place(executor, server=server)


def test_containers_and_networks_of_no_experiment(on_engine: Place, litter: Litter) -> None:
    place = on_engine
    owner = place.submit()
    kept = {litter.container(place.server, owner.id), litter.network(place.server, owner.id)}
    litter.container(place.server, None)
    gone = {litter.container(place.server, 999), litter.network(place.server, 999)}
    assert set(place.names(at=NOW)) == gone, "what has no experiment and is young may belong to what is just being done"
    assert litter.left() > gone, "to look removes nothing"
    place.clean()
    assert litter.left() == kept
    place.close(owner)
    assert set(place.clean()) == kept
    assert litter.left() == set()
    assert place.clean() == []


def test_what_another_server_left_is_touched_by_name_alone(on_engine: Place, litter: Litter) -> None:
    place, other = on_engine, uuid.uuid4().hex
    foreign = {litter.container(other, 1), litter.network(other, 1)}
    found = place.cleaner.find_leftovers(ALL, LATER)
    assert not {one.item.name for one in found.leftovers} & foreign
    assert found.foreign[other] == 2
    assert set(place.clean(replace(PLAIN, foreign=other[:8]))) == foreign
    assert litter.left() == set()
    with pytest.raises(UsageError, match="is this server"):
        place.names(replace(PLAIN, foreign=place.server))
    with pytest.raises(UsageError, match="too short"):
        place.names(replace(PLAIN, foreign="abc"))


def test_images_that_were_not_used_for_long(on_engine: Place, litter: Litter) -> None:
    place = on_engine
    used, unused, foreign = litter.image(), litter.image(), litter.image()
    place.submit(image=used)
    place.close(place.submit(image=used))
    place.close(place.submit(image=unused))
    kept = {used.reference, foreign.reference}
    assert not {unused.reference, *kept} & set(place.names(PLAIN))
    assert not {unused.reference, *kept} & set(place.names(ALL, NOW + timedelta(days=29)))
    assert unused.reference in place.clean(ALL)
    assert litter.left() & {unused.reference, *kept} == kept


def test_images_of_install_steps_go_when_they_were_not_used_for_long(on_engine: Place, litter: Litter) -> None:
    place, foreign = on_engine, litter.step("f" * 32)
    step = litter.step(place.server)
    assert step not in place.names(PLAIN)
    assert step not in place.names(replace(ALL, idle=timedelta(0)), NOW)  # a build may have made it just now
    assert step in place.names(ALL)
    assert foreign not in place.names(ALL)
    (leftover,) = (one for one in place.cleaner.find_leftovers(ALL, LATER).leftovers if one.item.name == step)
    assert place.cleaner.remove_leftover(leftover).removed
    assert step not in litter.left()


def test_the_image_of_a_step_stays_as_long_as_an_environment_that_contains_it(on_engine: Place, litter: Litter) -> None:
    place = on_engine
    below = litter.step(place.server)
    image = litter.image(below)
    owner = place.submit(image=image)
    now_all = replace(ALL, idle=timedelta(0))
    assert not {below, image.reference} & set(place.names(now_all, now())), "an open experiment uses both"
    place.close(owner, NOW - timedelta(days=3))
    found = {one.item.name: one for one in place.cleaner.find_leftovers(now_all, now()).leftovers}
    assert {below, image.reference} <= set(found), "a young step, too: it is no unfinished build"
    assert found[below].used_at == found[below].item.made_at, "after the end of the experiment"
    assert place.cleaner.remove_leftover(found[image.reference]).removed
    assert below not in place.names(now_all, now()), "without an environment it may be the beginning of one"
    assert place.cleaner.remove_leftover(found[below]).removed


def test_clean_keeps_an_image_in_use_and_reports_it(on_engine: Place, litter: Litter) -> None:
    place, image = on_engine, litter.image()
    place.close(place.submit(image=image))
    name = f"riseml-litter-{uuid.uuid4().hex[:6]}"
    litter.api.create_container(image.reference, ["true"], name=name)
    litter.made.insert(0, ("container", name))
    (done,) = place.cleaner.remove_leftovers(place.cleaner.find_leftovers(ALL, LATER)).leftovers
    assert not done.removed
    assert "is using its referenced image" in (done.problem or "")


def test_a_host_that_leaves_the_pool_meanwhile_is_one_problem_of_the_answer(
    make_place: Callable[..., Place], tmp_path: Path
) -> None:
    server = uuid.uuid4().hex
    place = make_place(ProcessExecutor(HostName("here"), server, tmp_path), server=server)
    (tmp_path / "processes" / "999").mkdir()
    found = place.cleaner.find_leftovers(PLAIN, LATER)
    place.cleaner.pool.replace_executors(())
    (done,) = place.cleaner.remove_leftovers(found).leftovers
    assert done.problem == "host here cannot remove it any more"


def test_folders_and_environments_of_processes(make_place: Callable[..., Place], tmp_path: Path) -> None:
    server = uuid.uuid4().hex
    executor = ProcessExecutor(HostName("here"), server, tmp_path)
    place = make_place(executor, server=server)
    owner, image = place.submit(), Image("plain", ("true",), (), "d" * 64)
    for number in (owner.id, 999):
        (tmp_path / "processes" / str(number)).mkdir()
    place.close(place.submit(image=image))
    folder = executor._environments.find_folder(image.reference)  # its name is a digest
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "python").write_bytes(b"x" * 1000)
    assert place.names() == ["processes/999"]
    found = place.cleaner.find_leftovers(ALL, LATER).leftovers
    assert [(one.item.kind, one.item.size) for one in found] == [
        (InventoryKind.FOLDER, None),
        (InventoryKind.ENVIRONMENT, 1000),
    ]
    assert len(place.clean(ALL)) == 2
    assert not folder.exists()
    assert [path.name for path in (tmp_path / "processes").glob("[0-9]*")] == [str(owner.id)]
    assert place.clean(ALL) == []


def test_the_files_of_projects(make_place: Callable[..., Place], tmp_path: Path) -> None:
    place = make_place()
    used, ended, never = "a" * 64, "b" * 64, "c" * 64
    for digest in (used, ended, never):
        (tmp_path / "snapshots" / f"{digest}.tar").write_bytes(b"tar")
        (tmp_path / "snapshots" / f"{digest}.json").write_text("{}")
    place.submit(digest=used)
    place.close(place.submit(digest=ended))
    assert place.names(at=NOW) == [], "they may just have been sent"
    assert place.clean() == [f"snapshots/{never[:12]}"]
    assert place.clean(ALL) == [f"snapshots/{ended[:12]}"]
    assert [held.digest for held in place.snapshots.list_snapshots()] == [used]


def test_files_of_a_project_that_is_submitted_while_a_clean_up_runs_stay(
    make_place: Callable[..., Place], tmp_path: Path
) -> None:
    place, digest = make_place(), find_digest(archive := pack({"riseml.yml": "project: a"}))
    (tmp_path / "sent.tar").write_bytes(archive)
    place.snapshots._keep_archive(digest, tmp_path / "sent.tar")
    os.utime(tmp_path / "snapshots" / f"{digest}.manifest", (1000.0, 1000.0))
    found = place.cleaner.find_leftovers(PLAIN, LATER)
    assert place.snapshots.has_snapshot(digest), "it is submitted"
    (done,) = place.cleaner.remove_leftovers(found).leftovers
    assert (done.removed, done.problem) == (False, "it was used since it was listed")
    assert place.snapshots.has_snapshot(digest)


def test_capsules(make_place: Callable[..., Place], tmp_path: Path) -> None:
    place = make_place()
    running, ended = place.submit().id, place.submit()
    place.close(ended)
    for number in (running, ended.id, 999):
        place.capsules.save_capsule(number, "{}")
    (tmp_path / "capsules" / f"{ended.id}.0123abcd.new").write_text("{")
    assert place.names(ALL, at=NOW) == [], "a capsule that is young may be under way"
    assert place.clean() == [f"capsules/{ended.id}.0123abcd.new", "capsules/999.json"]
    assert place.names(ALL, at=NOW + timedelta(days=29)) == []
    assert place.clean(ALL) == [f"capsules/{ended.id}.json"]
    assert [held.experiment for held in place.capsules.files.list_records()] == [running]


def test_what_is_known_of_saved_outputs(make_place: Callable[..., Place], tmp_path: Path) -> None:
    place = make_place()
    running, ended = place.submit().id, place.submit()
    place.close(ended)
    notes = place.data.saves.notes
    for number in (running, ended.id, 999):
        notes.write(number, SaveNote("s3://runs/x"))
    (tmp_path / "saves" / f"{ended.id}.0123abcd.new").write_text("{")
    assert sorted(place.clean()) == [f"saves/{ended.id}.0123abcd.new", "saves/999.json"]
    assert place.clean(ALL) == [f"saves/{ended.id}.json"]
    assert [held.name for held in notes.files.list_records()] == [f"{running}.json"]


def test_a_thing_that_the_disk_does_not_let_go_is_one_problem_of_the_answer(
    make_place: Callable[..., Place], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, cache = make_place(), DataCache(tmp_path / "data-cache")
    for key in ("kept", "removed"):
        cache.begin_set(key, 1, 1 << 20)
        cache.finish_set(key, f"s3://datasets/{key}", [])
        os.utime(tmp_path / "data-cache" / "sets" / key, (0, 0))

    def remove(folder: Path) -> None:
        if folder.name == "kept":
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        remove_tree(folder)

    monkeypatch.setattr(data_cache, "remove_tree", remove)
    done = place.cleaner.remove_leftovers(place.cleaner.find_leftovers(ALL, LATER)).leftovers
    assert sorted((one.item.identity, one.problem) for one in done if one.item.kind is InventoryKind.DATA) == [
        ("kept", "it cannot be removed: Input/output error"),
        ("removed", None),
    ]


def test_code_on_a_host(make_place: Callable[..., Place]) -> None:
    executor = MemoryExecutor(HostName("away"), Capacity(1, 1))
    place = make_place(executor)
    used, ended, never = "a" * 64, "b" * 64, "c" * 64
    executor.layers = {used, ended, never}
    place.submit(digest=used)
    place.close(place.submit(digest=ended))
    assert place.clean() == [never]
    assert place.clean(ALL) == [ended]
    assert executor.layers == {used}


def test_a_host_that_is_silent_is_named(make_place: Callable[..., Place]) -> None:
    executor = MemoryExecutor(HostName("away"), Capacity(1, 1))
    executor.networks[7] = ""
    place = make_place(executor)
    assert place.names() == ["7"]
    executor.faults.silent = True
    assert place.cleaner.find_leftovers(PLAIN, NOW).silent == ("away",)


def test_nothing_of_what_runs_is_left_over(rig: Rig) -> None:
    rig.submit(gang({}, stop_grace=1))
    rig.wait_state("1", "RUNNING")
    answer = rig.post("/v1/leftovers/remove?caches=true&days=0")
    assert answer.status_code == 200, answer.text
    ours = [one for one in answer.json()["leftovers"] if one["server"] == rig.server_id()]
    assert ours == []
    assert len(rig.containers(running=True)) == 4
    rig.post("/v1/experiments/1/kill")
    assert rig.wait_closed("1")["state"] == "KILLED"
    found = rig.get("/v1/leftovers", caches=True, days=0)["leftovers"]
    assert {one["kind"] for one in found} <= {"snapshot", "environment", "capsule"}
    assert {"snapshot", "capsule"} <= {one["kind"] for one in found}


def fill_environment(executor: ProcessExecutor, image: Image, megabytes: int) -> Path:
    """Make an environment of some size, as if its build had ended long ago; return its folder."""
    folder = executor._environments.find_folder(image.reference)  # its name is a digest
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "python").touch(0o755)
    (folder / "content").write_bytes(b"x" * megabytes * 1_000_000)
    (folder / ".ready").touch()
    os.utime(folder, (LATER.timestamp() - 100 * 86_400,) * 2)
    return folder


def write_ballast(disk: Path, megabytes: int) -> None:
    """Write what riseml may not remove, such as the output of a job."""
    (disk / f"ballast-{uuid.uuid4().hex}").write_bytes(b"x" * megabytes * 1_000_000)


def run_reclaimer(place: Place) -> DiskReclaimer:
    """Let the server look after its disks once; return when it has done so."""
    reclaimer = DiskReclaimer(place.cleaner, place.hosts)
    reclaimer.note(frozenset({(HostName("here"), "an environment")}))
    reclaimer.note(frozenset())  # it was made: the disks are measured at once
    wait_for("the disks", lambda: not reclaimer.is_busy, DEADLINE)
    return reclaimer


def test_a_full_disk_loses_what_nothing_needs_and_keeps_the_rest(
    make_place: Callable[..., Place], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    need_root("a file system of its own needs root")
    with mount_disk(tmp_path, 128) as disk:
        server = uuid.uuid4().hex
        executor = ProcessExecutor(HostName("here"), server, disk)
        place = make_place(executor, server=server, home=disk)
        images = [Image(f"base-{number}", ("true",), (), f"{number}" * 64) for number in range(5)]
        sizes = (22, 22, 24, 24, 8)
        used, kept, oldest, middle, newest = folders = [*map(partial(fill_environment, executor), images, sizes)]
        owner = place.submit(image=images[0])
        for number, image in enumerate(images[1:], 1):
            ended = place.submit(image=image)
            place.close(ended, NOW - timedelta(days=10 - number))
            if number == 1:
                KeptOutputs(place.database).keep([ended.id], NOW)
        assert run_reclaimer(place).list_disks()[0].removed == 0  # 81 %
        write_ballast(disk, 10)
        reclaimer = run_reclaimer(place)
        assert [folder for folder in folders if not folder.exists()] == [oldest]
        (state,) = reclaimer.list_disks()
        assert state.places == ("here", "riseml's home", "the cache of data")
        assert (state.removed, state.is_stuck, state.percent <= 80) == (1, False, True)
        assert "was above 85 %: 1 removed of what no experiment needs; it is" in caplog.text
        write_ballast(disk, 24)
        run_reclaimer(place)
        assert [folder for folder in folders if not folder.exists()] == [oldest, middle]
        write_ballast(disk, 34)
        reclaimer = run_reclaimer(place)
        assert [folder for folder in folders if folder.exists()] == [used, kept]
        assert [one.is_stuck for one in reclaimer.list_disks()] == [True]
        assert "and nothing is left on it that no experiment needs" in caplog.text
        place.close(owner)
        run_reclaimer(place)
        assert [folder for folder in folders if folder.exists()] == [kept]
        assert not newest.exists()
        place.database.close()


def test_an_environment_that_is_being_removed_is_incomplete_and_stays_when_it_is_needed(
    make_place: Callable[..., Place], tmp_path: Path
) -> None:
    server = uuid.uuid4().hex
    executor = ProcessExecutor(HostName("here"), server, tmp_path)
    image = Image("plain", ("true",), (), "d" * 64)
    folder = fill_environment(executor, image, 1)
    place = make_place(executor, server=server)
    place.close(place.submit(image=image))
    (leftover,) = place.cleaner.find_leftovers(ALL, LATER).leftovers
    ready: list[bool] = []

    def submit_meanwhile() -> bool:
        ready.append((folder / ".ready").exists())  # a kill at this moment leaves an incomplete environment
        place.submit(image=image)
        return place.cleaner.is_needed(leftover, NOTHING_USED)

    result = place.cleaner.remove_leftover(leftover, submit_meanwhile)
    assert result.problem == f"an experiment needs the environment {folder.name}"
    assert (ready, (folder / ".ready").exists(), (folder / "content").exists()) == ([False], True, True)


def test_the_next_server_ends_a_removal_and_leaves_what_an_experiment_uses(tmp_path: Path) -> None:
    server = uuid.uuid4().hex
    executor = ProcessExecutor(HostName("here"), server, tmp_path)
    images = [Image(f"base-{number}", ("true",), (), f"{number}" * 64) for number in range(4)]
    complete, used, awaited, left = folders = [fill_environment(executor, image, 1) for image in images]
    for folder in folders[1:]:
        (folder / ".ready").unlink()
    executor._environments.end_unwanted_builds(
        frozenset({images[2].reference}), lambda: frozenset({images[1].reference})
    )
    wait_for("the rest is removed", lambda: not left.exists(), DEADLINE)
    assert all((folder / "content").exists() for folder in (complete, used, awaited))
