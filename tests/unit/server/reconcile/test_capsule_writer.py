"""What a capsule holds of a project, and of the environment that its jobs ran in."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from itertools import repeat
from pathlib import Path

from riseml.base.annotations import NO_ANNOTATION
from riseml.base.names import HostName
from riseml.base.settings import Settings
from riseml.executors.pool import HostPool
from riseml.model import Capacity, Image
from riseml.server.hosts.host_set import HostSet
from riseml.server.reconcile.capsule_writer import CapsuleWriter, join_archive
from riseml.store.capsules import CapsuleStore
from riseml.store.projects.snapshots import SnapshotStore
from riseml.wire.capsules import MOST_CODE
from tests.support.memory_executor import MemoryExecutor
from tests.support.waiting import DEADLINE
from tests.unit.control.simulation import make_experiment, make_plan

HOST = HostName("h1")
IMAGE = Image("base", ("pip install tabulate",), (), "a" * 64)


class SlowReader(MemoryExecutor):
    """A host that takes long enough to read its packages for another thread to come meanwhile."""

    def __init__(self) -> None:
        super().__init__(HOST, Capacity(4.0, 4096))
        self.count = 0
        self.another_came = threading.Event()

    def list_packages(self, reference: str) -> tuple[str, ...] | None:
        self.count += 1
        if self.count > 1:
            self.another_came.set()
        self.another_came.wait(0.1)
        return ("tabulate==0.9.0",)


def test_an_archive_is_joined_only_while_a_capsule_has_room_for_it() -> None:
    assert join_archive(repeat(bytes(512))) is None, "it would never end"
    assert join_archive(repeat(b"x" * 512, MOST_CODE // 512)) == b"x" * MOST_CODE
    assert join_archive([b"one", b"two"]) == b"onetwo"
    assert join_archive([]) is None


def test_hosts_that_are_released_at_once_ask_for_the_packages_of_an_environment_once(tmp_path: Path) -> None:
    host = SlowReader()
    hosts = HostSet(Settings(tmp_path, tmp_path / "output", tmp_path / "data"), "5e17e4", HostPool((), 2.0, print))
    hosts.pool.replace_executors((host,))
    snapshots, capsules = SnapshotStore(tmp_path / "snapshots"), CapsuleStore(tmp_path / "capsules")
    capsule_writer = CapsuleWriter(hosts, snapshots, capsules, lambda _: {}, lambda _: NO_ANNOTATION, "2.0")
    experiment = make_experiment(
        1, replace(make_plan("master"), image=IMAGE), ended_at=datetime(2026, 8, 31, tzinfo=UTC)
    )
    ended = replace(experiment, jobs=tuple(replace(job, host=HOST) for job in experiment.jobs))
    with ThreadPoolExecutor(4) as threads:
        made = [threads.submit(capsule_writer.show_capsule, ended, "") for _ in range(4)]
        packages = [one.result(DEADLINE)["environments"][0]["packages"] for one in made]
    assert packages == [["tabulate==0.9.0"]] * 4
    assert host.count == 1
