"""Whether an object may be removed: no open experiment, no search that goes on and no pending action needs it. Pure."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from riseml.base.names import STEP_REPOSITORY
from riseml.base.record_files import HeldRecord
from riseml.base.records import dataclass
from riseml.executors.capabilities import InventoryItem, InventoryKind
from riseml.store.usage import LastUses

_SETTLING = timedelta(minutes=10)  # a younger thing may belong to a pending action
_SUBMITTING = timedelta(hours=1)  # a younger snapshot may belong to an experiment that is submitted next


@dataclass(frozen=True, slots=True)
class CleanRequest:
    """What to search for in addition to containers, networks and folders."""

    caches: bool  # also environments, snapshots and capsules of ended experiments
    idle: timedelta  # caches only when unused for this long
    foreign: str = ""  # also objects of the server with this id; its first 8 characters or more; empty: none
    spares_kept: bool = False  # what a kept experiment used counts as in use (`riseml keep`)


@dataclass(frozen=True, slots=True)
class LeftoverJudge:
    """Decides whether an object may be removed: returns the reason, or an empty text when it must stay."""

    server: str  # id of this server
    used: LastUses
    request: CleanRequest
    now: datetime

    def judge_item(self, item: InventoryItem) -> str:
        """Judge an object of a host that is not a copy of data of this server."""
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
        """Judge the files of a project on the server."""
        if digest not in self.used.snapshots:
            return "no experiment has used it" if self._is_older(used_at, _SUBMITTING) else ""
        last = self.used.snapshots[digest]
        return "" if last is None else self._judge_idle(max(last, used_at))

    def judge_record(self, record: HeldRecord) -> str:
        """Judge what the server keeps of an experiment in a file of its own."""
        if record.experiment is None:
            why = "incomplete file"
        elif record.experiment in self.used.open:
            return ""
        elif record.experiment in self.used.closed:
            return self._judge_idle(self.used.closed[record.experiment])
        else:
            why = "belongs to no experiment"
        return why if self._is_older(datetime.fromtimestamp(record.changed, UTC), _SETTLING) else ""

    def judge_data(self, used_at: datetime | None) -> str:
        """Judge data that no open experiment reads."""
        return self._judge_idle(used_at)

    def judge_unknown(self, item: InventoryItem) -> str:
        """Judge an object that names no experiment."""
        return "belongs to no experiment" if self._is_older(item.made_at, _SETTLING) else ""

    def find_last_use(self, item: InventoryItem) -> datetime | None:
        """Return when an object was last used, or else made; None: not known, or an experiment uses it now."""
        uses = {
            InventoryKind.ENVIRONMENT: self.used.environments,
            InventoryKind.CODE: self.used.snapshots,
            InventoryKind.SNAPSHOT: self.used.snapshots,
        }.get(item.kind, {})
        if item.environments:
            moments = [self.used.environments.get(name) for name in item.environments]
            return None if None in moments else max(filter(None, (*moments, item.made_at)))
        name = item.identity if item.kind is InventoryKind.SNAPSHOT else item.reference
        if name not in uses or item.made_at is None:
            return uses.get(name, item.made_at)
        last = uses[name]
        return None if last is None else max(last, item.made_at)

    def _judge_code(self, item: InventoryItem) -> str:
        if item.reference not in self.used.snapshots:
            return "no experiment has used it" if self._is_older(item.made_at, _SETTLING) else ""
        return self._judge_idle(self.find_last_use(item))

    def _judge_foreign(self, item: InventoryItem) -> str:
        is_requested = self.request.foreign and item.server.startswith(self.request.foreign)
        return f"of server {item.server[:8]}{', and it runs' if item.running else ''}" if is_requested else ""

    def _judge_environment(self, item: InventoryItem) -> str:
        """Judge an environment. Without a label its server is not known: then it may be removed only if an experiment
        of this server used it.
        """
        if item.reference in self.used.environments:
            last = self.used.environments[item.reference]
            return "" if last is None else self._judge_idle(last)
        if item.environments:  # what keeps one of them keeps its steps, which take no room of their own
            return self._judge_idle(self.find_last_use(item)) if item.server else ""
        if is_step(item) and not self._is_older(item.made_at, _SETTLING):
            return ""
        return self._judge_idle(item.made_at) if item.server else ""

    def _judge_idle(self, last: datetime | None) -> str:
        if not self.request.caches or last is None or not self._is_older(last, self.request.idle):
            return ""
        return f"not used since {last.astimezone(UTC):%Y-%m-%d}"

    def _is_older(self, at: datetime | None, age: timedelta) -> bool:
        return at is None or self.now - at >= age


def is_step(item: InventoryItem) -> bool:
    """Return True for the image that an install step has left."""
    return item.kind is InventoryKind.ENVIRONMENT and item.reference.startswith(f"{STEP_REPOSITORY}:")
