"""The routes of leftovers: one lists them, the other removes them."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

from fastapi import APIRouter, Depends, Query

from riseml import wire
from riseml.base.records import dataclass
from riseml.server.api.views.record_views import show_time
from riseml.server.clock import now
from riseml.server.data.clean import Cleaner, Cleaning, Leftover
from riseml.server.data.disk_keeper import DiskKeeper, DiskState
from riseml.server.data.leftover_judge import CleanRequest


@dataclass(frozen=True, slots=True)
class _CleanQuery:
    """The query of both routes."""

    caches: bool = False
    days: Annotated[int, Query(ge=0, le=36_500)] = 30
    foreign: Annotated[str, Query(max_length=64, pattern="^[0-9a-f]*$")] = ""


def add_clean_routes(router: APIRouter, cleaner: Cleaner, disks: DiskKeeper) -> None:
    """Add everything below /leftovers."""

    @router.get("/leftovers")
    def read_leftovers(query: Annotated[_CleanQuery, Depends()]) -> wire.LeftoversView:
        return _show_cleaning(cleaner.find_leftovers(_make_request(query), now()), disks)

    @router.post("/leftovers/remove")
    def remove_leftovers(query: Annotated[_CleanQuery, Depends()]) -> wire.LeftoversView:
        return _show_cleaning(cleaner.remove_leftovers(cleaner.find_leftovers(_make_request(query), now())), disks)


def _make_request(query: _CleanQuery) -> CleanRequest:
    return CleanRequest(query.caches, timedelta(days=query.days), query.foreign)


def _show_cleaning(cleaning: Cleaning, disks: DiskKeeper) -> wire.LeftoversView:
    return {
        "leftovers": [_show_leftover(leftover) for leftover in cleaning.leftovers],
        "others": cleaning.foreign,
        "silent": [str(host) for host in cleaning.silent],
        "disks": [_show_disk(disk, disks.mark or 0) for disk in disks.list_disks()],
    }


def _show_disk(disk: DiskState, mark: int) -> wire.DiskView:
    return {
        "places": [str(place) for place in disk.places],
        "percent": disk.percent,
        "clean_above": mark,
        "removed": disk.removed,
        "removed_at": show_time(disk.removed_at),
        "stuck": disk.is_stuck,
    }


def _show_leftover(leftover: Leftover) -> wire.LeftoverView:
    item = leftover.item
    return {
        "kind": item.kind.value,
        "name": item.name,
        "host": leftover.host,
        "server": item.server,
        "size": item.size,
        "made_at": show_time(item.made_at),
        "why": leftover.why,
        "removed": leftover.removed,
        "problem": leftover.problem,
    }
