"""A warm start of four jobs: from the command to all RUNNING. The environment is cached, the code changed or known."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

from benchmarks import peers
from benchmarks.common import (
    Bar,
    BenchContext,
    Measure,
    Report,
    RunOnce,
    bar_ahead_of_peers,
    bar_at_most,
    format_value,
    interleave,
    select_measures,
)
from benchmarks.engine import BenchEngine
from benchmarks.gang import FOUR, ByHand, Compose, TorchX, change_code, make_project, make_train_section, pack_project
from benchmarks.home import Home

_LIMIT = 1.5  # times the raw SDK
_LIMIT_THERE = 1.25  # times the raw SDK, when the engine has the code already
_WHY = (
    "the engine unpacks the project into each container before it starts the container, in a separate process;"
    " the peers do not copy the project"
)
_RUNNING = "the last container runs"
_KNOWN = "the contender reports that all run"
_BEGUN = "the command's own start"
HAND = "raw SDK, 4 threads"
SAME = "raw SDK, riseml's work"
RISEML = "riseml"
THERE = "riseml, code there already"
COMPOSE = "docker-compose"
TORCHX = "TorchX"


def run(context: BenchContext) -> Report:
    report = Report()
    train = make_train_section(FOUR, install=["echo bench > /etc/riseml-bench"])
    project = make_project(context, train)
    with Home(context, RISEML_BUILD_NETWORK="host") as home:
        unchanged = make_project(context, train, "unchanged")
        for _ in range(3):  # the second experiment with a small project makes its layer
            _riseml(home, unchanged, None)
        contenders: dict[str, RunOnce] = _contenders(context, home, project)
        contenders[THERE] = lambda turn: _riseml(home, unchanged, None)
        results = interleave(context.rounds(6), contenders, skip=1)
        for name in (_RUNNING, _KNOWN):
            report.add(f"{name}, from the command on", *select_measures(results, name))
        report.add(_BEGUN, *_own_start(context, home))
    report.bars = _bars(report, results)
    _add_absent(report, context)
    return report


def _contenders(context: BenchContext, home: Home, project: Path) -> dict[str, RunOnce]:
    engine = home.engine
    contenders: dict[str, RunOnce] = {
        HAND: lambda turn: _by_hand(engine),
        SAME: lambda turn: _same_work(engine, pack_project(project)),
        RISEML: lambda turn: _riseml(home, project, turn),
    }
    if peers.compose_version():
        compose = Compose(context, FOUR)
        contenders[COMPOSE] = lambda turn: _compose(engine, compose)
    if context.bench_python is not None:
        torchx = TorchX(context, engine)
        contenders[TORCHX] = lambda turn: _torchx(engine, torchx)
    return contenders


def _riseml(home: Home, project: Path, turn: int | None) -> Mapping[str, float]:
    """Measure a start of riseml. With a number, the code of the project changes before it."""
    if turn is not None:
        change_code(project, turn)
    begun = time.time()
    experiment = home.train(project)
    reported_at = home.wait_jobs(experiment, "RUNNING", len(FOUR))
    running = home.engine.last_start([row["Id"] for row in home.containers(experiment)])
    home.kill(experiment)
    return {_RUNNING: running - begun, _KNOWN: reported_at - begun}


def _by_hand(engine: BenchEngine) -> Mapping[str, float]:
    """Measure the limit: the network exists already, and no code is copied."""
    hand = ByHand(engine, "limit")
    network = engine.create_network("limit")
    hand.start({"warm": "exec sleep 600"}, network)
    return _timed(hand, network, None)


def _same_work(engine: BenchEngine, archive: bytes) -> Mapping[str, float]:
    """Measure riseml's work done by hand: create a network, and copy the code into every container."""
    hand = ByHand(engine, "same")
    hand.start({"warm": "exec sleep 600"}, "bridge")
    return _timed(hand, None, archive)


def _timed(hand: ByHand, network: str | None, archive: bytes | None) -> Mapping[str, float]:
    list(hand.pool.map(lambda _: hand.engine.api.ping(), range(32)))  # opens the connection of every thread
    begun = time.time()
    started = hand.start(FOUR, network or hand.engine.create_network(hand.label), archive)
    reported_at = time.time()
    running = hand.engine.last_start(list(started.values()))
    hand.remove()
    return {_RUNNING: running - begun, _KNOWN: reported_at - begun}


def _compose(engine: BenchEngine, compose: Compose) -> Mapping[str, float]:
    begun = time.time()
    compose.run("up", "-d")
    reported_at = time.time()
    running = engine.last_start(engine.find(compose.label))
    compose.remove()
    return {_RUNNING: running - begun, _KNOWN: reported_at - begun}


def _torchx(engine: BenchEngine, torchx: TorchX) -> Mapping[str, float]:
    """Measure TorchX, which does not report that all containers run: only the engine's times count."""
    begun = time.time()
    with torchx.spawn(FOUR):
        running = engine.last_start(torchx.wait_running(len(FOUR)))
    torchx.remove()
    return {_RUNNING: running - begun}


def _own_start(context: BenchContext, home: Home) -> list[Measure]:
    """Measure the start of a command that does nothing."""
    home.run("--help")
    values = [home.run("--help").seconds for _ in range(context.rounds(10, 2))]
    return [Measure("riseml --help", tuple(values))]


def _bars(report: Report, results: Mapping[str, Mapping[str, list[float]]]) -> list[Bar]:
    running = {name: kinds[_RUNNING] for name, kinds in results.items()}
    own = report.groups[_BEGUN][0].median
    riseml_time = Measure(RISEML, tuple(results[RISEML][_KNOWN])).median
    unchanged = Measure(THERE, tuple(running[THERE])).median
    containers = Measure(HAND, tuple(running[HAND])).median
    limit = Measure(HAND, tuple(results[HAND][_KNOWN])).median
    same = Measure(SAME, tuple(results[SAME][_KNOWN])).median
    allowed = _LIMIT * limit + own
    terms = f"1.5 x {format_value(limit, 's')} + {format_value(own, 's')}"
    figure = f"{format_value(riseml_time, 's')} of {format_value(allowed, 's')} ({terms})"
    cause = (
        "the same work by hand, with its own network and the code in every container, takes"
        f" {format_value(same, 's')}; the rest is sync, submit, and three passes of the loop, each saved before it acts"
    )
    peer_times = {name: Measure(name, tuple(running[name])).median for name in (COMPOSE, TORCHX) if name in running}
    return [
        Bar(
            "4 jobs RUNNING: at most 1.5 x the raw SDK, plus the command's own start",
            figure,
            riseml_time <= allowed,
            cause,
        ),
        bar_at_most(
            "4 containers running, code there already: at most 1.25 x the raw SDK, plus the command's own start",
            unchanged,
            _LIMIT_THERE * containers + own,
            "s",
            cause,
        ),
        bar_ahead_of_peers(
            "4 containers running: ahead of both peers",
            Measure(RISEML, tuple(running[RISEML])).median,
            peer_times,
            "s",
            _WHY,
        ),
    ]


def _add_absent(report: Report, context: BenchContext) -> None:
    if not peers.compose_version():
        report.notes.append(f"{COMPOSE}: not measured, not installed here")
    if context.bench_python is None:
        report.notes.append(f"{TORCHX}: not measured, not installed here")
    report.notes.append("the peers mount the project and copy nothing; riseml copies changed code into every container")
