"""Places at which the server can be told to die, so that a test proves that nothing is lost there.

Off unless `RISEML_FAULT` is set when `armed` is called, or the first place is reached: `P4` ends the process with
SIGKILL when it comes to P4, `P4:3` when it does so for the third time. Off, a place costs two calls that do nothing.
"""

from __future__ import annotations

import enum
import functools
import itertools
import os
import signal
from collections.abc import Callable

from riseml.errors import UsageError

VARIABLE = "RISEML_FAULT"


class Point(enum.Enum):
    """P0 to P16 are the moments of a run; the last four are every save and every action, before and after."""

    REQUEST_READ = "P0"  # a submit was read, nothing of it is stored
    REQUEST_STORED = "P1"  # its rows are committed, the answer is not sent
    PLACED = "P2"  # a gang's place is saved, nothing was done about it
    STARTING = "P3"  # a job is about to be created
    STARTED = "P4"  # a job runs, and nobody but the host knows
    GANG_STARTING = "P5"  # a start is noted in the books; with a count, that much of the gang runs
    RUNNING_SEEN = "P6"  # a gang was seen to run, which is not saved
    END_SEEN = "P7"  # the end of a job was seen, which is not saved
    VERDICT_SAVED = "P8"  # the verdict is saved, the other jobs run on
    TERMINATED = "P9"  # SIGTERM was sent, the grace runs
    REMOVING = "P10"  # a job has ended, what is left of it is about to be removed
    RELEASING = "P11"  # every container is removed, the network is not
    RELEASED = "P12"  # the network is removed, the experiment is not closed
    LOG_READ = "P13"  # a piece of a log was read, it is not written
    BUILDING = "P14"  # an environment is being made
    FETCHING = "P15"  # an environment is about to be fetched
    MIGRATING = "P16"  # the store's tables were changed, which is not committed
    SAVING = "save"
    SAVED = "saved"
    ACTING = "act"
    ACTED = "acted"


def arm(order: str | None) -> Callable[[Point], None]:
    """What to call at each place.

    Raises:
        UsageError: the order names no place, or a count that is none.
    """
    if not order:
        return _go_on
    name, _, count = order.partition(":")
    places = {point.value: point for point in Point}
    if name not in places or not (count or "1").isdecimal() or int(count or "1") < 1:
        raise UsageError(f"{VARIABLE} is {order!r}", f"it is one of {', '.join(places)}, and may end in :COUNT")
    return _Fuse(places[name], int(count or "1")).reach


class _Fuse:
    """Burns down at one place. `next` of a count is one step for the interpreter, whichever thread comes by."""

    def __init__(self, place: Point, count: int) -> None:
        self._place = place
        self._last = count
        self._times = itertools.count(1)

    def reach(self, point: Point) -> None:
        if point is self._place and next(self._times) == self._last:
            os.kill(os.getpid(), signal.SIGKILL)


def _go_on(_: Point) -> None:
    """Production."""


@functools.cache
def armed() -> Callable[[Point], None]:
    """What this process calls at each place; the server asks for it as it begins, to hear of a bad order.

    Raises:
        UsageError: `RISEML_FAULT` is no order.
    """
    return arm(os.environ.get(VARIABLE))


def reach(point: Point) -> None:
    """Called at each place."""
    armed()(point)
