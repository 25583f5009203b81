"""Faults by load: long logs, long lines, binary output, greedy jobs, many experiments at once."""

from __future__ import annotations

from functools import partial
from typing import Any

from tests.chaos.calls import DOCKER
from tests.chaos.ledger import Tally, judge
from tests.chaos.patient import PatientRig
from tests.chaos.scenes import Scene, count_lines, make_good_scene, write_solo, write_trio
from tests.chaos.sites import Fault, Site
from tests.support.waiting import DEADLINE

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
    """Return a fault for each kind."""
    return [
        Fault(f"log of {FLOOD:,} lines", _print_many_lines),
        Fault(f"log of {FLOOD:,} lines, kill -9 in it", _crash_in_many_lines),
        Fault("one line of 10 MB", _print_long_line),
        Fault("binary logs", _print_binary),
        Fault("a job that prints without end", _print_without_end),
        Fault("a fork bomb", _run_fork_bomb, DOCKER),
        Fault(f"{CROWD} experiments at once", _run_crowd),
    ]


def _print_many_lines(site: Site) -> Tally:
    return _print_lines(site, FLOOD, ())


def _crash_in_many_lines(site: Site) -> Tally:
    return _print_lines(site, FLOOD, ("P13:2", "P13:2", "P13:2"))


def _print_lines(site: Site, count: int, orders: tuple[str, ...]) -> Tally:
    scene = Scene(write_solo(f"seq -f 'line 1 %.0f' 0 {count - 1}"), lines={"train": count})
    with site.rig(orders) as rig:
        rig.run_scene(scene)
        return judge(rig, scene, rig.deaths if orders else 1)


def _print_long_line(site: Site) -> Tally:
    """Print a line of 10 MB: the log has it once, cut, with a mark, and the lines around it are complete."""
    run = f"echo line 1 0; head -c {LONG} /dev/zero | tr '\\0' x; echo; echo line 1 1"
    scene = Scene(write_solo(run), lines={"train": 2})
    with site.rig() as rig:
        rig.run_scene(scene)
        first, *long, last = (line.partition(" ")[2] for line in rig.lines("1.train"))
        cut = long == ["x" * (1 << 20) + f" {_MARK}"]
        found = judge(rig, scene, 1)
        right = cut and (first, last) == ("line 1 0", "line 1 1")
        return found if right else found + Tally(notes=(f"the long line came as {list(map(len, long))} characters",))


def _print_binary(site: Site) -> Tally:
    run = "echo line 1 0; head -c 300000 /dev/urandom; echo; printf '\\0\\r\\033[2J\\377\\n'; echo line 1 1"
    scene = Scene(write_solo(run), lines={"train": 2})
    with site.rig() as rig:
        rig.run_scene(scene)
        return judge(rig, scene, 1)


def _print_without_end(site: Site) -> Tally:
    """Run a job that prints without end: its log is bounded, and the logs of other jobs are complete."""
    found, size = _run_beside_greedy_job(site, {"ps.1": "exec yes this is printed without end"})
    return found if size < _MOST_KEPT else found + Tally(notes=(f"the log has {size:,} bytes",))


def _run_fork_bomb(site: Site) -> Tally:
    """Run a fork bomb: it reaches its limit, and other jobs, the server and the host go on."""
    found, _ = _run_beside_greedy_job(
        site, {"ps.1": f"exec python3 -c '{_FORKS}'", "master": count_lines(60, end=_MET)}
    )
    return found


def _run_beside_greedy_job(site: Site, greed: dict[str, str]) -> tuple[Tally, int]:
    """Run an experiment with a greedy job and another one; return the tally and the size of the first one's log."""
    script = {"master": count_lines(60), "worker.1": count_lines(60), **greed}
    greedy = Scene(
        write_trio(script, finish_grace=DEADLINE, limits={"mem": "2GiB"}), lines={"master": 60, "worker.1": 60}
    )
    scenes = {"1": greedy, "2": make_good_scene(60)}
    with site.rig(RISEML_LOG_LIMIT="1MB") as rig:
        rig.start()
        for scene in scenes.values():
            rig.submit(scene.config)
        for name in scenes:
            rig.wait_closed(name)
        found = sum((judge(rig, scene, 0, name) for name, scene in scenes.items()), Tally(injected=1))
        return found, (rig.home / "logs" / "1.log").stat().st_size


def _run_crowd(site: Site) -> Tally:
    with site.rig() as rig:
        rig.start()
        scene = Scene(write_solo(count_lines(3)), lines={"train": 3})
        return _submit_crowd(rig, scene)


def _submit_crowd(rig: PatientRig, scene: Scene) -> Tally:
    submission = rig.submission(scene.config)
    names = [_submit_one(rig, submission) for _ in range(CROWD)]
    for name in names:
        rig.retry_until_answered(partial(rig.wait_closed, name))
    found = sum((judge(rig, scene, 1, name) for name in names), Tally())
    return found if len(set(names)) == CROWD else found + Tally(notes=("some experiments have the same name",))


def _submit_one(rig: PatientRig, submission: dict[str, Any]) -> str:
    answer = rig.post("/v1/experiments", submission)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])
