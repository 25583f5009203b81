"""`kill -9` of the server at every named point of a run, and around every save, action and call to the engine."""

from __future__ import annotations

import itertools
import os
import uuid
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

from riseml.faultpoints import Point
from tests.chaos.ledger import Tally, judge
from tests.chaos.scenes import Scene, bad, good, killed
from tests.chaos.sites import Fault, Site

ALL_SCENES = (good, bad, killed)

_TIMES: dict[Point, tuple[int, ...]] = {
    Point.STARTED: (1, 3),
    Point.GANG_STARTING: (2,),
    Point.REMOVING: (1, 3),
    Point.LOG_READ: (1, 4),
    Point.MIGRATING: (1, 9),
}
"""At which of the times that the server comes by it dies; at the others it is the first."""

AROUND = (Point.SAVING, Point.SAVED, Point.ACTING, Point.ACTED)
"""Before and after every step."""

ONE_LIFE = ["P16:3", "P16:9", "P0", "P1", "P15", "P14", "P2", "P3", "P6", "P13", "P7", "P8", "P9", "P10", "P11", "P12"]
"""In the order in which a run comes by, so that each server dies where its predecessor did not come to."""

SENTENCES = {
    Point.REQUEST_READ: "request read, nothing stored",
    Point.REQUEST_STORED: "rows committed, no answer sent",
    Point.PLACED: "place saved, nothing done",
    Point.STARTING: "a job is about to be created",
    Point.STARTED: "job started, not recorded",
    Point.GANG_STARTING: "half of the gang started",
    Point.RUNNING_SEEN: "all run, not saved",
    Point.END_SEEN: "an end seen, not saved",
    Point.VERDICT_SAVED: "verdict saved, others run",
    Point.TERMINATED: "SIGTERM sent, the grace runs",
    Point.REMOVING: "jobs ended, not removed",
    Point.RELEASING: "jobs removed, network not",
    Point.RELEASED: "all removed, not closed",
    Point.LOG_READ: "piece of log read, not written",
    Point.BUILDING: "environment is being made",
    Point.FETCHING: "environment not yet asked for",
    Point.MIGRATING: "tables of the store being made",
}


def crash_faults() -> list[Fault]:
    """A row for each point, and one for each kind of step."""
    rows = [Fault(f"kill -9 at {point.value}: {text}", _at(point)) for point, text in SENTENCES.items()]
    return [
        *rows,
        Fault("kill -9 before and after every save", _around(ALL_SCENES, Point.SAVING, Point.SAVED)),
        Fault("kill -9 before and after every action", _around((good, killed), Point.ACTING, Point.ACTED)),
        Fault("kill -9 with a log record half written", tear),
    ]


def survive(site: Site, scene: Scene, orders: Iterable[str]) -> Tally:
    """One experiment under servers that die as ordered."""
    with site.rig(orders) as rig:
        rig.live(scene)
        return judge(rig, scene, rig.deaths)


def _at(point: Point) -> Callable[[Site], Tally]:
    def inflict(site: Site) -> Tally:
        tally = Tally()
        for times in _TIMES.get(point, (1,)):
            for make in _scenes(point):
                found = survive(site, make(), [f"{point.value}:{times}"])
                tally += found if found.injected else Tally(notes=(f"{point.value}:{times} was not reached",))
        return tally

    return inflict


def _scenes(point: Point) -> tuple[Callable[[], Scene], ...]:
    if point in (Point.BUILDING, Point.FETCHING):
        return (built,)
    if point is Point.TERMINATED:
        return (bad, killed)
    return (good, bad) if point in (Point.END_SEEN, Point.VERDICT_SAVED) else (good,)


def built() -> Scene:
    """It needs an environment that nobody has made before."""
    return good(install=[f"echo {uuid.uuid4().hex}", "echo made"])


def _around(scenes: tuple[Callable[[], Scene], ...], *points: Point) -> Callable[[Site], Tally]:
    """Every server dies at its first step: the one before it, the next behind it, and so on to the end. What is done
    to the jobs of a master that fails is what is done to those of a user who kills.
    """

    def inflict(site: Site) -> Tally:
        tally = Tally()
        for make in scenes:
            tally += survive(site, make(), itertools.cycle(f"{point.value}:1" for point in points))
        return tally

    return inflict


def tear(site: Site) -> Tally:
    """What a torn write leaves: the tail of the log's file is cut off in the middle of a record.

    Two jobs make two pieces, however late they are read; and what was cut off is a piece for the next server.
    """
    scene = good(30)
    with site.rig([f"{Point.LOG_READ.value}:{times}" for times in (2, 1, 1, 5, 8)]) as rig:
        rig.on_death = partial(_cut, rig.home / "logs" / "1.log")
        rig.live(scene)
        return judge(rig, scene, rig.deaths)


def _cut(path: Path) -> None:
    if path.exists() and path.stat().st_size > 40:
        os.truncate(path, path.stat().st_size - 7)
