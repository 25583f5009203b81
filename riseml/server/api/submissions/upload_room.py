"""Room for the files of a project that find none on the server's disk."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from riseml.base.errors import StoreError
from riseml.server.data.disk_reclaimer import HOME, DiskReclaimer


@asynccontextmanager
async def make_room_for_next(disks: DiskReclaimer) -> AsyncIterator[None]:
    """Make room when an upload finds a full disk: it cannot be repeated here, but the user can run the command again.

    Raises:
        StoreError: the disk was full; the hint says whether there is room now.
    """
    watch = disks.open_watch(HOME)
    try:
        yield
    except StoreError as error:
        trouble = await asyncio.to_thread(disks.make_room_after_error, watch, error)
        if trouble is None or not trouble.removed:
            raise
        removed = f"the server has removed {trouble.removed} of what no experiment needs"
        raise StoreError(error.message, f"{removed}: run the command again") from error
