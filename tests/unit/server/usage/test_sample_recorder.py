"""Samples without a watcher: which jobs are read, what a watcher and a silent host change, and a full disk."""

from __future__ import annotations

import itertools
import logging
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from riseml.executors.pool import HostPool
from riseml.model import Capacity, ContainerObservation, Sample, World
from riseml.server.usage.monitor import Monitor
from riseml.server.usage.sample_recorder import _BEGIN, SampleRecorder
from riseml.store.samples.sample_rows import ALWAYS, SampleRow
from riseml.store.samples.sample_store import SampleStore
from tests.support.memory_executor import MemoryExecutor
from tests.support.waiting import DEADLINE, wait_for
from tests.unit.server.usage.test_idle_watch import HOST, KEY, make_running

START = datetime(2026, 8, 31, tzinfo=UTC)


class Scene:
    """A recorder, and a host whose job uses 1 % more at each reading."""

    def __init__(self, folder: Path, interval: float) -> None:
        self.host = MemoryExecutor(HOST, Capacity(1, 64))
        self.host.containers[KEY] = ContainerObservation(KEY, "c1", started=True)
        self.host.samples[KEY] = (Sample(START + timedelta(seconds=at), at, 1, 2) for at in itertools.count())
        pool = HostPool((self.host,), 1.0, lambda *_: None)
        self.store = SampleStore(folder)
        self.recorder = SampleRecorder(pool, self.store, interval)
        self.monitor = Monitor(pool, self.recorder.note_watched)

    def rows(self) -> list[SampleRow]:
        """Return what was kept."""
        return self.store.read_rows(KEY.experiment, KEY.job, ALWAYS)

    def wait_for_rows(self, count: int) -> list[SampleRow]:
        return wait_for(f"{count} samples", lambda: rows if len(rows := self.rows()) >= count else None, DEADLINE)


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path, 0.01)


def test_a_job_that_runs_is_read_until_it_does_not(scene: Scene) -> None:
    scene.recorder.watch_jobs(make_running(None))
    rows = scene.wait_for_rows(5)
    assert [row.amounts[0] for row in rows[:5]] == [0.0, 1.0, 2.0, 3.0, 4.0]
    (reader,) = scene.recorder._hosts.values()  # only the thread itself shows that it has ended
    scene.recorder.watch_jobs(World(()))
    reader.join(DEADLINE)
    assert not reader.is_alive()
    scene.recorder.close_experiment(KEY.experiment)


def test_a_host_that_returns_is_read_on(scene: Scene) -> None:
    scene.host.faults.silent = True
    scene.recorder.watch_jobs(make_running(None))
    scene.host.faults.silent = False
    scene.wait_for_rows(2)
    scene.recorder.watch_jobs(World(()))


def test_the_samples_of_a_watcher_are_kept_in_place_of_further_readings(tmp_path: Path) -> None:
    scene = Scene(tmp_path, 3600.0)
    watched = [Sample(START + timedelta(seconds=at), 50.0, 1, 2) for at in range(1000, 1003)]
    scene.host.samples[KEY] = tuple(watched)
    world = make_running(None)
    scene.monitor.sample_jobs(list(world.experiments), None)
    assert [row.amounts[0] for row in scene.wait_for_rows(3)] == [50.0] * 3
    scene.recorder.watch_jobs(world)
    scene.recorder.note_watched(KEY, watched[0])
    scene.recorder.watch_jobs(World(()))


def test_a_full_disk_is_logged_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "samples").write_text("not a folder")
    scene = Scene(tmp_path / "samples", 0.01)
    with caplog.at_level(logging.WARNING):
        for at in range(3):
            scene.recorder.keep(KEY, Sample(START + timedelta(seconds=at), 1.0, 1, 2))
    assert [record.message.partition(":")[0] for record in caplog.records] == ["samples of jobs cannot be kept"]


def test_a_job_that_has_just_begun_is_not_read_yet(tmp_path: Path) -> None:
    scene = Scene(tmp_path, 3600.0)
    begun = time.monotonic()
    scene.recorder.watch_jobs(make_running(None))
    (reader,) = scene.recorder._hosts.values()
    (turn,) = reader._turns.values()
    assert turn.due >= begun + _BEGIN
    scene.recorder.watch_jobs(World(()))
