"""The bytes of an upload: handled in order, one call at a time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from riseml.store.projects.uploads import UploadLimits, read_chunks

CHUNK = b"x" * (1 << 20)


class SlowThread:
    """Stands for the thread that handles an upload; each call ends when the test says so."""

    def __init__(self) -> None:
        self.go = asyncio.Event()
        self.running = self.most = self.calls = 0

    async def call(self, handle: Callable[[bytes], object], data: bytes) -> None:
        self.calls += 1
        self.running += 1
        self.most = max(self.most, self.running)
        await self.go.wait()
        handle(data)
        self.running -= 1


async def chunks(count: int) -> AsyncIterator[bytes]:
    for _ in range(count):
        yield CHUNK


async def turn(times: int = 10) -> None:
    """Let everything run that can."""
    for _ in range(times):
        await asyncio.sleep(0)


def test_a_cancelled_upload_still_handles_one_piece_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def cancel() -> None:
        thread, got = SlowThread(), list[bytes]()
        monkeypatch.setattr(asyncio, "to_thread", thread.call)
        upload = asyncio.create_task(read_chunks(chunks(9), got.append, UploadLimits(tmp_path, 1 << 40, 600)))
        await turn()
        assert (thread.calls, upload.done()) == (1, False), "the second piece waits for the first one"
        upload.cancel()
        await turn()
        assert (thread.calls, upload.done()) == (1, False), "so does the end of the upload"
        thread.go.set()
        with pytest.raises(asyncio.CancelledError):
            await upload
        assert (thread.most, thread.running, len(got)) == (1, 0, 2)

    asyncio.run(cancel())


def test_an_upload_ends_with_the_error_of_its_piece(tmp_path: Path) -> None:
    def fail(data: bytes) -> None:
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="the disk is full"):
        asyncio.run(read_chunks(chunks(9), fail, UploadLimits(tmp_path, 1 << 40, 600)))
