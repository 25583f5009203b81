"""Leftovers: objects that riseml made and that no open experiment owns, on the hosts and next to the store.

Things with the label of another server belong to that server. They are removed only when the user names its id, because
this server cannot know whether the other one still runs.
"""

from __future__ import annotations

import logging
import math
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from dataclasses import field, replace
from datetime import UTC, datetime

from riseml.base.errors import Conflict, RisemlError, UsageError
from riseml.base.names import HostName
from riseml.base.record_files import HeldRecord
from riseml.base.records import dataclass
from riseml.executors.capabilities import InventoryItem, InventoryKind, never
from riseml.executors.pool import HostPool
from riseml.server.data.data_fetcher import DataFetcher
from riseml.server.data.leftover_judge import CleanRequest, LeftoverJudge, is_step
from riseml.server.log_line import LogLine, write_line
from riseml.store.capsules import CapsuleStore
from riseml.store.projects.snapshots import SnapshotStore
from riseml.store.usage import LastUseReader, LastUses

_ROUNDING = 0.001  # seconds: a datetime lacks the nanoseconds that the times of files have
_SHORTEST = 8  # characters of a server's id that the user must give

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Leftover:
    """A thing that no open experiment owns."""

    item: InventoryItem
    host: HostName | None  # None: next to the store
    why: str  # why it may be removed
    used_at: datetime | None = None  # when it was last used, or else made; None: not known
    removed: bool = False
    problem: str | None = None  # why it could not be removed


@dataclass(frozen=True, slots=True)
class Cleaning:
    """The result of a search for leftovers."""

    leftovers: tuple[Leftover, ...]
    foreign: dict[str, int] = field(default_factory=dict)  # things of other servers, by server id
    silent: tuple[HostName, ...] = ()  # hosts that did not answer


