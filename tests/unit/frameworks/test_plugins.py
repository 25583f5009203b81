"""The seam is wide enough: a sketch of Horovod that touches nothing but the registry, and really runs."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from riseml.frameworks import registry
from riseml.frameworks.base import BaseImage, Binding, Role
from riseml.model import Environment, Experiment, Plan
from riseml.names import JobName, job_name
from riseml.planning.launch import JobFolders, bind_job, job_command, job_variables
from riseml.spec.config.types import Horovod, Spec, TensorFlow, Train
from riseml.states import Part
from tests.support.ports import find_free_port
from tests.unit.frameworks.layouts import gang, make_experiment

LAUNCHER = """
import os, select, socket, subprocess, sys
rank, size, here = (int(os.environ[name]) for name in ("FIRST_RANK", "HOROVOD_SIZE", "HOROVOD_LOCAL_SIZE"))
own, *others = int(os.environ["NODE"]), *range(1, int(os.environ["NODES"]))
host, _, port = os.environ["CONTROLLER"].partition(":")

def meet(code):
    '''Each node sends its exit code, and gets the worst one.'''
    for link in links:
        code = max(code, link.recv(1)[0]) if own == 0 else code
    for link in links:
        link.sendall(bytes([code]))
    return code if own == 0 else links[0].recv(1)[0]

def connect():
    while True:
        try:
            return socket.create_connection((host, int(port)))
        except ConnectionRefusedError:
            select.select([], [], [], 0.02)

links = []
if own == 0:
    with socket.create_server((host, int(port))) as door:
        links = [door.accept()[0] for _ in others]
else:
    links = [connect()]
for line in sys.argv[1:]:
    ranks = [dict(os.environ, HOROVOD_RANK=str(rank + at), HOROVOD_LOCAL_RANK=str(at)) for at in range(here)]
    started = [subprocess.Popen(["/bin/sh", "-ec", line], env=one) for one in ranks]
    code = meet(max([abs(one.wait()) for one in started]))
    if code:
        sys.exit(code)
"""
"""A sketch of a barrier between lines, over one socket that the first worker opens: the interface allows one."""

NO_FLAGS = dict.fromkeys(("job_name", "task_index", "worker_hosts", "ps_hosts", "worker_index", "num_workers"), "")


class HorovodSketch:
    """One process for each GPU, in every worker; all decide."""

    name = "horovod"

    def image(self, train: Train) -> BaseImage:
        return BaseImage("horovod/horovod")

    def roles(self, train: Train) -> tuple[Role, ...]:
        assert train.tensorflow is not None
        assert train.tensorflow.horovod is not None
        workers = range(1, train.tensorflow.horovod.workers + 1)
        return tuple(Role(job_name("worker", index), Part.DECIDES, train.resources) for index in workers)

    def options(self, train: Train) -> Environment:
        assert train.tensorflow is not None
        assert train.tensorflow.horovod is not None
        return (("processes", str(train.tensorflow.horovod.processes)),)

    def bind(self, plan: Plan, job: JobName, addresses: Mapping[JobName, str]) -> Binding:
        here, names = int(dict(plan.options)["processes"]), [one.name for one in plan.jobs]
        variables = {
            "HOROVOD_SIZE": str(here * len(names)),
            "HOROVOD_LOCAL_SIZE": str(here),
            "FIRST_RANK": str(names.index(job) * here),
            "NODE": str(names.index(job)),
            "NODES": str(len(names)),
            "CONTROLLER": addresses[names[0]],
        }
        return Binding(variables, NO_FLAGS)

    def script(self, plan: Plan, job: JobName, lines: Sequence[str]) -> str:
        return f"exec {sys.executable} -c {shlex.join([LAUNCHER, *lines])}"


@pytest.fixture(autouse=True)
def more_frameworks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "FRAMEWORKS", (*registry.FRAMEWORKS, HorovodSketch()))


def run_all(experiment: Experiment, folder: Path) -> list[int]:
    """Run every job on this machine, as the process executor would; their exit codes."""
    folders = JobFolders(str(folder), str(folder), str(folder))
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
        return [process.wait(60) for process in started]


def on_free_ports(experiment: Experiment) -> Experiment:
    jobs = tuple(replace(job, address="127.0.0.1", port=find_free_port()) for job in experiment.jobs)
    return replace(experiment, jobs=jobs)


def make_horovod(*run: str) -> Experiment:
    section = TensorFlow(horovod=Horovod(workers=2, processes=3))
    return make_experiment(Spec("toaster", Train(run, framework="tensorflow", tensorflow=section)))


def test_horovod_runs_every_line_in_all_processes_with_a_barrier_between(tmp_path: Path) -> None:
    first = 'touch "$OUTPUT_DIR/rank-$HOROVOD_RANK"'
    second = 'ls "$OUTPUT_DIR" | grep -c rank- > "$OUTPUT_DIR/seen-by-$HOROVOD_RANK"'
    experiment = on_free_ports(make_horovod(first, second))
    assert [job.part for job in gang(experiment)] == [Part.DECIDES, Part.DECIDES]
    assert run_all(experiment, tmp_path) == [0, 0]
    assert [(tmp_path / f"seen-by-{rank}").read_text() for rank in range(6)] == ["6\n"] * 6


def test_horovod_stops_everywhere_at_the_first_failing_line(tmp_path: Path) -> None:
    experiment = on_free_ports(make_horovod('test "$HOROVOD_RANK" != 4', 'touch "$OUTPUT_DIR/reached"'))
    assert run_all(experiment, tmp_path) == [1, 1]
    assert not (tmp_path / "reached").exists()
