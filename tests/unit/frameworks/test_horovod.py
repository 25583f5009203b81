"""Horovod: its jobs, what all processes agree on, and how the lines of `run` behave, in real processes."""

from __future__ import annotations

import os
import subprocess
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from riseml.base.states import JobDuty
from riseml.frameworks.registry import choose_framework
from riseml.model import Experiment
from riseml.planning.launch import JobFolders, bind_job, job_command, job_variables
from riseml.spec.config.types import Horovod, PyTorch, Resources, Spec, TensorFlow, Train
from tests.support.ports import find_free_port
from tests.support.waiting import DEADLINE
from tests.unit.frameworks.layouts import gang, make_experiment, on_loopback
from tests.unit.frameworks.test_variables import find_views

MEET = """
python3 -c '
import os, urllib.request
place = os.environ["HOROVOD_GLOO_RENDEZVOUS_ADDR"] + ":" + os.environ["HOROVOD_GLOO_RENDEZVOUS_PORT"]
path = "/global/" + os.environ["HOROVOD_RANK"]
urllib.request.urlopen(urllib.request.Request("http://" + place + path, data=b"here", method="PUT")).read()
'
"""
"""What a process does of `hvd.init()`: it puts its address below its rank."""


def make_horovod(*run: str, workers: int = 2, processes: int = 3) -> Experiment:
    section = TensorFlow(horovod=Horovod(workers, processes))
    return make_experiment(Spec("toaster", Train(run, framework="tensorflow", tensorflow=section)))


def run_all(experiment: Experiment, folder: Path) -> list[int]:
    """Run every job on this machine, as the process executor would; their exit codes."""
    folders = JobFolders(str(folder), str(folder), str(folder))
    jobs = tuple(replace(job, address="127.0.0.1", port=find_free_port()) for job in experiment.jobs)
    experiment = replace(experiment, jobs=jobs)
    with ExitStack() as stack:
        bound = [bind_job(experiment, job, folders) for job in gang(experiment)]
        started = [
            stack.enter_context(
                subprocess.Popen(
                    job_command(one), env={"PATH": os.environ["PATH"], **dict(job_variables(one))}, cwd=folder
                )
            )
            for one in bound
        ]
        for process in started:
            stack.callback(process.kill)
        return [process.wait(DEADLINE) for process in started]


def test_every_line_runs_in_all_processes_with_a_barrier_between(tmp_path: Path) -> None:
    first = f'{MEET}\ntouch "$OUTPUT_DIR/rank-$HOROVOD_RANK"'
    second = '[[ -d $OUTPUT_DIR ]] && ls "$OUTPUT_DIR" | grep -c rank- &> "$OUTPUT_DIR/seen-by-$HOROVOD_RANK"'
    experiment = make_horovod(first, second)
    assert [(job.name, job.part) for job in gang(experiment)] == [
        ("worker.1", JobDuty.DECIDES),
        ("worker.2", JobDuty.DECIDES),
    ]
    assert run_all(experiment, tmp_path) == [0, 0]
    assert [(tmp_path / f"seen-by-{rank}").read_text() for rank in range(6)] == ["6\n"] * 6


def test_it_stops_everywhere_at_the_first_failing_line(tmp_path: Path) -> None:
    """In one job; tests/unit/job_programs/test_rank_launcher.py has several."""
    run = (MEET, 'test "$HOROVOD_RANK" != 2 || exit 9', 'touch "$OUTPUT_DIR/reached"')
    assert run_all(make_horovod(*run, workers=1), tmp_path) == [9]
    assert not (tmp_path / "reached").exists()


def test_a_single_process_needs_no_horovod(tmp_path: Path) -> None:
    assert run_all(make_horovod("true", workers=1, processes=1), tmp_path) == [0]


@pytest.mark.parametrize(("gpus", "image"), [(0, "horovod/horovod-cpu:0.28.1"), (2, "horovod/horovod:0.28.1")])
def test_both_sections_choose_horovod_and_its_image(gpus: int, image: str) -> None:
    ring = Horovod(2, 2)
    resources = Resources(gpus=gpus)
    for train in (
        Train(("c",), resources=resources, framework="tensorflow", tensorflow=TensorFlow(horovod=ring)),
        Train(("c",), resources=resources, framework="pytorch", pytorch=PyTorch(horovod=ring)),
    ):
        assert choose_framework(train).name == "horovod"
        assert make_experiment(Spec("toaster", train)).plan.image.base == image


@settings(max_examples=25)
@given(st.integers(1, 12), st.integers(1, 4))
def test_all_processes_of_a_ring_agree(workers: int, processes: int) -> None:
    experiment = make_horovod("c", workers=workers, processes=processes)
    for one in (experiment, on_loopback(experiment)):
        views = [dict(pair.split("=") for pair in text.split()) for job in find_views(one).values() for text in job]
        assert [view["HOROVOD_RANK"] for view in views] == [str(rank) for rank in range(workers * processes)]
        for rank, view in enumerate(views):
            assert view["HOROVOD_SIZE"] == str(len(views))
            assert (view["HOROVOD_LOCAL_SIZE"], view["HOROVOD_CROSS_SIZE"]) == (str(processes), str(workers))
            place = int(view["HOROVOD_CROSS_RANK"]) * processes + int(view["HOROVOD_LOCAL_RANK"])
            assert (place, view["WORKER_INDEX"]) == (rank, view["HOROVOD_CROSS_RANK"])
        assert len({view["HOROVOD_GLOO_RENDEZVOUS_PORT"] for view in views}) == 1
        assert len({view["HOROVOD_HOSTNAME"] for view in views}) == workers
