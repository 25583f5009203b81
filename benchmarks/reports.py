"""Reports: one job prints 10,000 reports a second, another one as many plain lines; `riseml train` follows each. The
reader of event files takes 100 scalars a second from a file that grows.
"""

from __future__ import annotations

import os
import resource
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from benchmarks.common import Bar, BenchContext, Measure, Report, RunOnce, bar_at_most, interleave, median
from benchmarks.engine import BASE
from benchmarks.gang import make_project
from benchmarks.home import Home, read_cpu_seconds
from riseml.job_programs import read_program
from tests.support.event_files import make_event

_SECONDS = 20
_RATE = 10_000
_COST = "processor time of server and command for 1,000"
_SERVER = "processor time of the server alone for 1,000"
_ALL = "all of them came"
_MOST = 103.0  # percent
_SCALARS = 100  # a second
_MOST_OF_PROCESSOR = 1.0  # percent
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
    seconds = 6 * context.rounds(_SECONDS, 3)
    used, came = _read_event_files(seconds)
    report.bars += [
        bar_at_most(
            f"event files with {_SCALARS} scalars a second: share of a processor", used, _MOST_OF_PROCESSOR, "%"
        ),
        Bar("each scalar came once", f"{came:,} of {seconds * _SCALARS:,}", came == seconds * _SCALARS),
    ]
    return report


def _read_event_files(seconds: int) -> tuple[float, int]:
    """Write scalars into a file beside the reader of event files. Return which part of a processor it used, in
    percent, and how many scalars it reported. Its start counts.
    """
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder, "reader.py")
        program.write_text(read_program("event_reader"))
        with subprocess.Popen(
            [sys.executable, "-IS", str(program), "input", "1", "0.0", "tensorboard"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "OUTPUT_DIR": folder},
        ) as process:
            began = time.monotonic()
            with open(Path(folder, "tfevents"), "wb", 0) as file:
                for step in range(seconds * _SCALARS):
                    file.write(make_event(step, loss=1 / (step + 1)))
                    select.select([], [], [], max(0.0, began + step / _SCALARS - time.monotonic()))
            out, _ = process.communicate()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return 100 * used / seconds, out.count(b"riseml.report")


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
