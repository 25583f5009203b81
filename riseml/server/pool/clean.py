"""What riseml left that no experiment owns: found on every host and beside the store, and removed when it is asked for.

A thing is owned by an experiment that is not closed. What carries the label of another server is another server's, and
is touched only by name: nobody here knows whether that server lives.
"""

from __future__ import annotations

import logging
from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from riseml.errors import RisemlError, UsageError
from riseml.executors.capabilities import Inventory, InventoryItem, InventoryKind
from riseml.executors.pool import HostPool
from riseml.names import HostName
from riseml.store.snapshots import SnapshotStore
from riseml.store.usage import LastUses, UsageReader

_SETTLING = timedelta(minutes=10)  # a thing this young may belong to what is just being done
_SENT = timedelta(hours=1)  # files are sent before the experiment that names them
_SHORTEST = 8  # characters of a server's id

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CleanRequest:
    """What is to be found beyond containers, networks and folders: with `caches` the environments and files of ended
    experiments that nobody has used for `idle`, with `foreign` what the server with this id left on the hosts.
    """

    caches: bool
    idle: timedelta
    foreign: str = ""


@dataclass(frozen=True, slots=True)
class Leftover:
    """A thing that no experiment owns, on a host or (None) beside the store. `problem`: why it could not be removed."""

    item: InventoryItem
    host: HostName | None
    why: str
    removed: bool = False
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class Cleaning:
    """What was found. `others` counts the things of other servers; `silent` are hosts that did not answer."""

    leftovers: tuple[Leftover, ...]
    others: dict[str, int] = field(default_factory=dict)
    silent: tuple[HostName, ...] = ()


@dataclass(frozen=True, slots=True)
class Cleaner:
    """Finds and removes.

    Args:
        server: id of this server.
        pool: the hosts.
        snapshots: the projects' files.
        usage: what experiments use.
    """

    server: str
    pool: HostPool
    snapshots: SnapshotStore
    usage: UsageReader

    def find(self, wish: CleanRequest, now: datetime) -> Cleaning:
        """What could be removed.

        Raises:
            UsageError: `foreign` names no other server.
        """
        self._check(wish)
        references = frozenset(self.usage.load_last_uses().environments)
        there: list[tuple[HostName, InventoryItem]] = []
        silent: list[HostName] = []
        for name, executor in sorted(self.pool.executors.items()):
            if not isinstance(executor, Inventory):
                continue
            try:
                there += [(name, item) for item in executor.list_inventory(references)]
            except RisemlError as error:
                log.warning("host %s is not looked through: %s", name, error.message)
                silent.append(name)
        used = self.usage.load_last_uses()  # after the hosts: what is there and has no experiment now will get none
        judge = _Judge(self.server, used, wish, now)
        found = [Leftover(item, name, why) for name, item in there if (why := judge.on_host(item))]
        others = Counter(item.server for _, item in there if item.server not in ("", self.server))
        return Cleaning((*found, *self._find_snapshots(judge)), dict(others), tuple(silent))

    def remove(self, cleaning: Cleaning) -> Cleaning:
        """Remove what was found, containers first, since networks and images are held by them."""
        order = {kind: place for place, kind in enumerate(InventoryKind)}
        found = sorted(cleaning.leftovers, key=lambda one: order[one.item.kind])
        return replace(cleaning, leftovers=tuple(self._remove(one) for one in found))

    def _remove(self, leftover: Leftover) -> Leftover:
        item = leftover.item
        executor = None if leftover.host is None else self.pool.executors[leftover.host]
        try:
            if executor is None:
                self.snapshots.remove_snapshot(item.identity)
            elif isinstance(executor, Inventory):
                executor.discard_item(item)
            else:
                return replace(leftover, problem=f"host {leftover.host} cannot remove it any more")
        except RisemlError as error:
            return replace(leftover, problem=error.message)
        log.info("removed %s %s: %s", item.kind.value, item.name, leftover.why)
        return replace(leftover, removed=True)

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
            why = judge.on_snapshot(held.digest, used_at)
            if why:
                found.append(Leftover(item, None, why))
        return found

    def _check(self, wish: CleanRequest) -> None:
        if wish.foreign and len(wish.foreign) < _SHORTEST:
            raise UsageError(f"{wish.foreign!r} is too short for the id of a server", f"give {_SHORTEST} or more of it")
        if wish.foreign and self.server.startswith(wish.foreign):
            raise UsageError(f"{wish.foreign} is this server", "what is its own is found without that")


@dataclass(frozen=True, slots=True)
class _Judge:
    """Says why a thing may go; an empty sentence when it may not."""

    server: str
    used: LastUses
    wish: CleanRequest
    now: datetime

    def on_host(self, item: InventoryItem) -> str:
        if item.server not in ("", self.server):
            return self._on_foreign(item)
        if item.kind is InventoryKind.ENVIRONMENT:
            return self._on_environment(item)
        if item.experiment is None:
            return "of no experiment" if self._older(item.made_at, _SETTLING) else ""
        return "" if item.experiment in self.used.open else "its experiment has ended, or was never stored"

    def on_snapshot(self, digest: str, used_at: datetime) -> str:
        if digest not in self.used.snapshots:
            return "no experiment has used it" if self._older(used_at, _SENT) else ""
        last = self.used.snapshots[digest]
        return "" if last is None else self._unused_since(max(last, used_at))

    def _on_foreign(self, item: InventoryItem) -> str:
        wanted = self.wish.foreign and item.server.startswith(self.wish.foreign)
        return f"of server {item.server[:8]}{', and it runs' if item.running else ''}" if wanted else ""

    def _on_environment(self, item: InventoryItem) -> str:
        """An image does not tell who made it: one that no experiment of ours has used is left to others."""
        if item.reference in self.used.environments:
            last = self.used.environments[item.reference]
            return "" if last is None else self._unused_since(last)
        return self._unused_since(item.made_at) if item.server else ""

    def _unused_since(self, last: datetime | None) -> str:
        if not self.wish.caches or last is None or not self._older(last, self.wish.idle):
            return ""
        return f"not used since {last.astimezone(UTC):%Y-%m-%d}"

    def _older(self, at: datetime | None, age: timedelta) -> bool:
        return at is None or self.now - at >= age
