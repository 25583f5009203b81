"""`kill -9` of the server around reports: none is lost, counted twice or out of order."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

from riseml.base.faultpoints import Point
from tests.chaos.crashes import cut_log_tail
from tests.chaos.ledger import Tally, judge, split_lines
from tests.chaos.patient import PatientRig
from tests.chaos.scenes import Scene, count_lines, write_solo, write_trio
from tests.chaos.sites import Fault, Site
from tests.support.waiting import DEADLINE

COUNT = 240  # reports of a job; they take longer than the server waits between two saves of its counts
LONG_COUNT = 1_000  # of jobs that still report when three servers in turn start late
FLOOD = 200_000  # reports
_REPORT = 'printf \'riseml.report {"step": %d, "%s": %d}\\n\' $i "$RISEML_JOB" $i; '
_JOBS = ("master", "worker.1")
AROUND_COUNTS = (Point.LOG_READ, Point.COUNTED, Point.COUNTS_SAVED)


def report_faults() -> list[Fault]:
    """Return a fault for each kind."""
    return [
        Fault("kill -9 before and after reports are counted", kill_around_counts),
        Fault("kill -9 with a report half written", tear_report),
        Fault(f"{FLOOD:,} reports, kill -9 in them", _crash_in_many_reports),
    ]


def kill_around_counts(site: Site) -> Tally:
    """Let each server die at its first step: reports read and not written, counted and not saved, saved."""
    orders = [f"{point.value}:1" for point in AROUND_COUNTS]
    scene = make_reporting_scene(LONG_COUNT)
    return _run(site, scene, itertools.chain(orders, [f"{Point.LOG_READ.value}:3"], orders), _pass)


def tear_report(site: Site) -> Tally:
    """Cut the log file in the middle of a record each time the server dies; its counts may hold that record.

    Not once the log of a job is complete: then its host has nothing to read again.
    """

    def cut(rig: PatientRig) -> None:
        logs = rig.home / "logs"
        rig.on_death = lambda: None if _is_complete(logs) else cut_log_tail(logs / "1.log")

    orders = [f"{point.value}:1" for point in (Point.COUNTED, Point.COUNTS_SAVED, Point.LOG_READ, Point.COUNTED)]
    return _run(site, make_reporting_scene(), orders, cut)


def _is_complete(logs: Path) -> bool:
    """Return True when the log of a job of the gang is complete."""
    path = logs / "1.ends"
    return path.exists() and any(job != "build" for job, _, _ in json.loads(path.read_text()))


def make_reporting_scene(count: int = COUNT) -> Scene:
    """Return an experiment whose master and worker report the number of each line that they print."""
    script = {job: count_lines(count).replace("echo line", f"{_REPORT}echo line") for job in _JOBS}
    return Scene(write_trio(script, finish_grace=DEADLINE), lines=dict.fromkeys(_JOBS, count))


def _crash_in_many_reports(site: Site) -> Tally:
    run = f"python3 -c 'import riseml\nfor i in range({FLOOD}): riseml.report(step=i, master=i)\nprint(\"line 1 0\")'"
    orders = [f"{Point.LOG_READ.value}:3", f"{Point.COUNTED.value}:1", f"{Point.LOG_READ.value}:1"]
    scene = Scene(write_solo(run), lines={"train": 1})
    return _run(site, scene, orders, _pass, {"master": FLOOD})


def _pass(rig: PatientRig) -> None:
    """Prepare nothing."""


def _run(
    site: Site,
    scene: Scene,
    orders: Iterable[str],
    prepare: Callable[[PatientRig], None],
    reports: dict[str, int] | None = None,
) -> Tally:
    """Run a scene while servers die at these orders, and compare what was counted with what was reported."""
    with site.rig(orders) as rig:
        prepare(rig)
        rig.run_scene(scene)
        tally = rig.retry_until_answered(lambda: judge(rig, scene, rig.deaths))
        found = rig.retry_until_answered(lambda: _judge_reports(rig, reports or _count_reports(scene)))
        return replace(tally + found, injected=rig.deaths)


def _count_reports(scene: Scene) -> dict[str, int]:
    """Return how many reports come from each job whose lines are counted."""
    return {job: count for job, count in scene.lines.items() if count is not None}


def _judge_reports(rig: PatientRig, expected: dict[str, int]) -> Tally:
    """Return how many reports of each metric were lost or came twice, in the log and in its count."""
    (metrics,) = rig.get("/v1/experiments/1/metrics")["experiments"]
    counted = {one["name"]: one for one in metrics["metrics"]}
    steps = _read_steps(rig)
    tally = Tally()
    for name, count in expected.items():
        seen = steps.get(name, [])
        lost, repeated = len(set(range(count)) - set(seen)), len(seen) - len(set(seen))
        history = rig.get("/v1/experiments/1/metrics/history", metric=name)["buckets"]
        known = counted.get(name, {})
        sums = (known.get("count"), known.get("last_step"), known.get("max"), sum(one["count"] for one in history))
        notes = []
        if lost or repeated or seen != sorted(seen):
            notes.append(
                f"{rig.home}: {name}: {lost} reports lost, {repeated} repeated, in order: {seen == sorted(seen)}"
            )
        if sums != (count, count - 1, count - 1, count):
            notes.append(f"{rig.home}: {name} was counted as {sums}, not {count}")
        tally += Tally(lost=lost, repeated=repeated, notes=tuple(notes))
    return tally


def _read_steps(rig: PatientRig) -> dict[str, list[int]]:
    """Return the steps of each metric in the order of the log."""
    steps: dict[str, list[int]] = {}
    path, query = "/v1/experiments/1/logs", {"reports": "true", "follow": "false"}
    with rig.client() as client, client.stream("GET", path, params=query) as answer:
        for line in split_lines(answer.iter_bytes()):
            entry = json.loads(line)
            for name in entry["values"] if entry["type"] == "report" else ():
                steps.setdefault(name, []).append(entry["step"])
    return steps
