"""Servers that are killed while a search makes and stops trials, and stores their results."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from riseml.base.faultpoints import Point
from tests.chaos.ledger import Tally
from tests.chaos.patient import PatientRig
from tests.chaos.scenes import Scene
from tests.chaos.sites import Fault, Site
from tests.support.rig import BASE

SEARCH_POINTS = {
    Point.ASKING: "a trial is about to be made",
    Point.ASKED: "a trial stored, not announced",
    Point.TELLING: "a trial ended, not yet noted",
    Point.TOLD: "a result noted, no trial since",
    Point.STOPPING: "a trial to stop, not saved",
    Point.STOPPED: "a stop saved, its job runs",
}
TRIALS = 6
_RUN = """
echo {{x}} >>"$OUTPUT_DIR/starts"
for step in 1 2; do
echo "riseml.report {\\"step\\": $step, \\"score\\": {{x}}}"; sleep 0.3
points=$(cat "$OUTPUT_DIR"/../*/starts | sort -g)
[ "$(echo "$points" | wc -l)" = 1 ] || [ "$(echo "$points" | head -n 1)" != {{x}} ] || exec sleep 600
done
"""
"""The worst trial so far, which ASHA stops, waits for that where it sees the outputs of the others: as a process."""


def make_search_scene() -> Scene:
    """Return a set of trials one after the other; each reports its parameter, and ASHA stops half of them."""
    train = {
        "image": BASE,
        "run": _RUN,
        "resources": {"cpus": 0.1, "mem": "64MiB"},
        "parameters": {"x": {"uniform": {"min": 0, "max": 1}}},
        "search": {
            "method": "tpe",
            "trials": TRIALS,
            "metric": "score",
            "goal": "maximize",
            "seed": 7,
            "stop": {"method": "asha", "factor": 2},
        },
    }
    return Scene(json.dumps({"project": "toaster", "train": train}))


def run_search_with_crashes(site: Site, orders: Iterable[str]) -> Tally:
    """Run a search while one server after the other dies at the next of the orders."""
    with site.rig(orders) as rig:
        rig.run_scene(make_search_scene())
        return judge_search(rig)


def judge_search(rig: PatientRig) -> Tally:
    """Compare a search that has ended with the truth: every trial once, each with the reports of its own point."""
    found = rig.retry_until_answered(lambda: rig.experiment("1"))
    left = rig.list_left()
    notes = [f"left on the host: {', '.join(left)}"] if left else []
    members, search = found["experiments"], found["search"]
    points = Counter(member["parameters"]["x"] for member in members)
    lost = max(0, TRIALS - len(members))
    repeated = sum(times - 1 for times in points.values()) + max(0, len(members) - TRIALS)
    told = search["complete"] + search["stopped"] + search["failed"]
    if (search["end"], told, search["failed"]) != ("COMPLETED", TRIALS, 0):
        notes.append(f"the search says {search['message']}, end {search['end']}")
    if search["best"]["value"] != max(map(float, points)):
        notes.append(f"the best is {search['best']}, of {sorted(points)}")
    for member in members:
        notes += _check_member(member)
    where = f"{rig.home}: "
    right = not notes and found["state"] == "FINISHED"
    return Tally(rig.deaths, 1, int(right), len(left), lost, repeated, tuple(where + note for note in notes))


def _check_member(member: dict[str, Any]) -> list[str]:
    starts = (Path(member["output"]) / "starts").read_text().split()
    wanted = [member["parameters"]["x"]]
    notes = [] if starts == wanted else [f"{member['id']} with {wanted} ran with {starts}"]
    if member["reason"] not in ("COMPLETED", "STOPPED_EARLY"):
        notes.append(f"{member['id']} ended with {member['reason']}: {member['message']}")
    return notes


def search_faults() -> list[Fault]:
    """Return a fault for each point of a search, at each of its visits."""
    return [Fault(f"kill -9 at {point.value}: {text}", _crash_at(point)) for point, text in SEARCH_POINTS.items()]


def _crash_at(point: Point) -> Callable[[Site], Tally]:
    """Let every server die when it reaches the point for the first time, or, at points before a step, the second."""
    before = point in (Point.ASKING, Point.TELLING, Point.STOPPING)

    def inflict(site: Site) -> Tally:
        orders = [f"{point.value}:1", *itertools.repeat(f"{point.value}:{2 if before else 1}", TRIALS)]
        return run_search_with_crashes(site, orders)

    return inflict
