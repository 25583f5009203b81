"""Compare this version with another one in the same run: `scripts/bench-against COMMIT`.

Each round runs the same command of both versions, one right after the other; the order alternates. The result is the
median of the ratios of all rounds, so that a slow minute of the machine affects both versions.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from benchmarks import machine
from benchmarks.common import (
    Bar,
    BenchContext,
    Measure,
    Report,
    RunOnce,
    format_bars,
    format_report,
    interleave,
    percentile,
)
from benchmarks.engine import BASE, BenchEngine
from benchmarks.gang import change_code, make_project, make_train_section
from benchmarks.home import COMMAND, Home, write_project

OLD = "the other version"
NEW = "this version"
SLOWER = 1.03
"""The largest allowed ratio of this version's time to the other version's, at the median."""

_WALL = "wall time"
_ENDS = {name: "exit 0" for name in ("master", "worker-1", "worker-2")} | {"ps-1": "exec sleep 600"}
_PIECES = "python3 -u -c \"for number in range(100000): print('line', number)\""  # several writes for each line
_SINGLE = {"image": BASE, "resources": {"cpus": 0.05, "mem": "64MiB"}}


@dataclass(frozen=True, slots=True)
class Pair:
    """One measure, taken of both versions."""

    name: str
    rounds: int
    old: RunOnce
    new: RunOnce

    def compare(self, report: Report) -> None:
        """Measure both versions, and add the values and the bar to the report."""
        results = interleave(self.rounds, {OLD: self.old, NEW: self.new}, skip=1)
        old, new = (tuple(results[name][_WALL]) for name in (OLD, NEW))
        report.add(self.name, Measure(OLD, old), Measure(NEW, new))
        ratios = [after / before for before, after in zip(old, new, strict=True)]
        middle, low, high = (percentile(ratios, share) for share in (0.5, 0.25, 0.75))
        figure = f"{middle:.3f} (middle half {low:.3f} to {high:.3f}, {len(ratios)} rounds)"
        report.bars.append(Bar(f"{self.name}: at most {SLOWER}", figure, middle <= SLOWER))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.against", description=__doc__)
    parser.add_argument("tree", type=Path, help="a clone of the other version, with its .venv")
    parser.add_argument("--quick", action="store_true", help="smoke test: one round of each measure")
    parser.add_argument("measures", nargs="*", help="parts of the names of measures; default: all")
    arguments = parser.parse_args()
    url = os.environ.get("DOCKER_HOST") or "unix:///var/run/docker.sock"
    BenchEngine(url).image_id(BASE)  # raises an error when the image is missing
    machine.compile_bytecode()
    folder = Path(tempfile.mkdtemp(prefix="riseml-bench-"))
    report = Report()
    try:
        context = BenchContext(url, folder, None, arguments.quick)
        with ExitStack() as stack:
            for pair in make_pairs(context, stack, str(arguments.tree.resolve() / ".venv/bin/riseml")):
                if not arguments.measures or any(part in pair.name for part in arguments.measures):
                    pair.compare(report)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        BenchEngine(url).clean_up()
    print("\n".join([*format_report("against", report), "", *format_bars({"against": report})]))
    return 0 if all(bar.passed for bar in report.bars) else 1


def make_pairs(context: BenchContext, stack: ExitStack, other: str) -> Iterator[Pair]:
    """Yield every measure. Closing `stack` stops the servers of the homes."""
    docker = _Homes(context, stack, "docker", other)
    gang = [make_project(context, make_train_section(_ENDS), f"gang-{name}") for name in ("old", "new")]
    lines = write_project(context.folder / "lines", {**_SINGLE, "run": "seq 300000"})
    yield docker.pair("train of 4 jobs to their end", 30, lambda home, turn: _train(home, gang[home.is_new], turn))
    yield docker.pair("train prints 300,000 lines", 9, lambda home, turn: _run("train", home, lines))
    yield docker.pair("logs of 300,000 lines", 9, lambda home, turn: _run("logs", home, lines))
    for words in (["--help"], ["validate"], ["status", "-a"]):
        yield docker.pair(words[0], 40, _command(words, lines))
    yield docker.pair("cold start of the server", 10, _start_cold)
    files = _make_files(context)
    yield docker.pair("sync of 3,000 files, one changed", 25, lambda home, turn: _train(home, files, turn, "-d"))
    yield docker.pair("train of 3,000 files to its end", 15, lambda home, turn: _train(home, files, turn))
    processes = _Homes(context, stack, "process", other, RISEML_EXECUTOR="process")
    yield processes.pair("train of 4 processes", 15, lambda home, turn: _train(home, gang[home.is_new], turn))
    pieces = write_project(context.folder / "pieces", {**_SINGLE, "run": _PIECES})
    yield processes.pair("train prints 100,000 lines in pieces", 9, lambda home, turn: _run("train", home, pieces))
    yield processes.pair("logs of 100,000 lines in pieces", 9, lambda home, turn: _run("logs", home, pieces))


def _run(command: str, home: Home, folder: Path) -> float:
    """Measure a command with a new server: two processes of one version differ by up to 10 % in reading speed."""
    home.stop()
    home.run("status")
    return home.run(command, cwd=folder).seconds


class _VersionHome(Home):
    """A home whose commands are those of one version."""

    is_new = True


class _Homes:
    """One home for each version."""

    def __init__(self, context: BenchContext, stack: ExitStack, name: str, other: str, **variables: str) -> None:
        self.context = context
        self.old = stack.enter_context(_VersionHome(context, f"{name}-old", **variables))
        self.new = stack.enter_context(_VersionHome(context, f"{name}-new", **variables))
        self.old.is_new = False
        self.old.command = other
        self.new.command = COMMAND

    def pair(self, name: str, rounds: int, once: Callable[[_VersionHome, int], float]) -> Pair:
        def measure(home: _VersionHome) -> RunOnce:
            def run(turn: int) -> Mapping[str, float]:
                return {_WALL: once(home, turn)}

            return run

        return Pair(name, self.context.rounds(rounds), measure(self.old), measure(self.new))


def _command(words: list[str], project: Path) -> Callable[[_VersionHome, int], float]:
    return lambda home, turn: home.run(*words, cwd=project).seconds


def _train(home: Home, project: Path, turn: int, *options: str) -> float:
    change_code(project, turn)
    seconds = home.run("train", *options, cwd=project).seconds
    home.wait_closed(str(max(int(row["id"]) for row in home.get("/experiments", all=True)["experiments"])))
    return seconds


def _start_cold(home: Home, turn: int) -> float:
    """Measure the first command: it starts a server and waits for the answer."""
    home.stop()
    return home.run("status").seconds


def _make_files(context: BenchContext) -> Path:
    """Make a project of 3,000 files, 60 MB together, whose job does nothing.

    The job has a core: with 5 % of one, each millisecond of its shell takes 20 ms, and hides what the files take.
    """
    random = os.urandom(20_000).hex()[:20_000]
    files = {f"module_{number}.py": f"# {number}\n{random}" for number in range(3000)}
    return write_project(
        context.folder / "files", {**_SINGLE, "resources": {"cpus": 1, "mem": "64MiB"}, "run": "true"}, files
    )


if __name__ == "__main__":
    sys.exit(main())