@dataclass(frozen=True, slots=True)
class Cleaner:
    """Finds and removes leftovers."""

    server: str  # id of this server
    pool: HostPool
    snapshots: SnapshotStore  # states of projects
    capsules: CapsuleStore  # the server's copies
    usage: LastUseReader  # what experiments use
    data: DataFetcher  # what the server fetched

    def find_leftovers(self, request: CleanRequest, now: datetime) -> Cleaning:
        """Return what could be removed.

        Raises:
            UsageError: `foreign` names no other server.
            StoreError: the files of projects cannot be listed.
        """
        self._check_foreign(request)
        on_hosts, judge = self.find_on_hosts(request, now)
        return replace(on_hosts, leftovers=(*on_hosts.leftovers, *self.find_on_server(judge)))

    def find_on_hosts(
        self, request: CleanRequest, now: datetime, hosts: Collection[str] | None = None
    ) -> tuple[Cleaning, LeftoverJudge]:
        """Return what could be removed from hosts, and what judged it.

        Args:
            request: what to search for.
            now: the present moment.
            hosts: the hosts to ask; None: all.
        """
        references = frozenset(self.usage.load_last_uses(spares_kept=request.spares_kept).environments)
        items: list[tuple[HostName, InventoryItem]] = []
        silent: list[HostName] = []
        for name, executor in sorted(self.pool.executors.items()):
            inventory = executor.capabilities.inventory
            if inventory is None or (hosts is not None and name not in hosts):
                continue
            try:
                items += [(name, item) for item in inventory.list_inventory(references)]
            except RisemlError as error:
                log.warning("host %s cannot list its leftovers: %s", name, error.message)
                silent.append(name)
        # read the world after the hosts: an object without an experiment now gets none later
        used = self.usage.load_last_uses(spares_kept=request.spares_kept)
        judge = LeftoverJudge(self.server, used, request, now)
        self.data.forget_closed(used.closed.keys())
        completed = ((name, self._complete_item(name, item)) for name, item in items)
        leftovers = [
            Leftover(item, name, why, judge.find_last_use(item))
            for name, item in completed
            if (why := self._judge_item(name, item, judge))
        ]
        foreign = Counter(item.server for _, item in items if item.server not in ("", self.server))
        return Cleaning(tuple(leftovers), dict(foreign), tuple(silent)), judge

    def find_on_server(self, judge: LeftoverJudge) -> list[Leftover]:
        """Return what could be removed beside the store.

        Raises:
            StoreError: the files of projects cannot be listed.
        """
        return [*self._find_snapshots(judge), *self._find_records(judge), *self._find_data(judge)]

    def remove_leftovers(self, cleaning: Cleaning) -> Cleaning:
        """Remove what was found; containers first, because they hold networks and images."""
        order = {kind: place for place, kind in enumerate(InventoryKind)}
        leftovers = sorted(cleaning.leftovers, key=lambda leftover: order[leftover.item.kind])
        removed = tuple(self.remove_leftover(leftover) for leftover in leftovers)
        freed = self.snapshots.sweep_contents()
        if freed:
            write_line(log, LogLine(f"contents of projects' files removed: {freed:,} bytes"))
        return replace(cleaning, leftovers=removed)

    def is_needed(self, leftover: Leftover, before: LastUses) -> bool:
        """Return True when an experiment that came after `before` may use a leftover of a host, or did so."""
        item = leftover.item
        used = self.usage.load_last_uses(spares_kept=True)
        if item.kind is InventoryKind.CODE:
            return item.reference in used.snapshots and used.snapshots[item.reference] is None
        if is_step(item):
            return any(name in used.environments and used.environments[name] is None for name in item.environments)
        if item.kind is not InventoryKind.ENVIRONMENT:
            return False
        if item.reference in used.environments:
            return used.environments[item.reference] is None
        return not used.environments.keys() <= before.environments.keys()  # one of them may have this name on the host

    def remove_leftover(self, leftover: Leftover, is_needed: Callable[[], bool] = never) -> Leftover:
        """Remove a leftover, unless `is_needed` returns True; return it with the result."""
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
            elif executor is not None and executor.capabilities.inventory is not None:
                executor.capabilities.inventory.discard_item(item, is_needed)
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

    def _judge_item(self, host: HostName, item: InventoryItem, judge: LeftoverJudge) -> str:
        if item.kind is not InventoryKind.DATA or item.server != self.server:
            return judge.judge_item(item)
        copy = self.data.copies.list_copies(host).get(item.identity)
        if copy is None:
            return judge.judge_unknown(item)
        return "" if self.data.copies.is_used(host, copy) else judge.judge_data(item.made_at)

    def _find_snapshots(self, judge: LeftoverJudge) -> list[Leftover]:
        leftovers = []
        for snapshot in self.snapshots.list_snapshots():
            used_at = datetime.fromtimestamp(snapshot.used, UTC)
            item = InventoryItem(
                InventoryKind.SNAPSHOT,
                snapshot.digest,
                f"snapshots/{snapshot.digest[:12]}",
                self.server,
                size=snapshot.size,
                made_at=used_at,
            )
            why = judge.judge_snapshot(snapshot.digest, used_at)
            if why:
                leftovers.append(Leftover(item, None, why, used_at))
        return leftovers

    def _find_records(self, judge: LeftoverJudge) -> Iterator[Leftover]:
        """Yield what the server keeps of experiments that have ended: capsules, and what is known of saved outputs."""
        rows: list[tuple[InventoryKind, str, HeldRecord]] = [
            *((InventoryKind.CAPSULE, "capsules", record) for record in self.capsules.files.list_records()),
            *((InventoryKind.SAVED, "saves", record) for record in self.data.saves.notes.files.list_records()),
        ]
        for kind, folder, record in rows:
            made_at = datetime.fromtimestamp(record.changed, UTC)
            item = InventoryItem(
                kind,
                record.name,
                f"{folder}/{record.name}",
                self.server,
                record.experiment,
                size=record.size,
                made_at=made_at,
            )
            why = judge.judge_record(record)
            if why:
                yield Leftover(item, None, why)

    def _find_data(self, judge: LeftoverJudge) -> list[Leftover]:
        leftovers = []
        for data_set in self.data.list_sets():
            name = f"data {data_set.key[:12]} {data_set.url or '(not complete)'}"
            used_at = datetime.fromtimestamp(data_set.used, UTC)
            item = InventoryItem(
                InventoryKind.DATA, data_set.key, name, self.server, size=data_set.size, made_at=used_at
            )
            why = "" if data_set.in_use else judge.judge_data(used_at)
            if why:
                leftovers.append(Leftover(item, None, why, used_at))
        return leftovers

    def _check_foreign(self, request: CleanRequest) -> None:
        foreign = request.foreign
        if foreign and len(foreign) < _SHORTEST:
            raise UsageError(f"{foreign!r} is too short for the id of a server", f"give {_SHORTEST} or more of it")
        if foreign and self.server.startswith(foreign):
            raise UsageError(
                f"{foreign} is this server", "leave --foreign out: this server's own objects are always included"
            )
