"""Leftovers: objects that riseml made and that no open experiment owns, on the hosts and next to the store.

Things with the label of another server belong to that server. They are removed only when the user names its id, because
this server cannot know whether the other one still runs.
"""

from __future__ import annotations

import logging
import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import field, replace
from datetime import UTC, datetime, timedelta

from riseml.errors import Conflict, RisemlError, UsageError
from riseml.executors.capabilities import Inventory, InventoryItem, InventoryKind
from riseml.executors.pool import HostPool
from riseml.names import HostName
from riseml.record_files import HeldRecord
from riseml.records import dataclass
from riseml.server.log_line import LogLine, write_line
from riseml.server.pool.data_keeper import DataKeeper
from riseml.store.capsules import CapsuleStore
from riseml.store.snapshots import SnapshotStore
from riseml.store.usage import LastUses, UsageReader

_SETTLING = timedelta(minutes=10)  # a younger thing may belong to a pending action
_SUBMITTING = timedelta(hours=1)  # a younger snapshot may belong to an experiment that is submitted next
_ROUNDING = 0.001  # seconds: a datetime lacks the nanoseconds that the times of files have
_SHORTEST = 8  # characters of a server's id that the user must give

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CleanRequest:
    """What to search for in addition to containers, networks and folders."""

    caches: bool  # also environments, snapshots and capsules of ended experiments
    idle: timedelta  # caches only when unused for this long
    foreign: str = ""  # also objects of the server with this id; its first 8 characters or more; empty: none


@dataclass(frozen=True, slots=True)
class Leftover:
    """A thing that no open experiment owns."""

    item: InventoryItem
    host: HostName | None  # None: next to the store
    why: str  # why it may be removed
    removed: bool = False
    problem: str | None = None  # why it could not be removed


@dataclass(frozen=True, slots=True)
class Cleaning:
    """The result of a search for leftovers."""

    leftovers: tuple[Leftover, ...]
    others: dict[str, int] = field(default_factory=dict)  # things of other servers, by server id
    silent: tuple[HostName, ...] = ()  # hosts that did not answer


