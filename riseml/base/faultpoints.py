"""Fault points: moments at which the server kills itself on demand, so that a test proves that nothing is lost there.

They are off unless the environment variable `RISEML_FAULT` is set: with `P4` the process kills itself with SIGKILL when
it reaches P4, with `P4:3` when it reaches P4 for the third time, and with `P4:3:STOP` it stops there with SIGSTOP
instead, until another process lets it go on. The variable is read once, at the first fault point or
at `armed`. A fault point that is off costs two function calls.
"""

from __future__ import annotations

import enum
import functools
import itertools
import os
import signal
from collections.abc import Callable

from riseml.base.errors import UsageError

VARIABLE = "RISEML_FAULT"
_STOP = ":STOP"


class Point(enum.Enum):
    """P0 to P46 are moments of a run; the last four are before and after every save and every action."""

    REQUEST_READ = "P0"  # the server has read a submit and stored nothing
    REQUEST_STORED = "P1"  # the rows of a submit are committed, the answer is not sent
    PLACED = "P2"  # the place of a gang is saved, no action has begun
    STARTING = "P3"  # before a job is created
    STARTED = "P4"  # a job runs, and only its host knows
    GANG_STARTING = "P5"  # a start is pending; with a count, that many jobs of the gang run
    RUNNING_SEEN = "P6"  # a pass saw a gang run and has not saved it
    END_SEEN = "P7"  # a pass saw the end of a job and has not saved it
    VERDICT_SAVED = "P8"  # the verdict is saved, the other jobs still run
    TERMINATED = "P9"  # SIGTERM is sent, the grace has begun
    REMOVING = "P10"  # before the container of an ended job is removed
    RELEASING = "P11"  # every container is removed, the network is not
    RELEASED = "P12"  # the network is removed, the experiment is not closed
    LOG_READ = "P13"  # a piece of a log is read, not yet written
    BUILDING = "P14"  # a host builds an environment
    FETCHING = "P15"  # before a host builds or fetches an environment
    MIGRATING = "P16"  # the tables of the store are changed, not committed
    COUNTED = "P17"  # reports are counted, and the count is not saved
    COUNTS_SAVED = "P18"  # the count of reports is committed
    ASKING = "P19"  # a search makes a trial, and has not chosen its point
    ASKED = "P20"  # a trial is stored with its experiment, and no reader knows of it yet
    TELLING = "P21"  # before a search gets the result of a trial
    TOLD = "P22"  # the search has the result of the trial, and no further trial is made
    STOPPING = "P23"  # a trial is to stop, and that is not saved
    STOPPED = "P24"  # it is saved that a trial stops, and its jobs run
    PACK_NAMED = "P25"  # a pack of files is on the disk, and nothing refers to it
    PROJECT_KEPT = "P26"  # the state of a project is stored, the answer is not sent
    CAPSULE_WRITTEN = "P27"  # the server's copy of a capsule is written, and is not in its place
    CAPSULE_KEPT = "P28"  # the server's copy of a capsule is in its place, and the output lacks it
    LAYER_FILLED = "P29"  # a container that never runs has a project's files, and no layer is made of them
    LAYER_MADE = "P30"  # the layer is made, and no job uses it yet
    DATA_FETCHING = "P31"  # a range of data is on the disk, and the set is not complete
    DATA_FETCHED = "P32"  # every file of a set is there, and the set does not have its final name
    OUTPUT_SENDING = "P33"  # a file of an output is in its store, and no manifest names it
    OUTPUT_SENT = "P34"  # every file is there, and the manifest is the one before
    OUTPUT_NAMED = "P35"  # the manifest names them, and some are not in their place
    OUTPUT_SAVED = "P36"  # all are in their place, and the server has not noted it
    OUTPUT_RESTORING = "P37"  # a file of a saved output is back on a host, others are not
    OUTPUT_RESTORED = "P38"  # all are back, and the server has not noted it
    COPY_SENT = "P39"  # an archive of data is on a host, and the server has not noted it
    COPY_ARRIVED = "P40"  # all data is on a host, not compared
    COPY_COMPARED = "P41"  # it is compared, and the server has not noted it
    FILES_KEPT = "P42"  # the files that a job wrote elsewhere are in its output, and nothing says so
    FILES_NOTED = "P43"  # the store has a record of them, and the log of the job has no line about them
    INHERITING = "P45"  # a file of its parent is in the output of a trial, others are not
    INHERITED = "P46"  # all are there, and the server has not noted it
    DISCARDING = "P44"  # no job can begin with an environment any more, and all of it is still on its host
    SAVING = "save"
    SAVED = "saved"
    ACTING = "act"
    ACTED = "acted"


def arm(order: str | None) -> Callable[[Point], None]:
    """Return the function to call at each fault point.

    Args:
        order: `P4`, `P4:3`, `P4:3:STOP`, or None for a function that does nothing.

    Raises:
        UsageError: the order names no fault point, or its count is not a positive number.
    """
    if not order:
        return _do_nothing
    name, _, when = order.partition(":")
    count, stop, _ = when.partition(_STOP)
    number = signal.SIGSTOP if stop else signal.SIGKILL
    points = {point.value: point for point in Point}
    if name not in points or not (count or "1").isdecimal() or int(count or "1") < 1 or not order.endswith(stop):
        hint = f"it is one of {', '.join(points)}, and may end in :COUNT or :COUNT:STOP"
        raise UsageError(f"{VARIABLE} is {order!r}", hint)
    return _Killer(points[name], int(count or "1"), number).reach


class _Killer:
    """Kills or stops the process at one fault point.

    Threads may share it: `next` of a count is one step for the interpreter.
    """

    def __init__(self, place: Point, count: int, number: signal.Signals) -> None:
        self._number = number
        self._place = place
        self._last = count
        self._times = itertools.count(1)

    def reach(self, point: Point) -> None:
        if point is self._place and next(self._times) == self._last:
            os.kill(os.getpid(), self._number)


def _do_nothing(_: Point) -> None:
    """Continue: no fault is ordered."""


@functools.cache
def armed() -> Callable[[Point], None]:
    """Return the function to call at each fault point of this process.

    The server calls this when it starts, so that it reports a bad order at once.

    Raises:
        UsageError: `RISEML_FAULT` names no fault point, or its count is not a positive number.
    """
    return arm(os.environ.get(VARIABLE))


def reach(point: Point) -> None:
    """Kill this process, if `RISEML_FAULT` says so for this point."""
    armed()(point)
