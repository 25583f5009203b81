"""Experiments for the faults of a Slurm cluster, whose roles have a node each, and whose attempts may never overlap."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.chaos.ledger import Tally, judge
from tests.chaos.patient import PatientRig
from tests.chaos.scenes import Scene, count_lines, write_trio
from tests.support.waiting import DEADLINE

DOUBLED = "doubled"
"""Name of the file in the output into which a job writes that another attempt of it still runs."""

_LOCK = (
    'exec 9>>"$OUTPUT_DIR/lock-$RISEML_JOB"; '
    f'flock -n 9 || echo "$RISEML_JOB $RISEML_ATTEMPT" >>"$OUTPUT_DIR/{DOUBLED}"; '
)
"""Each job holds a lock as long as one of its processes lives, on whatever node: all nodes have one kernel."""

_SHORT, _ENDLESS = 20, 10_000  # lines
_WIDE: dict[str, Any] = {"resources": {"cpus": 3, "mem": "200MiB"}, "finish_grace": DEADLINE}  # a node has four cores


def make_whole_gang(count: int, **keys: Any) -> Scene:
    """Return a gang that meets the fault and finishes."""
    return Scene(_write(count_lines(count), **keys), lines={"master": count, "worker.1": count})


def make_lost_gang(**keys: Any) -> Scene:
    """Return a gang that the fault ends; what it printed at last may be lost with its node."""
    return Scene(_write(count_lines(_ENDLESS), **keys), "FAILED", frozenset({"ENGINE_STOPPED"}), promised=False)


def make_retried_gang(**keys: Any) -> Scene:
    """Return a gang whose first attempt the fault ends, and whose second attempt finishes."""
    job = f'if [ "$RISEML_ATTEMPT" = 1 ]; then {count_lines(_ENDLESS)}; fi; {count_lines(_SHORT)}'
    retry = {"max": 1, "on": ["host-lost"]}
    lines = {"master": _SHORT, "worker.1": _SHORT}
    return Scene(_write(job, retry=retry, **keys), lines=lines, attempts=2, promised=False)


def judge_gang(rig: PatientRig, scene: Scene, name: str = "1") -> Tally:
    """Compare a gang with the truth, once Slurm runs nothing of it; and count attempts that overlapped."""
    output = Path(rig.wait_closed(name)["output"])
    rig.wait("Slurm runs nothing of it, and no process is left", lambda: not rig.containers())
    found = judge(rig, scene, 1, name)
    doubled = output / DOUBLED
    if not doubled.exists():
        return found
    return found + Tally(notes=(f"{rig.home}: beside an earlier attempt: {doubled.read_text().split()}",))


def _write(script: str, **keys: Any) -> str:
    jobs = {"master": script, "worker.1": script, "ps.1": "sleep 600"}
    return write_trio({job: _LOCK + text for job, text in jobs.items()}, **{**_WIDE, **keys})
