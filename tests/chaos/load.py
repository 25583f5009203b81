"""Too much of everything: long logs, long lines, odd bytes, many experiments at once."""

from __future__ import annotations

from functools import partial
from typing import Any

from tests.chaos.calls import DOCKER
from tests.chaos.ledger import Tally, judge
from tests.chaos.patient import PatientRig
from tests.chaos.scenes import Scene, counting, good, solo, trio
from tests.chaos.sites import Fault, Site

FLOOD = 1_000_000  # lines
LONG = 10_000_000  # bytes
CROWD = 200  # experiments

_MOST_KEPT = 3_000_000  # bytes of a log file when a job may print 1 MB
_FORKS = """
import os, signal
try:
    while os.fork():
        pass
except BlockingIOError:
    open(os.environ["OUTPUT_DIR"] + "/met", "w").close()
signal.pause()
"""
_MET = 'until [ -e "$OUTPUT_DIR/met" ]; do sleep 0.1; done; exit 0'
_MARK = "[riseml: line cut at 1 MiB]"


def load_faults() -> list[Fault]:
    """A row for each kind."""
    return [
        Fault(f"log of {FLOOD:,} lines", _flood),
        Fault(f"log of {FLOOD:,} lines, kill -9 in it", _cut_flood),
        Fault("one line of 10 MB", _long_line),
        Fault("binary logs", _binary),
        Fault("a job that prints without end", _endless),
        Fault("a fork bomb", _bomb, DOCKER),
        Fault(f"{CROWD} experiments at once", _crowd),
    ]


def _flood(site: Site) -> Tally:
    return _pour(site, FLOOD, ())


def _cut_flood(site: Site) -> Tally:
    return _pour(site, FLOOD, ("P13:2", "P13:2", "P13:2"))


def _pour(site: Site, count: int, orders: tuple[str, ...]) -> Tally:
    scene = Scene(solo(f"seq -f 'line 1 %.0f' 0 {count - 1}"), lines={"train": count})
    with site.rig(orders) as rig:
        rig.live(scene)
        return judge(rig, scene, rig.deaths if orders else 1)


def _long_line(site: Site) -> Tally:
    """It is one line, cut once, with a mark; the lines around it are whole."""
    run = f"echo line 1 0; head -c {LONG} /dev/zero | tr '\\0' x; echo; echo line 1 1"
    scene = Scene(solo(run), lines={"train": 2})
    with site.rig() as rig:
        rig.live(scene)
        first, *long, last = (line.partition(" ")[2] for line in rig.lines("1.train"))
        cut = long == ["x" * (1 << 20) + f" {_MARK}"]
        found = judge(rig, scene, 1)
        right = cut and (first, last) == ("line 1 0", "line 1 1")
        return found if right else found + Tally(notes=(f"the long line came as {list(map(len, long))} characters",))


def _binary(site: Site) -> Tally:
    run = "echo line 1 0; head -c 300000 /dev/urandom; echo; printf '\\0\\r\\033[2J\\377\\n'; echo line 1 1"
    scene = Scene(solo(run), lines={"train": 2})
    with site.rig() as rig:
        rig.live(scene)
        return judge(rig, scene, 1)


def _endless(site: Site) -> Tally:
    """What is kept of it is bounded; all that its neighbours say is kept."""
    found, size = _beside(site, {"ps.1": "exec yes this is printed without end"})
    return found if size < _MOST_KEPT else found + Tally(notes=(f"the log has {size:,} bytes",))


def _bomb(site: Site) -> Tally:
    """It meets its bound; its neighbours, the server and the host go on."""
    found, _ = _beside(site, {"ps.1": f"exec python3 -c '{_FORKS}'", "master": counting(60, end=_MET)})
    return found


def _beside(site: Site, greed: dict[str, str]) -> tuple[Tally, int]:
    """An experiment with a greedy job, and one beside it; and how large the log of the first one is."""
    script = {"master": counting(60), "worker.1": counting(60), **greed}
    greedy = Scene(trio(script, finish_grace=60, limits={"mem": "2GiB"}), lines={"master": 60, "worker.1": 60})
    scenes = {"1": greedy, "2": good(60)}
    with site.rig(RISEML_LOG_LIMIT="1MB") as rig:
        rig.start()
        for scene in scenes.values():
            rig.submit(scene.config)
        for name in scenes:
            rig.wait_closed(name)
        found = sum((judge(rig, scene, 0, name) for name, scene in scenes.items()), Tally(injected=1))
        return found, (rig.home / "logs" / "1.log").stat().st_size


def _crowd(site: Site) -> Tally:
    with site.rig() as rig:
        rig.start()
        scene = Scene(solo(counting(3)), lines={"train": 3})
        return _submit_crowd(rig, scene)


def _submit_crowd(rig: PatientRig, scene: Scene) -> Tally:
    submission = rig.submission(scene.config)
    names = [_submit_one(rig, submission) for _ in range(CROWD)]
    for name in names:
        rig.persist(partial(rig.wait_closed, name))
    found = sum((judge(rig, scene, 1, name) for name in names), Tally())
    return found if len(set(names)) == CROWD else found + Tally(notes=("some have the same name",))


def _submit_one(rig: PatientRig, submission: dict[str, Any]) -> str:
    answer = rig.post("/v1/experiments", submission)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])
