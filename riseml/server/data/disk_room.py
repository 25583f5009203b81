"""Which leftovers go when a disk is nearly full, and when to stop. What it calls measures and removes.

Below the mark nothing goes. Above it, what nothing needs goes by its last use, the longest ago first, until the disk is
`_DISTANCE` below the mark; kubelet does so with images.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime

from riseml.base.records import dataclass
from riseml.executors.capabilities import InventoryKind
from riseml.server.data.clean import Leftover

_DISTANCE = 5  # per cent between the mark and where the removal stops

_KINDS = frozenset({InventoryKind.ENVIRONMENT, InventoryKind.CODE, InventoryKind.DATA, InventoryKind.SNAPSHOT})
"""What the server makes, copies or gets again when an experiment needs it."""


@dataclass(frozen=True, slots=True)
class RoomOutcome:
    """What was done for the room on a disk."""

    percent: int  # of the disk that is used now
    removed: tuple[Leftover, ...] = ()
    is_stuck: bool = False  # the disk is above the mark, and nothing is left that may go


def order_removals(leftovers: Iterable[Leftover], known_snapshots: Iterable[str]) -> list[Leftover]:
    """Return what may go, in its order.

    Args:
        leftovers: what no open experiment, no search that goes on and no kept experiment uses.
        known_snapshots: digests of the projects that experiments of the store have: `rerun` needs them.
    """
    digests = frozenset(known_snapshots)
    removals = [
        leftover
        for leftover in leftovers
        if leftover.item.kind in _KINDS
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
    goal = percent - max(0, max(percent, peak) - (mark - _DISTANCE))
    removed: list[Leftover] = []
    for leftover in list_removals():
        result = remove(leftover)
        if not result.removed:
            continue
        removed.append(result)
        now = measure()
        percent = percent if now is None else now
        if percent <= goal:
            return RoomOutcome(percent, tuple(removed))
    return RoomOutcome(percent, tuple(removed), is_stuck=percent > mark)
