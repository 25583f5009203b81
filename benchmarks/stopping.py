"""Early stopping: from a search's decision to stop a trial to the placement of an experiment that waits for its cores.

Each trial holds all cores of the host. Both times come from the server's log.
"""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

from benchmarks.common import BenchContext, Measure, Report, bar_of_time, print_progress
from benchmarks.engine import BASE, poll_until
from benchmarks.gang import make_project
from benchmarks.home import Home

_BEST = 1000  # score of the first trial; every later trial does worse and is stopped
_MOST = 1.0  # seconds
_WAIT = 'until [ -e "$OUTPUT_DIR/go" ]; do sleep 0.02; done'
_REPORT = """printf 'riseml.report {"step": 1, "score": %s}\\n' {{x}}"""
_ENDS = {
    "ends at SIGTERM": "exec sleep 600",
    "ignores SIGTERM": "trap '' TERM; while :; do sleep 0.1; done",
}


def run(context: BenchContext) -> Report:
    report = Report()
    rounds = context.rounds(8, 2)
    for executor in ("process", "docker"):
        with Home(context, executor, RISEML_EXECUTOR=executor, RISEML_LOG_FORMAT="json") as home:
            home.run("status")  # starts the server
            for name, end in _ENDS.items():
                title = f"{executor}, {name}"
                times = _stop_trials(context, home, end, rounds)
                report.add("from the decision to the next placement", Measure(title, times, "ms"))
                report.bars.append(bar_of_time(f"resources of a stopped trial: {title}", max(times), _MOST, "s"))
    return report


def _stop_trials(context: BenchContext, home: Home, end: str, rounds: int) -> tuple[float, ...]:
    """Return the seconds that each stop took."""
    cores = sum(host["cpus"] for host in home.get("/pool")["hosts"])
    whole = {"image": BASE, "resources": {"cpus": cores, "mem": "64MiB"}}
    scores = [_BEST, *range(rounds, 0, -1)]
    search = {"method": "grid", "metric": "score", "goal": "maximize", "stop": {"method": "asha", "factor": 2}}
    line = f"{_WAIT}; {_REPORT}; [ {{{{x}}}} != {_BEST} ] || exit 0; {end}"
    trials = make_project(context, {**whole, "run": line, "parameters": {"x": scores}, "search": search}, "trials")
    waiting = make_project(context, {**whole, "run": "true"}, "waiting")
    identity = home.train(trials)
    _find_running(home, f"{identity}.1").touch()
    times = []
    for number in range(2, rounds + 2):
        trial = f"{identity}.{number}"
        go = _find_running(home, trial)
        other = home.train(waiting)
        _wait_queued(home, other)
        go.touch()
        home.wait_closed(other)
        times.append(_read_moment(home, f"{other} placed:") - _read_moment(home, f"{trial} stopped early:"))
        print_progress(f"  {trial}: {times[-1]:.3f} s")
    home.wait_closed(identity)
    return tuple(times)


def _wait_queued(home: Home, experiment: str) -> None:
    """Wait until the experiment is the next one to be placed."""
    poll_until(
        f"{experiment} waits for a place", lambda: home.get(f"/experiments/{experiment}")["reason"] == "NEXT", 90
    )


def _find_running(home: Home, trial: str) -> Path:
    """Wait until the trial runs, and return the path of the file that it waits for."""

    def look() -> Path | None:
        members = home.get(f"/experiments/{trial.partition('.')[0]}")["experiments"]
        runs = any((member["id"], member["state"]) == (trial, "RUNNING") for member in members)
        return Path(home.get(f"/experiments/{trial}")["output"], "go") if runs else None

    return poll_until(f"{trial} runs", look, 90)


def _read_moment(home: Home, beginning: str) -> float:
    """Return the time of the server's first log line with this beginning, in seconds since 1970."""
    for line in (home.folder / "server.log").read_text(encoding="utf-8").splitlines():
        entry: dict[str, Any] = json.loads(line)
        if entry["message"].startswith(beginning):
            return datetime.fromisoformat(entry["time"]).timestamp()
    raise RuntimeError(f"the server's log has no line that begins with {beginning!r}")
