"""Make room on disks that are nearly full: those of the hosts, and those of riseml's home and of its cache of data.

The loop calls `note` in every pass, so that nothing goes before a server has read its store and is the only one. The
work is done in a thread of its own: once a minute at most, on other machines once in ten minutes, and when an
environment was made.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import field
from datetime import datetime, timedelta
from pathlib import Path

from riseml.errors import RisemlError, StoreError
from riseml.executors.capabilities import DiskMeter, DiskUse, InventoryKind
from riseml.executors.disk_use import measure_disk
from riseml.names import HostName
from riseml.records import dataclass
from riseml.server.clock import now
from riseml.server.log_line import LogLine, write_line
from riseml.server.pool.clean import Cleaner, Leftover
from riseml.server.pool.disk_room import RoomOutcome, make_room, order_removals
from riseml.server.pool.host_set import HostSet
from riseml.server.pool.leftover_judge import CleanRequest, is_step
from riseml.store.usage import NOTHING_USED

_PAUSE = 60.0  # seconds between two measurements of a disk of this machine
_LONG_PAUSE = 600.0  # seconds; of a disk of another machine, which needs a container, or from which nothing may go
_FIRST_PAUSE = 10.0  # seconds; a new server first finds the builds that go on
_REQUEST = CleanRequest(caches=True, idle=timedelta(0), spares_kept=True)
_HOME, _CACHE = "riseml's home", "the cache of data"

log = logging.getLogger(__name__)

Place = HostName | str
"""A host, riseml's home or its cache of data."""


@dataclass(frozen=True, slots=True)
class DiskState:
    """What is known of one disk."""

    places: tuple[Place, ...]  # that are on it
    percent: int  # of it that is used
    removed: int = 0  # things that the server has removed by itself since it started
    removed_at: datetime | None = None  # when it last did
    is_stuck: bool = False  # it is above the mark, and nothing is left that may go


@dataclass(slots=True)
class _DiskTurn:
    """When a place is measured next. The worker alone uses it, except that `note` resets `due`."""

    due: float = 0.0  # monotonic seconds
    is_mute: bool = field(default=False)  # it cannot tell how full it is, and that was logged


