"""The bytes of an upload, as they come: bounded in size and time, and handled beside the next ones."""

from __future__ import annotations

import asyncio
import errno
import shutil
from collections.abc import AsyncIterator, Callable
from pathlib import Path

from riseml.base.errors import TooLarge, TooSlow
from riseml.base.records import dataclass

PATIENCE = 600.0
"""Seconds for 1 MiB: a laptop may sleep, or the user may stop the command for a while."""

_CHECK_INTERVAL = 1 << 26  # bytes between two checks of the free space
_PROGRESS = 1 << 20  # bytes of an upload that give its client the whole patience again
_RESERVE = 1 << 28  # bytes of the disk that an upload leaves free: the store is on the same disk
_HANDLED = 1 << 20  # bytes that one call of a thread handles


@dataclass(frozen=True, slots=True)
class UploadLimits:
    """What one upload may take."""

    folder: Path  # on the disk that must keep a reserve
    most: int  # bytes
    patience: float  # seconds in which 1 MiB must arrive, or the end

    def make_refusal(self) -> TooLarge:
        """Return the error for a project that is too large."""
        return TooLarge(
            f"the project has more than {self.most:,} bytes, which is the most that this server takes",
            "name what is big in .risemlignore, or start the server with a larger RISEML_UPLOAD_LIMIT",
        )

    def check_space(self) -> None:
        """Check that the disk has its reserve.

        Raises:
            OSError: it has less.
        """
        if shutil.disk_usage(self.folder).free < _RESERVE:
            raise OSError(errno.ENOSPC, "no space left")


@dataclass(slots=True)
class WrittenBytes:
    """Counts what an upload writes to the disk: more than travels, because it is compressed."""

    limits: UploadLimits
    most: int  # bytes that its list of files allows
    _size: int = 0
    _checked: int = 0

    def count(self, size: int) -> None:
        """Count further bytes before they are written.

        Raises:
            TooLarge: they are more than the list of files allows.
            OSError: the disk is full.
        """
        self._size += size
        if self._size > self.most:
            raise TooLarge("more of the project's files came than their list names", "run the command again")
        if self._size - self._checked >= _CHECK_INTERVAL:
            self._checked = self._size
            self.limits.check_space()


async def save_upload(chunks: AsyncIterator[bytes], path: Path, limits: UploadLimits) -> None:
    """Write an upload to a file.

    Raises:
        TooLarge: it has too many bytes.
        TooSlow: it came to a stop.
        OSError: the disk is full.
    """
    with path.open("wb") as file:
        await read_chunks(chunks, file.write, limits)


async def read_chunks(chunks: AsyncIterator[bytes], handle: Callable[[bytes], object], limits: UploadLimits) -> None:
    """Give an upload to a function, which a thread calls while the next bytes come.

    The function got everything that came before, also when this raises an error.

    Raises:
        TooLarge: it has too many bytes.
        TooSlow: it came to a stop.
        OSError: the disk is full.
    """
    relay = _Relay(handle)
    try:
        async with asyncio.timeout(limits.patience) as bound:
            await _read_in_time(chunks, relay, limits, bound)
    except TimeoutError:
        raise TooSlow(
            f"the project's files stopped coming: less than 1 MiB in {limits.patience:g} s", "run the command again"
        ) from None
    finally:
        await relay.finish()


async def _read_in_time(
    chunks: AsyncIterator[bytes], relay: _Relay, limits: UploadLimits, bound: asyncio.Timeout
) -> None:
    now = asyncio.get_running_loop().time
    size = checked = renewed = 0
    async for chunk in chunks:
        size += len(chunk)
        if size - renewed >= _PROGRESS:
            renewed = size
            bound.reschedule(now() + limits.patience)
        if size > limits.most:
            raise limits.make_refusal()
        if size - checked >= _CHECK_INTERVAL:
            checked = size
            limits.check_space()
        await relay.add(chunk)


class _Relay:
    """Collects chunks, and lets a thread handle them, one call at a time."""

    def __init__(self, handle: Callable[[bytes], object]) -> None:
        self._handle = handle
        self._chunks: list[bytes] = []
        self._size = 0
        self._running: asyncio.Task[object] | None = None

    async def add(self, chunk: bytes) -> None:
        """Take the next bytes; wait when the thread has not handled those before."""
        self._chunks.append(chunk)
        self._size += len(chunk)
        if self._size >= _HANDLED:
            await self._hand_over()

    async def finish(self) -> None:
        """Let the thread handle the rest, and wait for it."""
        await self._hand_over()
        await self._wait()

    async def _hand_over(self) -> None:
        await self._wait()
        if self._chunks:
            data = b"".join(self._chunks)
            self._chunks = []
            self._size = 0
            self._running = asyncio.create_task(asyncio.to_thread(self._handle, data))

    async def _wait(self) -> None:
        if self._running is not None:
            await asyncio.shield(self._running)  # the thread goes on when the caller is cancelled
            self._running = None
