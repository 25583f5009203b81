"""Scale: the server's processor time, memory and latency with many containers and experiments, and their growth."""

from __future__ import annotations

import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from benchmarks import growth
from benchmarks.common import (
    Bar,
    BenchContext,
    Measure,
    Report,
    bar_at_most,
    bar_of_time,
    format_value,
    print_progress,
)
from benchmarks.engine import BASE
from benchmarks.gang import make_project
from benchmarks.home import Home, read_cpu_seconds, read_memory

_CONTAINERS = (0, 10, 100, 200)
_EACH = 10  # containers of an experiment
_PAST = (1000, 10_000)
_WINDOW = 5.0  # seconds in which the server's processor time is counted
_ASKED = 30  # requests
_SCREEN = "/experiments?all=true&limit=50"  # the newest experiments
_SCREEN_TIME = 0.150  # seconds
_PAGE = "/experiments?all=true&limit=100&sort=-ended&state=FINISHED&text=lr%3D0.1"  # filtered and sorted
_PAGE_TIME = 0.050  # seconds
_RESULTS = "riseml results --sort -accuracy --where accuracy>0.1"
_LOAD_WORLD = 1.0  # seconds, of 10,000 active experiments
_PATIENCE = 20  # submits of one experiment, a second apart
_IDLE_CPU = 1.0  # percent of a core
_IDLE_MEMORY = 80.0  # MiB
_DECIDE = 0.100  # seconds, over 1,000 experiments
_SLACK = 0.15  # error of a measured exponent
_TRAIN = {
    "framework": "tensorflow",
    "image": BASE,
    "tensorflow": {"version": "2.21.0", "distributed": {"worker": _EACH - 1, "ps": 1}},
    "resources": {"cpus": 0.001, "mem": "16MiB"},
    "run": "exec sleep 3600",
}
_REPORT = """printf 'riseml.report {"step": %s, "accuracy": 0.5, "loss": 0.25}\\n' 1 2 3"""
_ONE = {"image": BASE, "resources": {"cpus": 0.001, "mem": "16MiB"}, "run": _REPORT, "parameters": {"lr": 0.1}}
_SHOWN = 100  # rows of `riseml results`
_RESULTS_TIME = 0.300  # seconds, of `riseml results` over all of them


def run(context: BenchContext) -> Report:
    report = Report()
    _running(context, report)
    _past(context, report)
    _growth(context, report)
    return report


def _running(context: BenchContext, report: Report) -> None:
    project = make_project(context, _TRAIN)
    levels = _CONTAINERS[:2] if context.quick else _CONTAINERS
    with Home(context, "running") as home:
        home.run("status")
        experiments: list[str] = []
        refused = 0
        for level in levels:
            while len(experiments) < level // _EACH:
                refused += _start(home, project, experiments)
            print_progress(f"  {level} containers run")
            _measure_server(report, home, f"{level} containers", "/experiments")
        idle = report.groups["the server's processor"][0].median
        used = report.groups["the server's memory"][0].median
        # The server alone removes them: Engine 20.10 never frees a network whose containers two clients remove at once.
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(home.kill, experiments))
    report.notes.append(f"{refused} submits were refused because no host answered while containers started")
    report.bars += [
        bar_at_most("idle: processor", idle, _IDLE_CPU, "% of a core"),
        bar_at_most("idle: memory", used, _IDLE_MEMORY, "MiB"),
    ]


def _start(home: Home, project: Path, experiments: list[str]) -> int:
    """Start one more experiment, and return how many submits the server refused before."""
    for refused in range(_PATIENCE):
        command = home.run("train", "-d", "--json", cwd=project, codes=(0, 5))
        if command.code == 0:
            experiments.append(json.loads(command.out.splitlines()[0])["id"])
            home.wait_jobs(experiments[-1], "RUNNING", _EACH)
            return refused
        threading.Event().wait(1)
    raise RuntimeError(f"riseml train was refused {_PATIENCE} times: no host answers")


