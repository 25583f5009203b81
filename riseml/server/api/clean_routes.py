"""The routes of cleaning: the same question twice, once only to be told."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated

from fastapi import APIRouter, Depends, Query

from riseml import wire
from riseml.server.api.views import show_time
from riseml.server.clock import now
from riseml.server.pool.clean import Cleaner, Cleaning, CleanRequest, Leftover


@dataclass(frozen=True, slots=True)
class _Asked:
    caches: bool = False
    days: Annotated[int, Query(ge=0, le=36_500)] = 30
    foreign: Annotated[str, Query(max_length=64, pattern="^[0-9a-f]*$")] = ""


def add_clean_routes(router: APIRouter, cleaner: Cleaner) -> None:
    """Everything below /leftovers."""

    @router.get("/leftovers")
    def read_leftovers(asked: Annotated[_Asked, Depends()]) -> wire.LeftoversView:
        return _show(cleaner.find(_wish(asked), now()))

    @router.post("/leftovers/remove")
    def remove_leftovers(asked: Annotated[_Asked, Depends()]) -> wire.LeftoversView:
        return _show(cleaner.remove(cleaner.find(_wish(asked), now())))


def _wish(asked: _Asked) -> CleanRequest:
    return CleanRequest(asked.caches, timedelta(days=asked.days), asked.foreign)


def _show(cleaning: Cleaning) -> wire.LeftoversView:
    return {
        "leftovers": [_show_one(leftover) for leftover in cleaning.leftovers],
        "others": cleaning.others,
        "silent": [str(host) for host in cleaning.silent],
    }


def _show_one(leftover: Leftover) -> wire.LeftoverView:
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
