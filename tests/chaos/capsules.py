"""Servers that die while they write capsules."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from riseml.base.faultpoints import Point
from tests.chaos.ledger import Tally, judge
from tests.chaos.patient import PatientRig
from tests.chaos.scenes import make_good_scene
from tests.chaos.sites import Fault, Site

CAPSULE_POINTS = {
    Point.CAPSULE_WRITTEN: "a capsule not in place",
    Point.CAPSULE_KEPT: "a capsule not in the output",
}


def capsule_faults() -> list[Fault]:
    """Return a fault for each point."""
    return [Fault(f"kill -9 at {point.value}: {text}", _crash_at(point)) for point, text in CAPSULE_POINTS.items()]


def run_with_crashes_at(site: Site, *points: Point) -> Tally:
    """Run one experiment whose servers die at each point: when the capsule begins, and when it is completed.

    Every server writes the beginning again that the one before it has not finished; the last ones find it finished.
    """
    begin = [f"{point.value}:1" for point in points]
    end = [f"{points[0].value}:2", *begin[1:]]
    scene = make_good_scene()
    with site.rig([*begin, *end]) as rig:
        rig.run_scene(scene)
        tally = rig.retry_until_answered(lambda: judge(rig, scene, rig.deaths))
        notes = rig.retry_until_answered(lambda: _check_capsule(rig))
        return replace(tally, notes=(*tally.notes, *notes))


def _check_capsule(rig: PatientRig) -> tuple[str, ...]:
    """Return what is wrong with the capsule in the output, and with that of the server."""
    folder = Path(rig.experiment("1")["output"]) / ".riseml"
    left = sorted(path.name for path in folder.iterdir() if path.name not in ("capsule.json", "project.tar"))
    notes = [f"{rig.home}: {', '.join(left)} beside the capsule"] if left else []
    written: dict[str, Any] = json.loads((folder / "capsule.json").read_text())
    if (written["complete"], written["state"]) != (True, "FINISHED"):
        notes.append(f"{rig.home}: the capsule is not complete")
    if written != rig.get("/v1/experiments/1/capsule")["capsule"]:
        notes.append(f"{rig.home}: the capsule in the output is not that of the server")
    return tuple(notes)


def _crash_at(point: Point) -> Callable[[Site], Tally]:
    return lambda site: run_with_crashes_at(site, point)
