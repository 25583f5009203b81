"""A whole run: a job of two seconds in four containers, in the foreground, from the command to its end."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from pathlib import Path

from benchmarks import peers
from benchmarks.common import (
    BenchContext,
    Measure,
    Report,
    RunOnce,
    bar_ahead_of_peers,
    bar_of_time,
    interleave,
    select_measures,
)
from benchmarks.engine import BenchEngine
from benchmarks.gang import ByHand, Compose, TorchX, change_code, make_project, make_train_section
from benchmarks.home import Home

_JOB = 2.0
_OVERHEAD = 1.2
_LINE = "echo begun; sleep 2; echo done"
_JOBS = {"master": _LINE, "worker-1": _LINE, "worker-2": _LINE, "ps-1": "exec sleep 600"}
_ALL_END = {**_JOBS, "ps-1": _LINE}
_WALL = "from the command to its end"
RISEML = "riseml train"
HAND = "raw SDK, 8 threads"
COMPOSE = "docker-compose up --abort-on-container-exit"
TORCHX = "torchx run"


def run(context: BenchContext) -> Report:
    report = Report()
    project = make_project(context, make_train_section(_JOBS))
    with Home(context) as home:
        contenders: dict[str, RunOnce] = {
            RISEML: lambda turn: _riseml(home, project, turn),
            HAND: lambda turn: _by_hand(home.engine),
        }
        if peers.compose_version():
            compose = Compose(context, _JOBS)
            contenders[COMPOSE] = lambda turn: _compose(compose)
        if context.bench_python is not None:
            torchx = TorchX(context, home.engine)
            contenders[TORCHX] = lambda turn: _torchx(torchx)
        results = interleave(context.rounds(4), contenders, skip=1)
    walls = {measure.name: measure for measure in select_measures(results, _WALL)}
    report.add(_WALL, *walls.values())
    over = {name: Measure(name, tuple(value - _JOB for value in walls[name].values)) for name in (RISEML, HAND)}
    report.add("over the two seconds of the job", *over.values())
    cause = (
        f"the engine alone takes {over[HAND].shown(0.5)} with the raw SDK: a network and four containers, started and"
        " removed"
    )
    peer_times = {name: measure.median for name, measure in walls.items() if name in (COMPOSE, TORCHX)}
    report.bars = [
        bar_of_time("a 2 s job in 4 containers: overhead", over[RISEML].median, _OVERHEAD, "s", cause),
        bar_ahead_of_peers(
            "a 2 s job in 4 containers: ahead of both peers", walls[RISEML].median, peer_times, "s", cause
        ),
    ]
    report.notes = [f"{name}: not measured, not installed here" for name in (COMPOSE, TORCHX) if name not in contenders]
    report.notes.append("TorchX waits for all jobs, so its ps also ends after two seconds")
    return report


def _riseml(home: Home, project: Path, turn: int) -> Mapping[str, float]:
    change_code(project, turn)
    command = home.run("train", cwd=project)
    if not re.search(r"\.master .*\] done$", command.out, re.MULTILINE):
        raise RuntimeError(f"the log is incomplete:\n{command.out}")
    home.wait_closed(str(turn + 2))
    return {_WALL: command.seconds}


def _by_hand(engine: BenchEngine) -> Mapping[str, float]:
    """Measure the limit: create a network and four containers, wait for the master, remove everything."""
    hand = ByHand(engine, "whole")
    hand.start({"warm": "true"}, "bridge")
    hand.remove()
    begun = time.perf_counter()
    network = engine.create_network("whole")
    master = hand.start(_JOBS, network)["master"]
    engine.api.wait(master)
    hand.remove()
    return {_WALL: time.perf_counter() - begun}


def _compose(compose: Compose) -> Mapping[str, float]:
    begun = time.perf_counter()
    compose.run("up", "--abort-on-container-exit", codes=(0, 137, 143))
    seconds = time.perf_counter() - begun
    compose.remove()
    return {_WALL: seconds}


def _torchx(torchx: TorchX) -> Mapping[str, float]:
    begun = time.perf_counter()
    torchx.run(_ALL_END)
    seconds = time.perf_counter() - begun
    torchx.remove()
    return {_WALL: seconds}
