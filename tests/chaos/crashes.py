"""`kill -9` of the server at every named point of a run, and around every save, action and call to the engine."""

from __future__ import annotations

import itertools
import os
import uuid
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

from riseml.base.faultpoints import Point
from tests.chaos.ledger import Tally, judge
from tests.chaos.patient import PatientRig
from tests.chaos.scenes import (
    Scene,
    make_failing_scene,
    make_good_scene,
    make_killed_scene,
    make_large_scene,
    make_open_scene,
    make_writing_scene,
)
from tests.chaos.sites import Fault, Site

ALL_SCENES = (make_good_scene, make_failing_scene, make_killed_scene)

_TIMES: dict[Point, tuple[int, ...]] = {
    Point.STARTED: (1, 3),
    Point.GANG_STARTING: (2,),
    Point.REMOVING: (1, 3),
    Point.LOG_READ: (1, 4),
    Point.MIGRATING: (1, 9),
}
"""The visits of a fault point at which the server dies: 3 is the third visit. It is the first one at other points."""

AROUND = (Point.SAVING, Point.SAVED, Point.ACTING, Point.ACTED)
"""The fault points before and after every save and every action."""

ONE_LIFE = [
    "P16:3",
    "P16:9",
    "P25",
    "P26",
    "P0",
    "P1",
    "P15",
    "P14",
    "P2",
    "P3",
    "P6",
    "P13",
    "P7",
    "P8",
    "P9",
    "P10",
    "P11",
    "P12",
]
"""Fault points in the order of a run, so that each server dies at a point that the server before it did not reach."""

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
    Point.PACK_NAMED: "project on the disk, not named",
    Point.PROJECT_KEPT: "project stored, no answer sent",
    Point.LAYER_FILLED: "code on a host, no layer of it",
    Point.LAYER_MADE: "layer of code made, not used",
    Point.FILES_KEPT: "files kept, not noted",
    Point.FILES_NOTED: "kept files noted, not said",
}


_ONLY: dict[Point, tuple[tuple[str, ...]]] = {Point.LAYER_FILLED: (("docker",),), Point.LAYER_MADE: (("docker",),)}
"""The executors that have a fault point, where not all have it."""


def crash_faults() -> list[Fault]:
    """Return a fault for each fault point, and one for each kind of step."""
    rows = [
        Fault(f"kill -9 at {point.value}: {text}", _crash_at(point), *_ONLY.get(point, ()))
        for point, text in SENTENCES.items()
    ]
    return [
        *rows,
        Fault("kill -9 before and after every save", _crash_around(ALL_SCENES, Point.SAVING, Point.SAVED)),
        Fault(
            "kill -9 before and after every action",
            _crash_around((make_good_scene, make_killed_scene), Point.ACTING, Point.ACTED),
        ),
        Fault("kill -9 with a log record half written", tear_log_record),
    ]


def run_with_crashes(site: Site, scene: Scene, orders: Iterable[str]) -> Tally:
    """Run one experiment while one server after the other dies at the next of the orders."""
    with site.rig(orders) as rig:
        rig.run_scene(scene)
        return _judge_to_the_end(rig, scene)


def crash_through_one_life(site: Site) -> Tally:
    """Run one experiment whose servers die at the points of `ONE_LIFE`. Its jobs print until a server has died reading
    their log, however late the servers start.
    """
    scene = make_open_scene(install=[f"echo {uuid.uuid4().hex}", "echo made"])
    last = ONE_LIFE.index(Point.LOG_READ.value) + 1
    with site.rig(ONE_LIFE) as rig:
        rig.on_death = lambda: rig.let_go() if rig.deaths >= last else None
        rig.run_scene(scene)
        return _judge_to_the_end(rig, scene)


def _judge_to_the_end(rig: PatientRig, scene: Scene) -> Tally:
    """Judge the experiment. An order may be left, so that a server dies meanwhile; then the next one is asked."""
    return rig.retry_until_answered(lambda: judge(rig, scene, rig.deaths))


def _crash_at(point: Point) -> Callable[[Site], Tally]:
    def inflict(site: Site) -> Tally:
        tally = Tally()
        for times in _TIMES.get(point, (1,)):
            for make in _choose_scenes(point):
                found = run_with_crashes(site, make(), [f"{point.value}:{times}"])
                tally += found if found.injected else Tally(notes=(f"{point.value}:{times} was not reached",))
        return tally

    return inflict


def _choose_scenes(point: Point) -> tuple[Callable[[], Scene], ...]:
    if point in (Point.BUILDING, Point.FETCHING):
        return (make_building_scene,)
    if point in _ONLY:
        return (make_large_scene,)
    if point in (Point.FILES_KEPT, Point.FILES_NOTED):
        return (make_writing_scene,)
    if point is Point.TERMINATED:
        return (make_failing_scene, make_killed_scene)
    if point in (Point.END_SEEN, Point.VERDICT_SAVED):
        return (make_good_scene, make_failing_scene)
    return (make_good_scene,)


def make_building_scene(count: int = 20) -> Scene:
    """Return an experiment whose environment no host has."""
    return make_good_scene(count, install=[f"echo {uuid.uuid4().hex}", "echo made"])


def _crash_around(scenes: tuple[Callable[[], Scene], ...], *points: Point) -> Callable[[Site], Tally]:
    """Let each server die at its first step: the first one before the step, the next one after it, and so on."""

    def inflict(site: Site) -> Tally:
        tally = Tally()
        for make in scenes:
            tally += run_with_crashes(site, make(), itertools.cycle(f"{point.value}:1" for point in points))
        return tally

    return inflict


def tear_log_record(site: Site) -> Tally:
    """Cut the log file in the middle of a record, as a torn write does, each time the server dies.

    Two jobs give at least two pieces of log, and the next server reads again what was cut off.
    """
    scene = make_good_scene(30)
    with site.rig([f"{Point.LOG_READ.value}:{times}" for times in (2, 1, 1, 5, 8)]) as rig:
        rig.on_death = partial(cut_log_tail, rig.home / "logs" / "1.log")
        rig.run_scene(scene)
        return _judge_to_the_end(rig, scene)


def cut_log_tail(path: Path) -> None:
    """Cut the end of a file off, in the middle of its last record."""
    if path.exists() and path.stat().st_size > 40:
        os.truncate(path, path.stat().st_size - 7)
