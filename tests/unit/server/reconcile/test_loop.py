"""What the loop reads beside the hosts: which ended job another job still waits for."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from riseml.base.names import JobName
from riseml.base.states import JobDuty, State
from riseml.model import Experiment, Frame, JobKey, World
from riseml.server.reconcile.loop import StuckWaits
from riseml.spec.config.loader import load_config
from riseml.store.logs.log_store import LogStore
from tests.unit.frameworks.layouts import make_experiment

FILE = """
project: t
train:
  image: a
  run: echo
  roles:
    learner: {after: {prepare: 2222, store: 6379}}
    prepare: {count: 2, ends: helps}
    store: {ends: helps}
"""
AT = "2026-08-31T07:23:46.000000001Z"
KEY = JobKey(1, JobName("learner"), 1)


def make_world(*ended: str) -> World:
    made: Experiment = make_experiment(load_config(FILE))
    states = {JobName(name): State.FINISHED for name in ended}
    jobs = tuple(
        job if job.part is JobDuty.PREPARES else replace(job, state=states.get(job.name, State.RUNNING))
        for job in made.jobs
    )
    return World((replace(made, id=1, jobs=jobs),))


@pytest.mark.parametrize(
    ("line", "ended", "peer"),
    [
        ("riseml: waiting until prepare answers at prepare-2:2222", ["prepare.2"], "prepare.2"),
        ("riseml: still waiting for prepare-2:2222: [Errno 111] refused", ["prepare.1", "prepare.2"], "prepare.2"),
        ("riseml: waiting until store answers at store:6379", ["store"], "store"),
        ("riseml: waiting until prepare answers at prepare-2:2222", ["prepare.1"], None),
        ("riseml: waiting until prepare answers at prepare-2:2222", [], None),
        ("riseml: everything that this job waited for answers", ["prepare.1", "prepare.2", "store"], None),
        ("step 1", ["prepare.1"], None),
        ("", ["prepare.1"], None),
    ],
)
def test_only_a_wait_for_a_job_that_has_ended_is_in_vain(
    tmp_path: Path, line: str, ended: list[str], peer: str | None
) -> None:
    logs = LogStore(tmp_path)
    if line:
        logs.append_frames(KEY, [Frame(AT, 1, f"{one}\n".encode()) for one in ("before", line)])
    assert StuckWaits(logs).find(make_world(*ended)) == ({} if peer is None else {KEY: peer})


def test_the_lines_of_an_earlier_attempt_say_nothing(tmp_path: Path) -> None:
    """With `scope: role` one job begins again: until its first line arrives, the last one is that of its failure."""
    logs, world = LogStore(tmp_path), make_world("prepare.1", "prepare.2")
    (experiment,) = world.experiments
    again = tuple(replace(job, attempt=2) if job.name == "learner" else job for job in experiment.jobs)
    world = World((replace(experiment, jobs=again),))
    waits, key = StuckWaits(logs), replace(KEY, attempt=2)
    logs.append_frames(KEY, [Frame(AT, 1, b"Traceback\n")])
    assert waits.find(world) == {}
    logs.append_frames(key, [Frame(AT, 1, b"riseml: waiting until prepare answers at prepare-2:2222\n")])
    assert waits.find(world) == {key: "prepare.2"}


def test_the_log_of_a_job_that_has_begun_is_read_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The logs of a long training are long, and the loop asks every two seconds."""
    logs, world = LogStore(tmp_path), make_world("prepare.1")
    logs.append_frames(KEY, [Frame(AT, 1, b"step 1\n")])
    waits = StuckWaits(logs)
    assert waits.find(world) == {}
    monkeypatch.setattr(LogStore, "read_last_lines", None)
    assert waits.find(world) == {}
