"""Sync: `train -d` with a project of 10,000 files and 200 MB: the first time, with one file changed, and unchanged.

The server accepts each experiment, so that the command does everything that a user waits for. Each experiment is closed
before the next command, outside the measured time.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from benchmarks import peers
from benchmarks.common import (
    Bar,
    BenchContext,
    Measure,
    Report,
    bar_at_most,
    bar_of_time,
    format_value,
    interleave,
    median,
    select_measures,
)
from benchmarks.engine import BASE
from benchmarks.home import Home, write_project
from benchmarks.machine import make_environ

_FILES = 10_000
_FOLDERS = 100
_SIZE = 20_000
_FIRST = "first time"
_CHANGED = "again, one file changed"
_SAME = "again, nothing changed"
RISEML = "riseml train -d"
RSYNC = "rsync -a"
BUILD = "docker build (context)"
_TRAIN = {"image": BASE, "resources": {"cpus": 0.05, "mem": "64MiB"}, "run": "test -e part_0/data_0.bin"}
_TIMES_RSYNC = 1.3
_MOST = {_CHANGED: 0.35, _SAME: 0.25}  # seconds of the whole command
_DISK = "disk of the server after these projects"
_CAUSE = "the command's own start, and what the server does to accept an experiment, are part of it"


def run(context: BenchContext) -> Report:
    report = Report()
    project = _make(context, context.rounds(_FILES, _FILES // 10))
    if not peers.is_installed("rsync"):
        peers.install_package("rsync")
    disk: list[float] = []
    contenders = {
        RISEML: lambda turn: _riseml(context, project, turn, disk),
        BUILD: lambda turn: _build(context, project),
    }
    if peers.is_installed("rsync"):
        contenders[RSYNC] = lambda turn: _rsync(context, project)
    results = interleave(context.rounds(3), contenders)
    with Home(context, "start") as home:
        begun = tuple(home.run("--help").seconds for _ in range(context.rounds(10, 2)))
    for name in (_FIRST, _CHANGED, _SAME):
        report.add(name, *select_measures(results, name))
    report.add("the command's own start", Measure("riseml --help", begun))
    report.add(_DISK, Measure(RISEML, tuple(disk), "MB", "two states of the project, which differ in one file"))
    report.bars = _bars(results, median(begun))
    if RSYNC not in results:
        report.notes.append(f"{RSYNC}: not measured, not installed here")
    return report


def _bars(results: Mapping[str, Mapping[str, list[float]]], start: float) -> list[Bar]:
    """Return the bars: the first time against rsync, the others against the clock, all against `docker build`."""
    middle = {by: {name: median(values) for name, values in kinds.items()} for by, kinds in results.items()}
    riseml_times = middle[RISEML]
    allowed = _TIMES_RSYNC * middle.get(RSYNC, {}).get(_FIRST, float("nan")) + start
    requirement = f"{_FIRST}: at most {_TIMES_RSYNC} x rsync -a, plus the command's own start"
    bars = [bar_at_most(requirement, riseml_times[_FIRST], allowed, "s", _CAUSE)]
    bars += [bar_of_time(name, riseml_times[name], limit, "s", _CAUSE) for name, limit in _MOST.items()]
    for name in (_FIRST, _CHANGED):
        figure = ", ".join(f"{by} {format_value(values[name], 's')}" for by, values in middle.items())
        bars.append(Bar(f"{name}: not behind docker build's upload", figure, riseml_times[name] <= middle[BUILD][name]))
    return bars


def _make(context: BenchContext, files: int) -> Path:
    """Make a project of bytes that cannot be compressed, in a hundred folders."""
    project = write_project(context.folder / "big", _TRAIN, {"Dockerfile": f"FROM {BASE}\n"})
    source = random.Random(7)
    for number in range(files):
        folder = project / f"part_{number % _FOLDERS}"
        folder.mkdir(exist_ok=True)
        (folder / f"data_{number}.bin").write_bytes(source.randbytes(_SIZE))
    return project


def _times(project: Path, sync: Callable[[], object], settle: Callable[[], object] = lambda: None) -> dict[str, float]:
    """Measure the three cases. `settle` runs after each of them, outside the measured time."""
    times: dict[str, float] = {}
    for name in (_FIRST, _CHANGED, _SAME):
        if name != _SAME:
            (project / "part_0" / "data_0.bin").write_bytes(os.urandom(_SIZE))
        begun = time.perf_counter()
        sync()
        times[name] = time.perf_counter() - begun
        settle()
    return times


def _riseml(context: BenchContext, project: Path, turn: int, disk: list[float]) -> Mapping[str, float]:
    """Measure `train -d` in a new home, whose server does not have the project. A refusal fails the bench.

    Raises:
        RuntimeError: an experiment did not finish. Its job requires a file of the project.
    """
    with Home(context, f"home-{turn}") as home:
        home.run("status")

        def settle() -> None:
            ended = home.wait_closed(str(len(home.get("/experiments", all=True)["experiments"])))
            if ended["state"] != "FINISHED":
                raise RuntimeError(f"the experiment ended {ended['state']}: {ended['reason']}")

        times = _times(project, lambda: home.run("train", "-d", cwd=project), settle)
        disk.append(_measure_disk(home.folder / "snapshots"))
    shutil.rmtree(home.folder, ignore_errors=True)  # the server may still be removing its socket
    return times


def _measure_disk(folder: Path) -> float:
    """Return what the files below a folder take of the disk, in MB."""
    return sum(path.lstat().st_blocks * 512 for path in folder.rglob("*")) / 1e6


def _rsync(context: BenchContext, project: Path) -> Mapping[str, float]:
    copy = context.folder / "copy"
    shutil.rmtree(copy, ignore_errors=True)
    return _times(project, lambda: subprocess.run(["rsync", "-a", f"{project}/", f"{copy}/"], check=True))


def _build(context: BenchContext, project: Path) -> Mapping[str, float]:
    """Measure the classic builder. It sends all files every time, and builds nothing: the only step is `FROM`."""
    command = ["docker", "-H", context.engine, "build", "--quiet", str(project)]
    settings = make_environ(DOCKER_BUILDKIT="0")
    return _times(project, lambda: subprocess.run(command, env=settings, check=True, capture_output=True))
