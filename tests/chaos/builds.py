"""Environments that are being made while no server runs."""

from __future__ import annotations

import uuid

from tests.chaos.ledger import Tally, judge
from tests.chaos.patient import PatientRig
from tests.chaos.scenes import Scene, count_lines, write_solo
from tests.chaos.sites import Fault, Site

_LINES = 40  # that the install step prints, ten a second


def build_faults() -> list[Fault]:
    """Return the faults of builds."""
    return [
        Fault("build without a server, followed by the next", follow_left_build),
        Fault("build without a server, experiment killed", kill_left_build),
    ]


def follow_left_build(site: Site) -> Tally:
    """Kill a server during an install step, let the next one stop during the same step, and a third one follow it."""
    with site.rig() as rig:
        scene = _make_scene()
        rig.start()
        rig.submit(scene.config)
        for leave, number in ((rig.kill, 5), (rig.stop, 15)):
            _wait_for_line(rig, number)
            leave()
            rig.start()
        return judge(rig, scene, 2)


def kill_left_build(site: Site) -> Tally:
    """Kill a server during an install step that has more processes, and then the experiment."""
    with site.rig() as rig:
        step = f"setsid sleep 600 & echo line 1 0; sleep 600 # {uuid.uuid4().hex}"
        rig.start()
        rig.submit(write_solo("true", install=[step]))
        _wait_for_line(rig, 0)
        rig.kill()
        rig.start()
        rig.post("/v1/experiments/1/kill")
        found = rig.wait_closed("1")
        rig.wait("nothing is left on the host", lambda: not rig.list_left())
        return Tally(1, 1, int(found["state"] == "KILLED"), 0, 0, 0, ())


def _make_scene() -> Scene:
    """Return an experiment whose environment takes some seconds to make."""
    step = f"i=0; while [ $i -lt {_LINES} ]; do echo line 1 $i; i=$((i+1)); sleep 0.1; done # {uuid.uuid4().hex}"
    return Scene(write_solo(count_lines(5), install=[step]), lines={"build": _LINES, "train": 5})


def _wait_for_line(rig: PatientRig, number: int) -> None:
    rig.wait("the step prints", lambda: f"1.build line 1 {number}" in rig.lines("1", follow=False))
