"""Make room on disks that are nearly full: those of the hosts, and those of riseml's home and of its cache of data.

The loop calls `note` in every pass, so that nothing goes before a server has read its store and is the only one. The
work is done in a thread of its own: once a minute, every few seconds while an environment is made on the host, and when
one was made; less often on other machines. What fails because a disk is full calls `make_room_after`.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from riseml.base.errors import DiskFull, RisemlError, StoreError
from riseml.base.names import HostName
from riseml.base.records import dataclass
from riseml.executors.capabilities import DiskUse, InventoryKind
from riseml.executors.this_machine.disk_use import find_full_disk, measure_disk, says_full_disk
from riseml.server.clock import now
from riseml.server.data.clean import Cleaner, Leftover
from riseml.server.data.leftover_judge import CleanRequest
from riseml.server.hosts.host_set import HostSet
from riseml.server.log_line import LogLine, write_line
from riseml.store.usage import NOTHING_USED

HOME = "riseml's home"
CACHE = "the cache of data"

_FIRST_PAUSE = 10.0  # seconds; a new server first finds the builds that go on
_MOST_READINGS = 1000  # that are remembered of each disk
_ROOM_MARGIN = 5  # per cent between the mark and where the removal stops
_CLEAN_REQUEST = CleanRequest(caches=True, idle=timedelta(0), spares_kept=True)

_REMOVABLE_KINDS = frozenset(
    {InventoryKind.ENVIRONMENT, InventoryKind.CODE, InventoryKind.DATA, InventoryKind.SNAPSHOT}
)
"""What the server makes, copies or gets again when an experiment needs it."""

Place = HostName | str
"""A host, riseml's home or its cache of data."""