@dataclass(frozen=True, slots=True)
class Cleaner:
    """Finds and removes leftovers."""

    server: str  # id of this server
    pool: HostPool
    snapshots: SnapshotStore  # states of projects
    capsules: CapsuleStore  # the server's copies
    usage: UsageReader  # what experiments use
    data: DataKeeper  # what the server fetched

    def find_leftovers(self, request: CleanRequest, now: datetime) -> Cleaning:
        """Return what could be removed.

        Raises:
            UsageError: `foreign` names no other server.
        """
        self._check_foreign(request)
        references = frozenset(self.usage.load_last_uses().environments)
        there: list[tuple[HostName, InventoryItem]] = []
        silent: list[HostName] = []
        for name, executor in sorted(self.pool.executors.items()):
            if not isinstance(executor, Inventory):
                continue
            try:
                there += [(name, item) for item in executor.list_inventory(references)]
            except RisemlError as error:
                log.warning("host %s cannot list its leftovers: %s", name, error.message)
                silent.append(name)
        # read the world after the hosts: an object without an experiment now gets none later
        used = self.usage.load_last_uses()
        judge = _Judge(self.server, used, request, now)
        self.data.forget_closed(used.closed.keys())
        shown = ((name, self._complete_item(name, item)) for name, item in there)
        found = [Leftover(item, name, why) for name, item in shown if (why := self._judge_item(name, item, judge))]
        others = Counter(item.server for _, item in there if item.server not in ("", self.server))
        return Cleaning(
            (*found, *self._find_snapshots(judge), *self._find_records(judge), *self._find_data(judge)),
            dict(others),
            tuple(silent),
        )

    def remove_leftovers(self, cleaning: Cleaning) -> Cleaning:
        """Remove what was found; containers first, because they hold networks and images."""
        order = {kind: place for place, kind in enumerate(InventoryKind)}
        found = sorted(cleaning.leftovers, key=lambda one: order[one.item.kind])
        removed = tuple(self._remove_one(one) for one in found)
        freed = self.snapshots.sweep_contents()
        if freed:
            write_line(log, LogLine(f"contents of projects' files removed: {freed:,} bytes"))
        return replace(cleaning, leftovers=removed)

    def _remove_one(self, leftover: Leftover) -> Leftover:
        item = leftover.item
        executor = None if leftover.host is None else self.pool.executors.get(leftover.host)
        try:
            if item.kind is InventoryKind.CAPSULE:
                self.capsules.files.remove_record(item.identity)
            elif item.kind is InventoryKind.SAVED:
                self.data.saves.notes.files.remove_record(item.identity)
            elif item.kind is InventoryKind.DATA and item.server == self.server:
                self._remove_data(leftover)
            elif leftover.host is None:
                self._remove_snapshot(item)
            elif isinstance(executor, Inventory):
                executor.discard_item(item)
            else:
                return replace(leftover, problem=f"host {leftover.host} cannot remove it any more")
        except RisemlError as error:
            return replace(leftover, problem=error.message)
        except OSError as error:  # the other things are removed nevertheless
            return replace(leftover, problem=f"it cannot be removed: {error.strerror or error}")
        place = "" if leftover.host is None else f" from {leftover.host}"
        text = f"leftover {item.kind.value} {item.name} removed{place}: {leftover.why}"
        write_line(log, LogLine(text, host=leftover.host))
        return replace(leftover, removed=True)

    def _remove_snapshot(self, item: InventoryItem) -> None:
        """Remove the files of a project, unless an experiment was submitted with them since they were judged.

        Raises:
            Conflict: they were used since.
        """
        latest = math.inf if item.made_at is None else item.made_at.timestamp() + _ROUNDING
        if not self.snapshots.remove_snapshot(item.identity, latest):
            raise Conflict("it was used since it was listed", "run `riseml system clean` again")

    def _remove_data(self, leftover: Leftover) -> None:
        if leftover.host is None:
            self.data.remove_set(leftover.item.identity)
        else:
            self.data.copies.remove_copy(leftover.host, leftover.item.identity)

    def _complete_item(self, host: HostName, item: InventoryItem) -> InventoryItem:
        """Return an item with what this server knows of a copy of data."""
        copy = self.data.copies.list_copies(host).get(item.identity) if item.kind is InventoryKind.DATA else None
        if copy is None or item.server != self.server:
            return item
        used_at = datetime.fromtimestamp(copy.used, UTC)
        return replace(item, name=f"copy of data {copy.key[:12]} {copy.url}", size=copy.size, made_at=used_at)

    def _judge_item(self, host: HostName, item: InventoryItem, judge: _Judge) -> str:
        if item.kind is not InventoryKind.DATA or item.server != self.server:
            return judge.judge_item(item)
        copy = self.data.copies.list_copies(host).get(item.identity)
        if copy is None:
            return judge.judge_unknown(item)
        return "" if self.data.copies.is_used(host, copy) else judge.judge_data(item.made_at)

    def _find_snapshots(self, judge: _Judge) -> list[Leftover]:
        found = []
        for held in self.snapshots.list_snapshots():
            used_at = datetime.fromtimestamp(held.used, UTC)
            item = InventoryItem(
                InventoryKind.SNAPSHOT,
                held.digest,
                f"snapshots/{held.digest[:12]}",
                self.server,
                size=held.size,
                made_at=used_at,
            )
            why = judge.judge_snapshot(held.digest, used_at)
            if why:
                found.append(Leftover(item, None, why))
        return found

    def _find_records(self, judge: _Judge) -> Iterator[Leftover]:
        """Yield what the server keeps of experiments that have ended: capsules, and what is known of saved outputs."""
        rows: list[tuple[InventoryKind, str, HeldRecord]] = [
            *((InventoryKind.CAPSULE, "capsules", held) for held in self.capsules.files.list_records()),
            *((InventoryKind.SAVED, "saves", held) for held in self.data.saves.notes.files.list_records()),
        ]
        for kind, folder, held in rows:
            made_at = datetime.fromtimestamp(held.changed, UTC)
            item = InventoryItem(
                kind, held.name, f"{folder}/{held.name}", self.server, held.experiment, size=held.size, made_at=made_at
            )
            why = judge.judge_record(held)
            if why:
                yield Leftover(item, None, why)

    def _find_data(self, judge: _Judge) -> list[Leftover]:
        found = []
        for held in self.data.list_sets():
            name = f"data {held.key[:12]} {held.url or '(not complete)'}"
            used_at = datetime.fromtimestamp(held.used, UTC)
            item = InventoryItem(InventoryKind.DATA, held.key, name, self.server, size=held.size, made_at=used_at)
            why = "" if held.in_use else judge.judge_data(used_at)
            if why:
                found.append(Leftover(item, None, why))
        return found

    def _check_foreign(self, request: CleanRequest) -> None:
        foreign = request.foreign
        if foreign and len(foreign) < _SHORTEST:
            raise UsageError(f"{foreign!r} is too short for the id of a server", f"give {_SHORTEST} or more of it")
        if foreign and self.server.startswith(foreign):
            raise UsageError(f"{foreign} is this server", "what is its own is found without that")


