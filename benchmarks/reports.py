"""Reports: one job prints 10,000 reports a second, another one as many plain lines; `riseml train` follows each."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from benchmarks.common import Bar, BenchContext, Measure, Report, RunOnce, bar_at_most, interleave, median
from benchmarks.engine import BASE
from benchmarks.gang import make_project
from benchmarks.home import Home, read_cpu_seconds

_SECONDS = 20
_RATE = 10_000
_COST = "processor time of server and command for 1,000"
_SERVER = "processor time of the server alone for 1,000"
_ALL = "all of them came"
_MOST = 103.0  # percent
LINES = "lines"
REPORTS = "reports"
_FORMATS = {LINES: "step %d of the run: loss %.6f", REPORTS: 'riseml.report {"step": %d, "loss": %.6f}'}
_PROGRAM = """import sys, time

text, count, rate = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
begun = time.monotonic()
for number in range(count):
    sys.stdout.write(text % (number, 1 / (number + 1)) + "\\n")
    if number % 100 == 99:
        sys.stdout.flush()
        time.sleep(max(0.0, begun + number / rate - time.monotonic()))
"""


def run(context: BenchContext) -> Report:
    report = Report()
    count = context.rounds(_SECONDS, 3) * _RATE
    with Home(context) as home:
        contenders: dict[str, RunOnce] = {kind: partial(_train, context, home, kind, count) for kind in _FORMATS}
        results = interleave(context.rounds(5), contenders)
    for measure in (_COST, _SERVER):
        report.add(measure, *(Measure(kind, tuple(results[kind][measure]), "s") for kind in results))
    share = 100 * median(results[REPORTS][_COST]) / median(results[LINES][_COST])
    whole = [run for kind in results for run in results[kind][_ALL]]
    report.bars = [
        bar_at_most(f"{_RATE:,} reports a second: cost beside that of lines", share, _MOST, "%"),
        Bar(
            "no line and no report lost or doubled",
            f"{sum(whole):.0f} of {len(whole)} runs have {count:,}",
            all(whole),
        ),
    ]
    return report


def _train(context: BenchContext, home: Home, kind: str, count: int, turn: int) -> Mapping[str, float]:
    """Run `train`, and return the processor seconds for 1,000 lines or reports, and 1.0 if all arrived."""
    run = f"PYTHONUNBUFFERED= python3 flood.py '{_FORMATS[kind]}' {count} {_RATE}"
    project = make_project(context, {"image": BASE, "resources": {"cpus": 0.2, "mem": "64MiB"}, "run": run}, kind)
    (project / "flood.py").write_text(_PROGRAM)
    home.run("status")  # starts the server
    server = home.server()["pid"]
    before = read_cpu_seconds(server)
    command, lines = _follow(home, project)
    server_seconds = read_cpu_seconds(server) - before
    whole = _count_reports(home) == count if kind == REPORTS else lines == count
    return {
        _COST: 1000 * (server_seconds + command) / count,
        _SERVER: 1000 * server_seconds / count,
        _ALL: float(whole),
    }


def _follow(home: Home, project: Path) -> tuple[float, int]:
    """Run `train` to its end, and return its processor seconds and how many lines of the job it printed."""
    process = home.spawn("train", cwd=project)
    assert process.stdout is not None, "it has a pipe"
    output = b"".join(iter(partial(os.read, process.stdout.fileno(), 1 << 20), b""))
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    process.stdout.close()
    return usage.ru_utime + usage.ru_stime, output.count(b"of the run: ")


def _count_reports(home: Home) -> int:
    newest = home.get("/experiments", all="true", limit=1)["experiments"][-1]["id"]
    (experiment,) = home.get(f"/experiments/{newest}/metrics")["experiments"]
    return int(experiment["metrics"][0]["count"])
