"""The end of a gang: from the master's exit to the removal of the ps container, compared with a kill by hand."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks import peers
from benchmarks.common import (
    BenchContext,
    Measure,
    Report,
    RunOnce,
    bar_of_time,
    interleave,
    median,
    percentile,
    print_progress,
    select_measures,
)
from benchmarks.engine import BenchEngine, EngineEvents
from benchmarks.gang import ByHand, Compose, make_project, make_train_section
from benchmarks.home import Home

# The bench creates the file `go` when all jobs run; then the master ends. A ps never ends by itself.
_MASTER = "while [ ! -e {folder}/go ]; do sleep 0.05; done"
_PS = "exec sleep 600"
_OVERHEAD = 0.100
_WORST = 0.250
_DEAD = "the ps has ended"
_GONE = "the ps container is removed"
HAND = "docker kill by hand"
RISEML = "riseml"
COMPOSE = "docker-compose"
_CAUSE = (
    "the server flushes every state to disk before its next step, and reads a log to its end before it removes the"
    " container, which the engine does only after it has disconnected the network"
)


@dataclass(frozen=True, slots=True)
class _Scene:
    """What the contenders share."""

    engine: BenchEngine
    events: EngineEvents
    folder: Path

    def time(self, master: str, ps: str, go: Path, react: Callable[[], None]) -> Mapping[str, float]:
        """End the master, call `react` after its exit, and return the seconds from this exit to the end of the ps and
        to the removal of its container, by the engine's clock.
        """
        go.touch()
        died = self.events.wait(master, "die")
        react()
        dead = self.events.wait(ps, "die")
        removed = self.events.wait(ps, "destroy")
        return {_DEAD: dead - died, _GONE: removed - died}


def run(context: BenchContext) -> Report:
    report = Report()
    engine = BenchEngine(context.engine)
    events = EngineEvents(engine)
    with Home(context) as home:
        scene = _Scene(engine, events, context.folder)
        contender = _Riseml(home, scene, make_project(context, _train()))
        hand = _Hand(scene, context.folder / "hand")
        results = _measure(context, contender.once, hand.once)
        hand.close()
    if peers.compose_version():
        results[COMPOSE] = _measure_compose(context, scene)
    else:
        report.notes.append(f"{COMPOSE}: not measured, not installed here")
    report.notes.append("TorchX: not measured, it never ends the other jobs: a ps runs until a user removes it")
    for name in (_DEAD, _GONE):
        report.add(f"{name}, from the master's exit on", *select_measures(results, name))
        overhead = [value - median(results[HAND][name]) for value in results[RISEML][name]]
        report.add(f"{name}: over `{HAND}`", Measure("overhead", tuple(overhead), "ms"))
        runs = f"over {len(overhead)} runs"
        report.bars += [
            bar_of_time(f"{name}: overhead at the median, {runs}", median(overhead), _OVERHEAD, "ms", _CAUSE),
            bar_of_time(f"{name}: overhead at the 99th percentile", percentile(overhead, 0.99), _WORST, "ms", _CAUSE),
        ]
    events.close()
    return report


def _measure(context: BenchContext, by_riseml: RunOnce, by_hand: RunOnce) -> dict[str, dict[str, list[float]]]:
    """Run riseml 100 times, and the contender by hand in every fifth turn, because its times vary less."""
    results: dict[str, dict[str, list[float]]] = {HAND: {}, RISEML: {}}
    by_riseml(-1)
    by_hand(-1)
    for turn in range(context.rounds(100, 3)):
        if turn % 10 == 0:
            print_progress(f"  run {turn + 1}")
        for name, once in ((RISEML, by_riseml), (HAND, by_hand)):
            if name == RISEML or turn % 5 == 0:
                for measure, value in once(turn).items():
                    results[name].setdefault(measure, []).append(value)
    return results


def _train() -> dict[str, object]:
    return make_train_section({"master": _MASTER.format(folder="/output"), "ps-1": _PS})


@dataclass(frozen=True, slots=True)
class _Riseml:
    home: Home
    scene: _Scene
    project: Path

    def once(self, turn: int) -> Mapping[str, float]:
        begin = self.home.train if turn < 0 else self.home.submit
        experiment = begin(self.project)
        self.home.wait_jobs(experiment, "RUNNING", 2)
        ids = {row["Labels"]["io.riseml.job"]: row["Id"] for row in self.home.containers(experiment)}
        output = Path(self.home.get(f"/experiments/{experiment}")["output"])
        times = self.scene.time(ids["master"], ids["ps.1"], output / "go", lambda: None)
        self.home.wait_closed(experiment)
        return times


class _Hand:
    """The contender by hand: it waits for the engine's event and kills the ps. It decides and records nothing."""

    def __init__(self, scene: _Scene, folder: Path) -> None:
        self._scene = scene
        self._folder = folder
        self._engine = scene.engine
        self._network = scene.engine.create_network("end")

    def once(self, turn: int) -> Mapping[str, float]:
        self._folder.mkdir()
        hand = ByHand(self._engine, "end-jobs", [f"{self._folder}:/output"])
        ids = hand.start({"master": _MASTER.format(folder="/output"), "ps-1": _PS}, self._network)
        ps = ids["ps-1"]

        def react() -> None:
            self._engine.api.kill(ps, "SIGTERM")
            self._scene.events.wait(ps, "die")
            self._engine.api.remove_container(ps, v=True)

        times = self._scene.time(ids["master"], ps, self._folder / "go", react)
        hand.remove()
        shutil.rmtree(self._folder)
        return times

    def close(self) -> None:
        self._engine.api.remove_network(self._network)


def _measure_compose(context: BenchContext, scene: _Scene) -> dict[str, list[float]]:
    jobs = {"master": _MASTER.format(folder="/code"), "ps-1": _PS}
    compose = Compose(context, jobs)
    results = interleave(context.rounds(4), {COMPOSE: lambda turn: _compose(compose, scene)})
    return results[COMPOSE]


def _compose(compose: Compose, scene: _Scene) -> Mapping[str, float]:
    """Run `up --abort-on-container-exit`, then `down`, which removes the containers."""
    go = compose.folder / "go"
    go.unlink(missing_ok=True)
    process = compose.spawn("up", "--abort-on-container-exit")
    scene.engine.wait_running(compose.label, 2)
    ids = {
        row["Labels"]["com.docker.compose.service"]: row["Id"]
        for row in scene.engine.api.containers(filters={"label": compose.label})
    }

    def react() -> None:
        process.wait()
        compose.run("down")

    return scene.time(ids["master"], ids["ps-1"], go, react)