def _measure_server(report: Report, home: Home, name: str, path: str) -> None:
    """Measure the server's processor time and memory while nothing changes, then the latency of GET `path`."""
    pid = home.server()["pid"]
    threading.Event().wait(1)
    before = read_cpu_seconds(pid)
    begun = time.perf_counter()
    threading.Event().wait(_WINDOW)
    share = 100 * (read_cpu_seconds(pid) - before) / (time.perf_counter() - begun)
    report.add("the server's processor", Measure(name, (share,), "% of a core"))
    report.add("the server's memory", Measure(name, (read_memory(pid),), "MiB"))
    report.add(f"latency of GET {path}", Measure(name, _ask(home, path, _ASKED), "ms"))


def _past(context: BenchContext, report: Report) -> None:
    """Measure a server whose store has many finished experiments: copies of one that ran."""
    project = make_project(context, _ONE, "one")
    with Home(context, "past") as home:
        home.wait_closed(home.train(project))
        count = 1
        for size in _PAST[:1] if context.quick else _PAST:
            home.stop()
            growth.copy_first_experiment(home.folder / "riseml.db", size - count)
            count = size
            begun = time.perf_counter()
            home.run("status")
            name = f"{size:,} finished"
            report.add("the first command, which starts the server", Measure(name, (time.perf_counter() - begun,)))
            print_progress(f"  {name}")
            _measure_server(report, home, name, "/experiments")
            _ask_all(report, home, count, project)
        screen = report.groups[f"latency of GET {_SCREEN}"][-1]
        report.bars.append(bar_of_time(f"a screen of {count:,} ended experiments", screen.median, _SCREEN_TIME, "ms"))
        page = report.groups[f"latency of GET {_PAGE}"][-1]
        report.bars.append(bar_of_time(f"a filtered page of {count:,} experiments", page.median, _PAGE_TIME, "ms"))
        results = report.groups[f"{_RESULTS}, the whole command"][-1]
        report.bars.append(bar_of_time(f"riseml results of {count:,} experiments", results.median, _RESULTS_TIME, "ms"))


def _ask_all(report: Report, home: Home, count: int, project: Path) -> None:
    name = f"{count:,} finished"
    for path, times in (("/experiments?all=true", 3), (_SCREEN, 15), (_PAGE, 15), ("/experiments/1", 15)):
        report.add(f"latency of GET {path}", Measure(name, _ask(home, path, times), "ms"))
    statuses = tuple(home.run("status", "-a").seconds for _ in range(3))
    report.add("riseml status -a, the whole command", Measure(name, statuses))
    runs = [home.run(*_RESULTS.split()[1:], cwd=project) for _ in range(5)]
    if any(f"... and {count - _SHOWN:,} more" not in run.out for run in runs):
        raise AssertionError(f"`{_RESULTS}` does not show {count:,} experiments")
    results = tuple(run.seconds for run in runs)
    report.add(f"{_RESULTS}, the whole command", Measure(name, results))


def _ask(home: Home, path: str, times: int) -> tuple[float, ...]:
    values = []
    with home.client() as client:
        for _ in range(times):
            begun = time.perf_counter()
            client.get(path).raise_for_status()
            values.append(time.perf_counter() - begun)
    return tuple(values)


def _growth(context: BenchContext, report: Report) -> None:
    growths = growth.measure(context.folder, growth.SIZES[:2] if context.quick else growth.SIZES)
    for name, times in growths.items():
        report.add(name, *(Measure(f"{size:,} experiments", (value,), "ms") for size, value in times.items()))
        power = growth.compute_exponent(times)
        allowed = growth.compute_allowed_exponent(times)
        largest = max(times)
        figure = f"n^{power:.2f} (n log n: n^{allowed:.2f}), {format_value(times[largest], 'ms')} at {largest:,}"
        report.bars.append(Bar(f"growth of `{name}`", figure, power <= allowed + _SLACK))
    loaded = growths["load_world, by a server that starts"]
    if 10_000 in loaded:
        report.bars.append(bar_of_time("load_world of 10,000 active experiments", loaded[10_000], _LOAD_WORLD, "s"))
    if 1000 in growths["decide, all running"]:
        value = growths["decide, all running"][1000]
        report.bars.append(bar_of_time("one decide over 1,000 experiments and 1,000 hosts", value, _DECIDE, "ms"))
