"""An upload that finds a full disk: the server makes room for the next one."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import cast

import pytest

from riseml.base.errors import StoreError
from riseml.server.api.submissions.upload_room import make_room_for_next
from riseml.server.data.disk_reclaimer import DiskReclaimer

FULL = StoreError("the disk of the home is full", "free some space")


class Disks:
    """A reclaimer that has removed something, or nothing."""

    def __init__(self, removed: str | None) -> None:
        self.trouble = None if removed is None else SimpleNamespace(removed=removed)

    def open_watch(self, place: object) -> object:
        return place

    def make_room_after_error(self, watch: object, error: StoreError) -> object:
        return self.trouble


def upload(removed: str | None, error: Exception) -> None:
    """Upload files, which ends with an error."""

    async def run() -> None:
        async with make_room_for_next(cast(DiskReclaimer, Disks(removed))):
            raise error

    asyncio.run(run())


def test_the_user_may_run_the_command_again_once_there_is_room() -> None:
    with pytest.raises(StoreError, match="the disk of the home is full") as refused:
        upload("2 GiB", FULL)
    assert refused.value.hint == ("the server has removed 2 GiB of what no experiment needs: run the command again")


@pytest.mark.parametrize("removed", [None, ""])
def test_a_disk_that_stays_full_is_said_as_that(removed: str | None) -> None:
    with pytest.raises(StoreError) as refused:
        upload(removed, FULL)
    assert refused.value is FULL


def test_other_errors_remove_nothing() -> None:
    with pytest.raises(InterruptedError):
        upload("2 GiB", InterruptedError())