class DiskKeeper:
    """Measures the disks, and removes what no experiment needs from those that are nearly full.

    Args:
        cleaner: finds and removes leftovers.
        hosts: the hosts of the server.
        clock: returns seconds that only grow.
    """

    def __init__(self, cleaner: Cleaner, hosts: HostSet, clock: Callable[[], float] = time.monotonic) -> None:
        self._cleaner = cleaner
        self._hosts = hosts
        self._clock = clock
        self._turns: defaultdict[Place, _DiskTurn] = defaultdict(_DiskTurn)
        self._states: Mapping[Place, DiskState] = {}  # by the first place on each disk; replaced, never changed
        self._building: frozenset[str] = frozenset()
        self._listed = NOTHING_USED  # what was used when the worker listed what may go
        self._not_before = clock() + _FIRST_PAUSE
        self._worker: threading.Thread | None = None

    @property
    def is_busy(self) -> bool:
        """True while a thread measures or removes."""
        return self._worker is not None and self._worker.is_alive()

    @property
    def mark(self) -> int | None:
        """Per cent of a disk above which the server makes room; None: it never does."""
        return self._hosts.clean_above

    def note(self, building: frozenset[str]) -> None:
        """Measure the disks that are due; all of them when an environment was made. Returns at once.

        Args:
            building: the environments that are being made now.
        """
        has_built = bool(self._building - building)
        self._building = building
        if has_built:
            for turn in list(self._turns.values()):
                turn.due = 0.0
            self._not_before = -math.inf
        mark = self.mark
        if mark is None or self.is_busy or self._clock() < self._not_before:
            return
        self._not_before = self._clock() + _PAUSE
        self._worker = threading.Thread(target=self._keep_room, args=(mark,), name="disks", daemon=True)
        self._worker.start()

    def list_disks(self) -> tuple[DiskState, ...]:
        """Return what the last measurements have shown; empty while the server makes no room by itself."""
        present = {*self._hosts.pool.executors, _HOME, _CACHE}
        return () if self.mark is None else tuple(one for one in self._states.values() if one.places[0] in present)

    def find_stuck(self, host: HostName | None = None) -> tuple[DiskState, ...]:
        """Return the disks above the mark from which nothing may go any more; those of one host, or all."""
        return tuple(one for one in self.list_disks() if one.is_stuck and (host is None or host in one.places))

    def _keep_room(self, mark: int) -> None:
        try:
            for places in self._find_due():
                self._keep_disk(places, mark)
        except Exception:
            log.exception("the disks cannot be looked after; the server tries again in %.0f s", _PAUSE)

    def _find_due(self) -> list[tuple[Place, ...]]:
        """Return the places that are due; those on one file system of this machine together."""
        disks: dict[str, list[Place]] = {}
        moment = self._clock()
        for place in (*sorted(self._hosts.pool.executors), _HOME, _CACHE):
            if self._turns[place].due > moment:
                continue
            use = self._measure(place)
            is_elsewhere = use is not None and not use.device
            self._turns[place].due = moment + (_LONG_PAUSE if is_elsewhere else _PAUSE) - _FIRST_PAUSE
            if use is not None:
                disks.setdefault(use.device or f"host {place}", []).append(place)
        return [tuple(places) for places in disks.values()]

    def _keep_disk(self, places: tuple[Place, ...], mark: int) -> None:
        outcome = make_room(
            mark, lambda: self._read_percent(places[0]), lambda: self._list_removals(places), self._remove
        )
        if outcome is None:
            return
        before = self._states.get(places[0])
        self._states = {**self._states, places[0]: _make_state(places, outcome, before)}
        name = " and ".join(places)
        if outcome.removed:
            text = f"the disk of {name} was above {mark} %: {len(outcome.removed)} removed of what no experiment needs"
            write_line(log, LogLine(f"{text}; it is {outcome.percent} % full now"))
        if outcome.is_stuck:
            for place in places:
                self._turns[place].due = self._clock() + _LONG_PAUSE
        if outcome.is_stuck and (before is None or not before.is_stuck):
            text = f"the disk of {name} is {outcome.percent} % full, and nothing is left on it that no experiment needs"
            write_line(log, LogLine(text), logging.WARNING)

    def _list_removals(self, places: tuple[Place, ...]) -> Iterator[Leftover]:
        self._listed = self._cleaner.usage.load_last_uses(spares_kept=True)
        cleaning, judge = self._cleaner.find_on_hosts(_REQUEST, now(), frozenset(places))
        leftovers = list(cleaning.leftovers)
        if _HOME in places or _CACHE in places:
            try:
                self._cleaner.snapshots.sweep_contents()
                leftovers += self._cleaner.find_on_server(judge)
            except RisemlError as error:  # a disk without any room: environments make some
                log.warning("the files of projects stay: %s", error.message)
        here = [leftover for leftover in leftovers if _find_place(leftover) in places]
        yield from order_removals(here, judge.used.snapshots, is_building=bool(self._building))

    def _remove(self, leftover: Leftover) -> Leftover:
        result = self._cleaner.remove_leftover(leftover, lambda: self._is_needed(leftover))
        if result.removed and leftover.item.kind is InventoryKind.SNAPSHOT:
            with suppress(StoreError):  # the next measurement shows what the disk got back
                self._cleaner.snapshots.sweep_contents()
        return result

    def _is_needed(self, leftover: Leftover) -> bool:
        if is_step(leftover.item) and self._building:
            return True
        return self._cleaner.is_needed(leftover, self._listed)

    def _read_percent(self, place: Place) -> int | None:
        use = self._measure(place)
        return None if use is None else use.percent

    def _measure(self, place: Place) -> DiskUse | None:
        """Return how full the disk of a place is; None: not known."""
        turn = self._turns[place]
        try:
            use = self._measure_place(place)
        except (RisemlError, OSError) as error:
            log.debug("the disk of %s cannot be measured: %s", place, error)
            return None
        if use is None and not turn.is_mute:
            log.info("the disk of %s does not say how full it is: nothing is removed from it", place)
        turn.is_mute = use is None
        return use

    def _measure_place(self, place: Place) -> DiskUse | None:
        if place == _HOME:
            return measure_disk(self._hosts.settings.home)
        if place == _CACHE:
            return measure_disk(_find_existing(self._cleaner.data.cache_folder))
        executor = self._hosts.pool.executors.get(HostName(place))
        return executor.read_disk() if isinstance(executor, DiskMeter) else None


def _find_place(leftover: Leftover) -> Place:
    if leftover.host is not None:
        return leftover.host
    return _CACHE if leftover.item.kind is InventoryKind.DATA else _HOME


def _find_existing(folder: Path) -> Path:
    """Return a folder, or the nearest one above it that exists."""
    return next(one for one in (folder, *folder.parents) if one.exists())


def _make_state(places: tuple[Place, ...], outcome: RoomOutcome, before: DiskState | None) -> DiskState:
    return DiskState(
        places,
        outcome.percent,
        removed=len(outcome.removed) + (0 if before is None else before.removed),
        removed_at=now() if outcome.removed else None if before is None else before.removed_at,
        is_stuck=outcome.is_stuck,
    )
