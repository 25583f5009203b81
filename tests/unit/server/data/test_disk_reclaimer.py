"""The law of full disks: below the mark nothing goes; above it only what nothing needs, the longest unused first."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from riseml.base.names import STEP_REPOSITORY, HostName
from riseml.base.records import dataclass
from riseml.executors.capabilities import InventoryItem, InventoryKind
from riseml.server.data.clean import Leftover
from riseml.server.data.disk_reclaimer import make_room, order_removals
from riseml.server.data.leftover_judge import CleanRequest, LeftoverJudge, is_step
from riseml.store.usage import LastUses

NOW = datetime(2026, 11, 27, 12, tzinfo=UTC)
SERVER = "a" * 32
HOST = HostName("gpu1")
REQUEST = CleanRequest(caches=True, idle=timedelta(0), spares_kept=True)
NAMES = [f"{letter}1" for letter in "abcdefgh"]
MAY_GO = (InventoryKind.ENVIRONMENT, InventoryKind.CODE, InventoryKind.DATA, InventoryKind.SNAPSHOT)

moments = st.integers(0, 100_000).map(lambda seconds: NOW - timedelta(seconds=seconds))
uses = st.dictionaries(st.sampled_from(NAMES), st.none() | moments)


@st.composite
def make_items(draw: st.DrawFn) -> InventoryItem:
    kind, name = draw(st.sampled_from(InventoryKind)), draw(st.sampled_from([*NAMES, f"{STEP_REPOSITORY}:1"]))
    servers = [SERVER] if kind is InventoryKind.SNAPSHOT else ["", SERVER, "b" * 32]
    server = draw(st.sampled_from(servers))  # the files of projects are beside the store, and of this server alone
    item = InventoryItem(kind, name, name, server, reference=name, made_at=draw(st.none() | moments))
    above = st.lists(st.sampled_from(NAMES), max_size=2, unique=True)
    return replace(item, environments=tuple(draw(above))) if is_step(item) else item


@dataclass(frozen=True, slots=True)
class Disk:
    """A disk on which each leftover takes some per cent."""

    percent: int
    mark: int
    sizes: tuple[int, ...]


disks = st.builds(
    Disk, st.integers(0, 100), st.integers(10, 99), st.lists(st.integers(0, 20), min_size=1, max_size=8).map(tuple)
)


def judge_items(items: list[InventoryItem], used: LastUses) -> list[Leftover]:
    judge = LeftoverJudge(SERVER, used, REQUEST, NOW)
    found = []
    for item in items:
        is_snapshot = item.kind is InventoryKind.SNAPSHOT
        why = judge.judge_snapshot(item.identity, item.made_at or NOW) if is_snapshot else judge.judge_item(item)
        if why:
            found.append(Leftover(item, HOST, why, judge.find_last_use(item)))
    return found


@given(
    items=st.lists(make_items(), max_size=60),
    environments=uses,
    snapshots=uses,
    disk=disks,
    peak=st.just(0) | st.integers(0, 100),
)
def test_only_what_nothing_needs_goes_by_its_last_use_until_there_is_room(
    *,
    items: list[InventoryItem],
    environments: dict[str, datetime | None],
    snapshots: dict[str, datetime | None],
    disk: Disk,
    peak: int,
) -> None:
    leftovers = judge_items(items, LastUses(frozenset(), {}, environments, snapshots))
    removals = order_removals(leftovers, snapshots)
    for leftover in removals:
        item = leftover.item
        assert item.kind in MAY_GO
        assert item.server in ("", SERVER)
        if is_step(item):
            assert all(environments.get(name) is not None for name in item.environments)
        if item.kind is InventoryKind.ENVIRONMENT:
            assert environments.get(item.reference, NOW) is not None
        if item.kind is InventoryKind.CODE:
            assert snapshots.get(item.reference, NOW) is not None
        if item.kind is InventoryKind.SNAPSHOT:
            assert item.identity not in snapshots
    oldest = datetime.min.replace(tzinfo=UTC)
    last_uses = [leftover.used_at or oldest for leftover in removals]
    assert last_uses == sorted(last_uses)

    percents = [disk.percent]
    asked: list[Leftover] = []

    def remove(leftover: Leftover) -> Leftover:
        asked.append(leftover)
        size = disk.sizes[len(asked) % len(disk.sizes)]
        percents.append(max(0, percents[-1] - size))
        return Leftover(leftover.item, leftover.host, leftover.why, leftover.used_at, removed=size > 0)

    outcome = make_room(disk.mark, lambda: percents[-1], lambda: removals, remove, peak)
    assert outcome is not None
    assert asked == removals[: len(asked)]
    if max(disk.percent, peak) <= disk.mark:
        assert (asked, outcome.removed, outcome.is_stuck) == ([], (), False)
        return
    given_back = max(0, peak - disk.percent)  # what found no room has given this back, and needs it again
    assert all(percent + given_back > disk.mark - 5 for percent in percents[:-1])
    assert outcome.percent == percents[-1]
    assert outcome.percent + given_back <= disk.mark - 5 or len(asked) == len(removals)
    assert outcome.is_stuck == (outcome.percent > disk.mark)


def test_a_disk_that_does_not_tell_is_left_alone() -> None:
    assert make_room(85, lambda: None, list, lambda leftover: leftover) is None
