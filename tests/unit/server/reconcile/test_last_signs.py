"""When jobs were last known to run, which their hosts do not show any more."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from riseml.base.names import HostName, JobName
from riseml.base.states import State
from riseml.model import Capacity, ContainerObservation, Frame, HostObservation, JobKey, Sample, World
from riseml.server.reconcile.last_signs import LastSigns
from riseml.store.logs.log_store import LogStore
from riseml.store.samples.sample_store import SampleStore
from tests.unit.control.simulation import START, make_experiment, make_plan

KEY = JobKey(1, JobName("train"), 1)
H1 = HostName("h1")
RUNS = ContainerObservation(KEY, "c", started=True)
WORLD = World(
    tuple(
        replace(
            experiment,
            jobs=(
                experiment.jobs[0],
                replace(experiment.jobs[1], host=H1, state=State.RUNNING, started_at=START),
            ),
        )
        for experiment in (make_experiment(1, make_plan("train")),)
    )
)


def later(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def show(*containers: ContainerObservation, silent: bool = False) -> Mapping[HostName, HostObservation]:
    host = HostObservation(Capacity(1, 1), containers={container.key: container for container in containers})
    return {H1: replace(host, silent_since=START if silent else None)}


@pytest.fixture
def signs(tmp_path: Path) -> LastSigns:
    return LastSigns(SampleStore(tmp_path / "samples"), LogStore(tmp_path))


def test_a_job_that_the_server_saw_just_now_was_there_until_now(signs: LastSigns) -> None:
    assert signs.find(WORLD, show(RUNS), later(10)) == {}
    assert signs.find(WORLD, show(), later(12)) == {}


@pytest.mark.parametrize("hosts", [{}, show(), show(replace(RUNS, exit_code=137))], ids=["host", "container", "end"])
def test_a_job_that_is_gone_after_the_server_stood_still_was_seen_before(
    signs: LastSigns, hosts: Mapping[HostName, HostObservation]
) -> None:
    signs.find(WORLD, show(RUNS), later(10))
    assert signs.find(WORLD, hosts, later(600)) == {KEY: later(10)}


@pytest.mark.parametrize(
    "ended", [replace(RUNS, exit_code=0, finished_at=later(5)), replace(RUNS, exit_code=0, ran=5.0)]
)
def test_a_job_whose_end_is_known_needs_no_sign(signs: LastSigns, ended: ContainerObservation) -> None:
    assert signs.find(WORLD, show(ended), later(600)) == {}


def test_a_silent_host_says_itself_since_when(signs: LastSigns) -> None:
    signs.find(WORLD, show(RUNS), later(10))
    assert signs.find(WORLD, show(RUNS, silent=True), later(600)) == {}


@pytest.mark.parametrize(("sample", "line", "last"), [(30, None, 30), (30, 45, 45), (None, 45, 45), (None, None, 0)])
def test_a_server_that_has_restarted_finds_the_signs_in_its_store(
    tmp_path: Path, sample: int | None, line: int | None, last: int
) -> None:
    samples, logs = SampleStore(tmp_path / "samples"), LogStore(tmp_path)
    if sample is not None:
        samples.add_sample(KEY, Sample(later(sample), 1.0, 1, 1))
    if line is not None:
        logs.append_frames(KEY, [Frame(f"{later(line).astimezone(UTC):%Y-%m-%dT%H:%M:%S}.000000001Z", 1, b"step\n")])
    signs = LastSigns(samples, logs)
    found = signs.find(WORLD, show(), later(600))
    assert abs(found[KEY] - later(last)) < timedelta(seconds=1)