@dataclass(frozen=True, slots=True)
class _Judge:
    """Decides whether an object may be removed: returns the reason, or an empty text when it must stay."""

    server: str  # id of this server
    used: LastUses
    request: CleanRequest
    now: datetime

    def judge_item(self, item: InventoryItem) -> str:
        if item.server not in ("", self.server):
            return self._judge_foreign(item)
        if item.kind is InventoryKind.ENVIRONMENT:
            return self._judge_environment(item)
        if item.kind is InventoryKind.CODE:
            return self._judge_code(item)
        if item.experiment is None:
            return self.judge_unknown(item)
        return "" if item.experiment in self.used.open else "its experiment has ended, or was never stored"

    def judge_snapshot(self, digest: str, used_at: datetime) -> str:
        if digest not in self.used.snapshots:
            return "no experiment has used it" if self._is_older(used_at, _SUBMITTING) else ""
        last = self.used.snapshots[digest]
        return "" if last is None else self._judge_idle(max(last, used_at))

    def judge_record(self, held: HeldRecord) -> str:
        if held.experiment is None:
            why = "half written"
        elif held.experiment in self.used.open:
            return ""
        elif held.experiment in self.used.closed:
            return self._judge_idle(self.used.closed[held.experiment])
        else:
            why = "of no experiment"
        return why if self._is_older(datetime.fromtimestamp(held.changed, UTC), _SETTLING) else ""

    def judge_data(self, used_at: datetime | None) -> str:
        return self._judge_idle(used_at)

    def judge_unknown(self, item: InventoryItem) -> str:
        return "of no experiment" if self._is_older(item.made_at, _SETTLING) else ""

    def _judge_code(self, item: InventoryItem) -> str:
        if item.reference not in self.used.snapshots:
            return "no experiment has used it" if self._is_older(item.made_at, _SETTLING) else ""
        last = self.used.snapshots[item.reference]
        return "" if last is None else self._judge_idle(last if item.made_at is None else max(last, item.made_at))

    def _judge_foreign(self, item: InventoryItem) -> str:
        wanted = self.request.foreign and item.server.startswith(self.request.foreign)
        return f"of server {item.server[:8]}{', and it runs' if item.running else ''}" if wanted else ""

    def _judge_environment(self, item: InventoryItem) -> str:
        """Judge an environment. Without a label its server is not known: then it may be removed only if an experiment
        of this server used it.
        """
        if item.reference in self.used.environments:
            last = self.used.environments[item.reference]
            return "" if last is None else self._judge_idle(last)
        return self._judge_idle(item.made_at) if item.server else ""

    def _judge_idle(self, last: datetime | None) -> str:
        if not self.request.caches or last is None or not self._is_older(last, self.request.idle):
            return ""
        return f"not used since {last.astimezone(UTC):%Y-%m-%d}"

    def _is_older(self, at: datetime | None, age: timedelta) -> bool:
        return at is None or self.now - at >= age
