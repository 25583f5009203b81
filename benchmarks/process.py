"""The process executor: four jobs with riseml without Docker, and the same four processes started by hand."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

from benchmarks.common import BenchContext, Measure, Report, bar_of_time, interleave, median, select_measures
from benchmarks.gang import FOUR, change_code, make_project, make_train_section
from benchmarks.home import Home

_OVERHEAD = 1.2
_CAUSE = "the command's own start, and a supervisor for each job, which is a Python process"
_LINE = "sleep 2; echo done"
_JOBS = {"master": _LINE, "worker-1": _LINE, "worker-2": _LINE, "ps-1": "exec sleep 600"}
_START = "from the command to all RUNNING"
_WALL = "a 2 s job, from the command to its end"
RISEML = "riseml train"
HAND = "four processes by hand"


def run(context: BenchContext) -> Report:
    report = Report()
    run_project = make_project(context, make_train_section(_JOBS), "whole")
    start_project = make_project(context, make_train_section(FOUR), "start")
    with Home(context, RISEML_EXECUTOR="process") as home:
        contenders = {
            HAND: lambda turn: _by_hand(context.folder),
            RISEML: lambda turn: _start(home, start_project, turn) | _whole(home, run_project, turn),
        }
        results = interleave(context.rounds(6), contenders, skip=1)
    for name in (_START, _WALL):
        report.add(name, *select_measures(results, name))
    overhead = [value - median(results[HAND][_WALL]) for value in results[RISEML][_WALL]]
    report.add("the 2 s job: over the processes by hand", Measure("overhead", tuple(overhead)))
    requirement = "four processes, a 2 s job: overhead (bar of whole_run)"
    report.bars = [bar_of_time(requirement, median(overhead), _OVERHEAD, "s", _CAUSE)]
    return report


def _start(home: Home, project: Path, turn: int) -> dict[str, float]:
    change_code(project, turn)
    begun = time.time()
    experiment = home.train(project)
    running_at = home.wait_jobs(experiment, "RUNNING", len(FOUR))
    home.kill(experiment)
    return {_START: running_at - begun}


def _whole(home: Home, project: Path, turn: int) -> dict[str, float]:
    change_code(project, turn)
    return {_WALL: home.run("train", cwd=project).seconds}


def _by_hand(folder: Path) -> Mapping[str, float]:
    begun = time.perf_counter()
    started = {
        name: subprocess.Popen(["/bin/sh", "-ec", line], cwd=folder, stdout=subprocess.DEVNULL)
        for name, line in _JOBS.items()
    }
    running = time.perf_counter() - begun
    started.pop("master").wait()
    for process in started.values():
        process.terminate()
        process.wait()
    return {_START: running, _WALL: time.perf_counter() - begun}
