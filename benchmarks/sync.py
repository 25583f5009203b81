"""Sync: the upload of a project of ten thousand files and 200 MB, for the first and for the second time."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from benchmarks import peers
from benchmarks.common import Bar, BenchContext, Report, format_value, interleave, median, select_measures
from benchmarks.engine import BASE
from benchmarks.home import Home, write_project
from benchmarks.machine import make_environ

_FILES, _FOLDERS, _SIZE = 10_000, 100, 20_000
_FIRST, _CHANGED, _SAME = "first time", "again, one file changed", "again, nothing changed"
RISEML, RSYNC, BUILD = "riseml train", "rsync -a", "docker build (context)"
_TRAIN = {
    "image": BASE,
    "resources": {"cpus": 100_000},
    "run": "true",
}  # the server refuses it after the upload: nothing starts


def run(context: BenchContext) -> Report:
    report = Report()
    project = _make(context, context.rounds(_FILES, _FILES // 10))
    if not peers.is_installed("rsync"):
        peers.install_package("rsync")
    with Home(context) as home:
        home.run("status")
        contenders = {RISEML: lambda turn: _riseml(home, project, turn), BUILD: lambda turn: _build(context, project)}
        if peers.is_installed("rsync"):
            contenders[RSYNC] = lambda turn: _rsync(context, project)
        found = interleave(context.rounds(2), contenders)
    for name in (_FIRST, _CHANGED, _SAME):
        report.add(f"{name}", *select_measures(found, name))
    first = {name: median(kinds[_FIRST]) for name, kinds in found.items()}
    again = {name: median(kinds[_CHANGED]) for name, kinds in found.items()}
    report.bars = [_compared(_FIRST, first), _compared(_CHANGED, again)]
    report.notes.append(
        "riseml reads and hashes every file, and stores the whole project under its digest; rsync copies"
    )
    if RSYNC not in found:
        report.notes.append(f"{RSYNC}: not measured, not installed here")
    return report


def _compared(what: str, seconds: Mapping[str, float]) -> Bar:
    """Return a bar against `docker build`, which sends the same bytes."""
    shown = ", ".join(f"{name} {format_value(value, 's')}" for name, value in seconds.items())
    cause = "every file is hashed, and the archive is made in Python; the engine's client does it in Go"
    return Bar(f"{what}: not behind docker build's upload", shown, seconds[RISEML] <= seconds[BUILD], cause)


def _make(context: BenchContext, files: int) -> Path:
    """Make a project of bytes that cannot be compressed, in a hundred folders."""
    project = write_project(context.folder / "big", _TRAIN, {"Dockerfile": f"FROM {BASE}\n"})
    source = random.Random(7)
    for number in range(files):
        folder = project / f"part_{number % _FOLDERS}"
        folder.mkdir(exist_ok=True)
        (folder / f"data_{number}.bin").write_bytes(source.randbytes(_SIZE))
    return project


def _times(project: Path, sync: Callable[[], object]) -> Mapping[str, float]:
    found: dict[str, float] = {}
    for name in (_FIRST, _CHANGED, _SAME):
        if name != _SAME:
            (project / "part_0" / "data_0.bin").write_bytes(os.urandom(_SIZE))
        begun = time.perf_counter()
        sync()
        found[name] = time.perf_counter() - begun
    return found


def _riseml(home: Home, project: Path, turn: int) -> Mapping[str, float]:
    """Measure the command until the server refuses it: the command uploads the files before it asks for a place."""
    if turn > 0:
        shutil.rmtree(home.folder / "snapshots")
        (home.folder / "snapshots").mkdir()
    return _times(project, lambda: home.run("train", "-d", cwd=project, codes=(4,)))


def _rsync(context: BenchContext, project: Path) -> Mapping[str, float]:
    copy = context.folder / "copy"
    shutil.rmtree(copy, ignore_errors=True)
    return _times(project, lambda: subprocess.run(["rsync", "-a", f"{project}/", f"{copy}/"], check=True))


def _build(context: BenchContext, project: Path) -> Mapping[str, float]:
    """Measure the classic builder: it sends all files every time, and builds nothing, as the only step is `FROM`."""
    command = ["docker", "-H", context.engine, "build", "--quiet", str(project)]
    settings = make_environ(DOCKER_BUILDKIT="0")
    return _times(project, lambda: subprocess.run(command, env=settings, check=True, capture_output=True))
