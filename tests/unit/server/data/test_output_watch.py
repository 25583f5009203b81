"""The outputs of experiments that run, measured against their limit."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from riseml.base.states import State
from riseml.model import Experiment, Owner, World
from riseml.planning.launch import output_folder
from riseml.server.data.output_watch import OutputWatch
from tests.support.waiting import DEADLINE, wait_for
from tests.unit.control.simulation import make_experiment, make_plan
from tests.unit.server.memory_pool import H1, make_host, make_hosts

LIMIT = 64 << 10  # bytes


class Clock:
    """Seconds that a test counts."""

    seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def make_running(state: State = State.RUNNING) -> Experiment:
    """Return an experiment whose job is in a state."""
    plan = make_plan("train")
    experiment = make_experiment(1, plan, owner=Owner("paul", os.getuid(), os.getgid()), state=state)
    return replace(experiment, jobs=tuple(replace(job, host=H1, state=state) for job in experiment.gang))


def write_output(folder: Path, size: int) -> None:
    """Write a file of some bytes into the output of the experiment."""
    output = folder / "output" / output_folder(make_running())
    output.mkdir(parents=True, exist_ok=True)
    (output / "model.pt").write_bytes(os.urandom(size))


def test_an_output_that_is_too_large_is_named_until_it_is_measured_again(tmp_path: Path) -> None:
    clock, world = Clock(), World((make_running(),))
    watch = OutputWatch(make_hosts(tmp_path, make_host()), LIMIT, clock)
    write_output(tmp_path, 96 << 10)
    wait_for("the output was measured", lambda: watch.find_over(world), DEADLINE)
    (sentence,) = watch.find_over(world).values()
    assert sentence.endswith("and RISEML_OUTPUT_LIMIT allows 64 KiB")
    write_output(tmp_path, 1)
    assert watch.find_over(world), "it rests"
    clock.seconds += 60
    wait_for("the output was measured again", lambda: not watch.find_over(world), DEADLINE)


@pytest.mark.parametrize(("state", "limit"), [(State.RUNNING, None), (State.FINISHED, LIMIT)])
def test_without_a_limit_or_a_job_that_runs_nothing_is_measured(
    tmp_path: Path, state: State, limit: int | None
) -> None:
    write_output(tmp_path, 96 << 10)
    watch = OutputWatch(make_hosts(tmp_path, make_host()), limit, Clock())
    assert watch.find_over(World((make_running(state),))) == {}
    assert watch._worker is None


def test_an_output_that_is_not_there_yet_ends_no_experiment(tmp_path: Path) -> None:
    watch = OutputWatch(make_hosts(tmp_path, make_host()), LIMIT, Clock())
    world = World((make_running(),))
    watch.find_over(world)
    wait_for("it was measured", lambda: watch._not_before, DEADLINE)
    assert watch.find_over(world) == {}