Build = tuple[HostName, str]
"""A host, and the environment that it makes."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RoomOutcome:
    """What was done for the room on a disk."""

    percent: int  # share of the disk that is used now, in per cent
    removed: tuple[Leftover, ...] = ()
    is_stuck: bool = False  # the disk is above the mark, and nothing is left that may go


@dataclass(frozen=True, slots=True)
class DiskState:
    """What is known of one disk."""

    places: tuple[Place, ...]  # that are on it
    percent: int  # share that is used, in per cent
    removed: int = 0  # things that the server has removed by itself since it started
    removed_at: datetime | None = None  # when it last did
    is_stuck: bool = False  # it is above the mark, and nothing is left that may go


@dataclass(frozen=True, slots=True)
class DiskTrouble:
    """What was done about a disk on which something found no room."""

    name: str  # names of the places on the disk
    percent: int  # share that is used now, in per cent
    removed: int  # things that went since the watch began

    @property
    def text(self) -> str:
        """The sentence for a user."""
        if not self.removed:
            return f"The disk of {self.name} was full, and nothing is left on it that no experiment needs"
        leftovers = f"{self.removed} of what no experiment needs"
        return f"The disk of {self.name} was full: the server has removed {leftovers}, and tries again"


@dataclass(slots=True)
class DiskWatch:
    """Notes whether the disk of a place is full while something is written to it.

    Args:
        place: the place.
        since: when the watch began, in seconds of the reclaimer's clock.
        removed: things that the server had removed from the disk by then.
        measure: measures the disk.
    """

    place: Place
    since: float
    removed: int
    measure: Callable[[], object]
    is_suspect: bool = False  # a line said that a disk is full

    def note_line(self, line: str) -> None:
        """Note a line of output. At the first one that says that a disk is full, measure: the disk is still so."""
        if not self.is_suspect and says_full_disk(line):
            self.is_suspect = True
            self.measure()


def order_removals(leftovers: Iterable[Leftover], known_snapshots: Iterable[str]) -> list[Leftover]:
    """Return what may go: by its last use, the longest ago first.

    Args:
        leftovers: what no open experiment, no search that goes on and no kept experiment uses.
        known_snapshots: digests of the projects that experiments of the store have: `rerun` needs them.
    """
    digests = frozenset(known_snapshots)
    removals = [
        leftover
        for leftover in leftovers
        if leftover.item.kind in _REMOVABLE_KINDS
        and not (leftover.item.kind is InventoryKind.SNAPSHOT and leftover.item.identity in digests)
    ]
    return sorted(removals, key=lambda leftover: leftover.used_at or datetime.min.replace(tzinfo=UTC))


def make_room(
    mark: int,
    measure: Callable[[], int | None],
    list_removals: Callable[[], Iterable[Leftover]],
    remove: Callable[[Leftover], Leftover],
    peak: int = 0,
) -> RoomOutcome | None:
    """Remove leftovers until the disk has room again; return None when it cannot be measured.

    Below the mark nothing goes. Above it, leftovers go until the disk is `_ROOM_MARGIN` below the mark; kubelet does so
    with images.

    Args:
        mark: per cent above which the removal begins.
        measure: returns how many per cent of the disk are used; None: not known.
        list_removals: returns what may go, in its order; is called above the mark only.
        remove: removes one, and returns it with the result.
        peak: per cent that were used when something found no room. What that has given back is needed again, so it
            counts as used.
    """
    percent = measure()
    if percent is None or max(percent, peak) <= mark:
        return None if percent is None else RoomOutcome(percent)
    goal = percent - max(0, max(percent, peak) - (mark - _ROOM_MARGIN))
    removed: list[Leftover] = []
    for leftover in list_removals():
        result = remove(leftover)
        if not result.removed:
            continue
        removed.append(result)
        latest = measure()
        percent = percent if latest is None else latest
        if percent <= goal:
            return RoomOutcome(percent, tuple(removed))
    return RoomOutcome(percent, tuple(removed), is_stuck=percent > mark)


@dataclass(frozen=True, slots=True)
class _Pauses:
    """Seconds between two measurements of a disk."""

    idle: float  # while no environment is made on its host
    building: float  # while one is made
    stuck: float  # the same, of a disk from which nothing may go: to find that out, the server lists everything on it


_HERE = _Pauses(idle=60.0, building=5.0, stuck=60.0)
_ELSEWHERE = _Pauses(idle=600.0, building=60.0, stuck=600.0)  # a measurement needs a container there


@dataclass(slots=True)
class _DiskTurn:
    """When a place is measured next. Several threads use it; each field by itself may be read and replaced."""

    measured: float = -math.inf  # monotonic seconds
    is_due: bool = False  # an environment was made: it is measured at once
    is_elsewhere: bool = False  # its disk is not of this machine
    device: str = ""  # its disk, where it is of this machine
    is_mute: bool = False  # it cannot tell how full it is, and that was logged
    readings: deque[tuple[float, int]] = field(default_factory=lambda: deque(maxlen=_MOST_READINGS))  # moment, per cent


class DiskReclaimer:
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
        self._building: frozenset[Build] = frozenset()
        self._used = NOTHING_USED  # what was used when the last list of removals was made; used with `_work`
        self._not_before = clock() + _FIRST_PAUSE
        self._worker: threading.Thread | None = None
        self._work = threading.Lock()  # held by the thread that removes

    @property
    def is_busy(self) -> bool:
        """True while the reclaimer's thread measures or removes."""
        return self._worker is not None and self._worker.is_alive()

    @property
    def mark(self) -> int | None:
        """Per cent of a disk above which the server makes room; None: it never does."""
        return self._hosts.clean_above

    def note(self, building: frozenset[Build]) -> None:
        """Measure the disks that are due; all of them when an environment was made. Returns at once.

        Args:
            building: the environments that are being made now.
        """
        has_built = bool(self._building - building)
        self._building = building
        if has_built:
            for place in self._list_places():
                self._turns[place].is_due = True
            self._not_before = -math.inf
        self.look()

    def look(self) -> None:
        """Measure the disks that are due. Returns at once."""
        mark = self.mark
        if mark is None or self.is_busy or self._clock() < self._not_before:
            return
        if any(map(self._is_due, self._list_places())):
            self._worker = threading.Thread(target=self._keep_room, args=(mark,), name="disks", daemon=True)
            self._worker.start()

    def open_watch(self, place: Place) -> DiskWatch:
        """Return a watch of the disk of a place, for something that begins to write to it."""
        return DiskWatch(place, self._clock(), self._count_removed(place), lambda: self._measure(place))

    def make_room_after_error(self, watch: DiskWatch, error: RisemlError) -> DiskTrouble | None:
        """Do what `make_room_after` does if the error says that a disk of this machine is full; else return None."""
        return None if find_full_disk(error) is None else self.make_room_after(watch, is_certain=True)

    def make_room_after(self, watch: DiskWatch, *, is_certain: bool) -> DiskTrouble | None:
        """Make room on a disk on which something may have found none; wait until that is done.

        Args:
            watch: of the disk, from before the failure.
            is_certain: the kernel or an engine has said that the disk was full; else it counts as full if it was above
                the mark in one of the measurements since the watch began.

        Returns:
            What was done; None when the disk was not full, does not tell, or the server makes no room by itself.
        """
        mark = self.mark
        if mark is None:
            return None
        with self._work:
            if self._measure(watch.place) is None:
                return None
            places = self._find_neighbours(watch.place)
            readings = [percent for moment, percent in list(self._turns[watch.place].readings) if moment >= watch.since]
            peak = 100 if is_certain else max(readings, default=0)
            if peak <= mark:
                return None
            outcome = self._keep_disk(places, mark, peak)
        if outcome is None:
            return None
        removed = self._count_removed(watch.place) - watch.removed
        return DiskTrouble(" and ".join(places), outcome.percent, removed)

    def list_disks(self) -> tuple[DiskState, ...]:
        """Return what the last measurements have shown; empty while the server makes no room by itself."""
        present = {*self._hosts.pool.executors, HOME, CACHE}
        return () if self.mark is None else tuple(disk for disk in self._states.values() if disk.places[0] in present)

    def find_stuck(self, places: Collection[Place]) -> tuple[DiskState, ...]:
        """Return the disks of these places that are above the mark, and from which nothing may go any more."""
        return tuple(
            disk for disk in self.list_disks() if disk.is_stuck and not frozenset(places).isdisjoint(disk.places)
        )

    def _keep_room(self, mark: int) -> None:
        try:
            for places in self._find_due():
                with self._work:
                    self._keep_disk(places, mark)
        except Exception:
            log.exception("the disks cannot be looked after; the server tries again in %.0f s", _HERE.idle)
            self._not_before = self._clock() + _HERE.idle

    def _list_places(self) -> list[Place]:
        return [*sorted(self._hosts.pool.executors), HOME, CACHE]

    def _is_due(self, place: Place) -> bool:
        turn = self._turns[place]
        return turn.is_due or self._clock() >= turn.measured + self._find_pause(place)

    def _find_pause(self, place: Place) -> float:
        """Return the seconds between two measurements of a disk; home and cache fill with every build and fetch."""
        pauses = _ELSEWHERE if self._turns[place].is_elsewhere else _HERE
        is_building = bool(self._building) if place in (HOME, CACHE) else place in {host for host, _ in self._building}
        if any(place in disk.places and disk.is_stuck for disk in self._states.values()):
            return pauses.stuck if is_building else _ELSEWHERE.idle
        return pauses.building if is_building else pauses.idle

    def _find_due(self) -> list[tuple[Place, ...]]:
        """Measure the places that are due, and return them; those on one file system of this machine together."""
        places = list(filter(self._is_due, self._list_places()))
        for place in places:
            self._turns[place].is_due = False
        measured = [place for place in places if self._measure(place) is not None]
        return list(dict.fromkeys(map(self._find_neighbours, measured)))

    def _find_neighbours(self, place: Place) -> tuple[Place, ...]:
        """Return the places on the disk of a place, as last measured."""
        device = self._turns[place].device
        neighbours = (other for other in self._list_places() if device and self._turns[other].device == device)
        return tuple(neighbours) or (place,)

    def _count_removed(self, place: Place) -> int:
        return sum(disk.removed for disk in self._states.values() if place in disk.places)

    def _keep_disk(self, places: tuple[Place, ...], mark: int, peak: int = 0) -> RoomOutcome | None:
        """Make room on a disk, if it is above the mark or was so (`peak`); the caller has `_work`."""
        outcome = make_room(
            mark, lambda: self._read_percent(places[0]), lambda: self._list_removals(places), self._remove, peak
        )
        if outcome is None:
            return None
        before = self._states.get(places[0])
        other_disks = {place: disk for place, disk in self._states.items() if frozenset(places).isdisjoint(disk.places)}
        self._states = {**other_disks, places[0]: _make_state(places, outcome, before)}
        name = " and ".join(places)
        if outcome.removed:
            text = f"the disk of {name} was above {mark} %: {len(outcome.removed)} removed of what no experiment needs"
            write_line(log, LogLine(f"{text}; it is {outcome.percent} % full now"))
        if outcome.is_stuck and (before is None or not before.is_stuck):
            text = f"the disk of {name} is {outcome.percent} % full, and nothing is left on it that no experiment needs"
            write_line(log, LogLine(text), logging.WARNING)
        return outcome

    def _list_removals(self, places: tuple[Place, ...]) -> Iterator[Leftover]:
        self._used = self._cleaner.usage.load_last_uses(spares_kept=True)
        cleaning, judge = self._cleaner.find_on_hosts(_CLEAN_REQUEST, now(), frozenset(places))
        leftovers = list(cleaning.leftovers)
        if HOME in places or CACHE in places:
            try:
                self._cleaner.snapshots.sweep_contents()
                leftovers += self._cleaner.find_on_server(judge)
            except RisemlError as error:  # a disk without any room: environments make some
                log.warning("the files of projects stay: %s", error.message)
        removable = [leftover for leftover in leftovers if _find_place(leftover) in places]
        yield from order_removals(removable, judge.used.snapshots)

    def _remove(self, leftover: Leftover) -> Leftover:
        result = self._cleaner.remove_leftover(leftover, lambda: self._cleaner.is_needed(leftover, self._used))
        if result.removed and leftover.item.kind is InventoryKind.SNAPSHOT:
            with suppress(StoreError):  # the next measurement shows what the disk got back
                self._cleaner.snapshots.sweep_contents()
        return result

    def _read_percent(self, place: Place) -> int | None:
        use = self._measure(place)
        return None if use is None else use.percent

    def _measure(self, place: Place) -> DiskUse | None:
        """Return how full the disk of a place is; None: not known."""
        turn = self._turns[place]
        turn.measured = self._clock()
        try:
            use = self._measure_place(place)
        except (RisemlError, OSError) as error:
            log.debug("the disk of %s cannot be measured: %s", place, error)
            return None
        if use is not None:
            turn.is_elsewhere = not use.device
            turn.device = use.device
            turn.readings.append((turn.measured, use.percent))
        if use is None and not turn.is_mute:
            log.info("the disk of %s does not say how full it is: nothing is removed from it", place)
        turn.is_mute = use is None
        return use

    def _measure_place(self, place: Place) -> DiskUse | None:
        if place == HOME:
            return measure_disk(self._hosts.settings.home)
        if place == CACHE:
            return measure_disk(_find_existing(self._cleaner.data.cache_folder))
        executor = self._hosts.pool.executors.get(HostName(place))
        disk = None if executor is None else executor.capabilities.disk
        if disk is None:
            return None
        try:
            return disk.read_disk()
        except DiskFull:  # there is no room for the container that measures
            return DiskUse(100)


def _find_place(leftover: Leftover) -> Place:
    if leftover.host is not None:
        return leftover.host
    return CACHE if leftover.item.kind is InventoryKind.DATA else HOME


def _find_existing(folder: Path) -> Path:
    """Return a folder, or the nearest one above it that exists."""
    return next(path for path in (folder, *folder.parents) if path.exists())


def _make_state(places: tuple[Place, ...], outcome: RoomOutcome, before: DiskState | None) -> DiskState:
    return DiskState(
        places,
        outcome.percent,
        removed=len(outcome.removed) + (0 if before is None else before.removed),
        removed_at=now() if outcome.removed else None if before is None else before.removed_at,
        is_stuck=outcome.is_stuck,
    )
