"""Uploads of projects: bytes as they come, and contents, packs, lists and archives made of them.

An upload is bounded in size and time, and its bytes are handled while the next ones come. Contents that arrived before
a broken connection are kept, so that a client continues where it stopped.
"""

from __future__ import annotations

import asyncio
import errno
import hashlib
import logging
import os
import re
import shutil
import time
from collections.abc import AsyncIterator, Callable, Collection
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from stat import S_ISREG

from riseml.base.errors import NotFound, StoreError, TooLarge, TooSlow, UsageError
from riseml.base.records import dataclass
from riseml.files.archives.entries import ArchiveEntry, EntryKind
from riseml.files.archives.pieces import RECORD, PieceReader, RecordReader, Sink
from riseml.files.archives.project_files import TarFiles
from riseml.files.archives.tree import MOST_FILES, ProjectTree
from riseml.store.projects.contents import ContentStore
from riseml.store.projects.packs import NewPack, PackFile, scan_pack
from riseml.store.projects.part_files import FULL_DISK, make_part_file

PATIENCE = 600.0
"""Seconds for 1 MiB: a laptop may sleep, or the user may stop the command for a while."""

_CHECK_INTERVAL = 1 << 26  # bytes between two checks of the free space
_RENEWS_PATIENCE = 1 << 20  # bytes of an upload that give its client the whole patience again
_DISK_RESERVE = 1 << 28  # bytes of the disk that an upload leaves free: the store is on the same disk
_HANDLED_AT_ONCE = 1 << 20  # bytes that one call of a thread handles
_FULL_PACK = 1 << 25  # bytes of a pack, before the next one begins; a larger content is in a pack alone
_LARGEST_PACK = 1 << 26  # bytes of a pack; a client begins another one after half of that
_OLD_PACK = 3600.0  # seconds without a change, after which the client of a pack has ended

_PACK_NAME = re.compile(r"[0-9a-f]{32}")
_MOST_OF_LISTS = 128 << 20  # bytes of all lists
_RUN_AGAIN = "run the command again"

log = logging.getLogger(__name__)


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
        if shutil.disk_usage(self.folder).free < _DISK_RESERVE:
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


def receive_tar(path: Path, sink: Sink) -> tuple[ArchiveEntry, ...]:
    """Pass the contents of an archive on, and return its files, links and empty folders.

    A client sent the archive whole, or an earlier version stored it. The server reads plain fields and checks them.
    Nothing else of its headers is kept. Owners are not kept: they are set where a job starts.

    Raises:
        UsageError: it is not a plain tar, or holds something else than files, folders and links inside the project.
        TooLarge: it has too many entries.
        OSError: the disk is full.
    """
    tree = ProjectTree()
    folders: dict[str, ArchiveEntry] = {}
    entries: list[ArchiveEntry] = []
    for entry, pieces in TarFiles(path).read_files():
        tree.add_entry(entry)
        if entry.kind is EntryKind.FILE:
            content = hashlib.sha256()
            sink.begin_content(entry.size)
            for piece in pieces:
                content.update(piece)
                sink.add_bytes(piece)
            sink.end_content()
            entries.append(entry._replace(content=content.hexdigest()))
        elif entry.kind is EntryKind.LINK:
            entries.append(entry)
        else:
            folders[entry.path] = entry
    tree.check_links()
    entries += [entry for path, entry in folders.items() if tree.is_empty(path)]
    return tuple(entries)


class ContentReceiver:
    """Takes contents one after the other: they are written to packs while they come, and entered pack by pack.

    A thread waits for the disk while the next pack is written.

    Args:
        store: gets them.
        contents: SHA-256 of the contents to keep, each of them once; None: all.
        is_even: an upload of what is stored already waits for the disk like any other, so that its time does not say
            what other users have.
    """

    def __init__(
        self, store: ContentStore, contents: Collection[bytes] | None = None, *, is_even: bool = False
    ) -> None:
        self._store = store
        self._contents = contents
        self._is_even = is_even
        self.received: set[bytes] = set()  # the contents whose bytes came
        self._waiting: list[Future[None]] = []
        self._thread = ThreadPoolExecutor(1, "packs")
        self._pack: PackFile | None = None
        self._is_open = False  # a content is incomplete

    def begin_content(self, size: int) -> None:
        """Begin a content of `size` bytes."""
        if self._pack is None:
            self._pack = PackFile(self._store.folder)
        self._pack.begin_content(size)
        self._is_open = True

    def add_bytes(self, data: bytes | memoryview) -> None:
        """Take the next bytes of it."""
        assert self._pack is not None, "a content has begun"
        self._pack.add_bytes(data)

    def end_content(self) -> None:
        """Keep the content if it is wanted and is not stored yet."""
        pack = self._pack
        assert pack is not None, "a content has begun"
        self._is_open = False
        content = pack.hash_content()
        if content in self.received or (self._contents is not None and content not in self._contents):
            pack.drop_content()
        else:
            pack.keep_content()
            self.received.add(content)
        if pack.size >= _FULL_PACK:
            self._hand_over()

    def close(self) -> None:
        """Keep the complete contents, and wait until they are in the table. On a full disk the last pack is lost.

        Raises:
            StoreError: the table cannot be written.
            OSError: the disk is full.
        """
        try:
            if self._pack is not None and self._is_open:
                self._pack.drop_content()
            self._hand_over()
            for future in self._waiting:
                future.result()
        finally:
            self._thread.shutdown()
            if self._pack is not None:
                with self._pack:  # removes it
                    pass

    def _hand_over(self) -> None:
        """Pass the pack to the thread that enters it in the table. If that fails, the next call ends the upload."""
        for future in [future for future in self._waiting if future.done()]:
            future.result()
        if self._pack is not None:
            self._waiting.append(self._thread.submit(self._enter_pack, self._pack))
            self._pack = None

    def _enter_pack(self, pack: PackFile) -> None:
        with pack:
            complete = pack.finish()
            if complete is None:
                return
            names = {packed.content for packed in complete.contents}
            if len(self._store.find_sizes(names)) < len(names):  # otherwise an earlier upload stored all of it
                self._store.add_pack(complete)
            elif self._is_even:
                complete.flush()


class StreamReceiver:
    """Reads the stream of pieces that a client sends into a receiver.

    Args:
        receiver: gets the contents.
        most: bytes of a content.
        written: counts the bytes of all contents; None: they have no limit.
    """

    def __init__(self, receiver: ContentReceiver, most: int, written: WrittenBytes | None = None) -> None:
        self._pieces = PieceReader()
        self._written = written
        self._records = RecordReader(receiver, most)

    def feed(self, data: bytes) -> None:
        """Take the next bytes of the stream.

        Raises:
            UsageError: the stream is malformed.
            TooLarge: it has too many bytes.
            OSError: the disk is full.
        """
        for piece in self._pieces.feed(data):
            if self._written is not None:
                self._written.count(len(piece))
            self._records.feed(piece)


class IncomingPacks:
    """The packs in one folder, which clients on the same machine wrote for the server. It takes each over as a whole.

    Nothing in such a pack is trusted: the server reads all of it, and names every content by its SHA-256. The folder
    belongs to the user of the server, as the whole home does.

    Args:
        folder: is created when it is missing; the packs that clients left there before the server started are removed.
        contents: gets what is in the packs.
        limits: of a pack.
    """

    def __init__(self, folder: Path, contents: ContentStore, limits: UploadLimits) -> None:
        self._folder = folder
        self._contents = contents
        self._limits = limits
        self._remove_packs(unchanged_since=float("inf"))

    def take_pack(self, name: str) -> frozenset[bytes]:
        """Keep the contents of a complete pack, remove it from the folder, and return its contents (SHA-256).

        Raises:
            NotFound: the folder has no such pack.
            UsageError: the name is not the name of a pack, or the file is not a pack.
            TooLarge: it has too many bytes or contents.
            StoreError: it cannot be taken over, or the table of contents cannot be written.
            OSError: the disk is full.
        """
        if not _PACK_NAME.fullmatch(name):
            raise UsageError(f"{name[:80]!r} is not the name of a pack", _RUN_AGAIN)
        self.remove_old()
        self._limits.check_space()
        with make_part_file(self._contents.folder) as part:
            self._move_pack(name, part)
            return self._keep_pack(part)

    def remove_old(self) -> int:
        """Remove the packs whose clients have ended, and return their bytes."""
        return self._remove_packs(unchanged_since=time.time() - _OLD_PACK)

    def _move_pack(self, name: str, part: Path) -> None:
        """Move a pack to the contents, where no second request finds it."""
        try:
            os.replace(self._folder / name, part)
        except (FileNotFoundError, NotADirectoryError):
            raise NotFound(f"the server does not find the pack {name}", _RUN_AGAIN) from None
        except OSError as error:
            if error.errno in FULL_DISK:
                raise
            log.warning("the server cannot take over packs from %s: %s", self._folder, error.strerror)
            raise StoreError(f"the server cannot take over the pack {name}: {error.strerror}", _RUN_AGAIN) from error

    def _keep_pack(self, path: Path) -> frozenset[bytes]:
        status = path.lstat()
        if not S_ISREG(status.st_mode):
            raise UsageError("a pack of the project's files is not a file", _RUN_AGAIN)
        most = min(_LARGEST_PACK, self._limits.most)
        if status.st_size > most:
            raise TooLarge(f"a pack of the project's files has more than {most:,} bytes", _RUN_AGAIN)
        contents = tuple(islice(scan_pack(path), MOST_FILES + 1))
        if len(contents) > MOST_FILES:
            raise TooLarge(f"a pack of the project's files has more than {MOST_FILES:,} contents", _RUN_AGAIN)
        end = contents[-1].at + contents[-1].size if contents else 0
        if end != status.st_size:
            raise UsageError("a pack of the project's files is cut off", _RUN_AGAIN)
        names = frozenset(packed.content for packed in contents)
        if len(self._contents.find_sizes(names)) < len(names):  # otherwise an earlier upload stored all of it
            self._contents.add_pack(NewPack(path, end, contents))
        return names

    def _remove_packs(self, *, unchanged_since: float) -> int:
        """Remove the packs that did not change since a moment (seconds since 1970), and return their bytes.

        One that cannot be removed stays: NFS keeps files under other names while a process reads them.
        """
        self._folder.mkdir(exist_ok=True, mode=0o700)
        freed = 0
        for path in [entry for entry in self._folder.iterdir() if _PACK_NAME.fullmatch(entry.name)]:
            try:
                status = path.lstat()
                if status.st_mtime <= unchanged_since:
                    path.unlink()
                    freed += status.st_size
            except FileNotFoundError:  # a client that gives up removes its packs at the same time
                continue
            except OSError as error:
                log.warning("the pack %s cannot be removed: %s", path, error.strerror)
        return freed


@dataclass(frozen=True, slots=True)
class PendingState:
    """A manifest: the list of a project's files, whose contents have not all arrived."""

    data: bytes
    sizes: dict[bytes, int]  # sizes of the contents, each once

    @property
    def sent_size(self) -> int:
        """Bytes of the contents as they are sent."""
        return sum(self.sizes.values()) + RECORD.size * len(self.sizes)


class PendingStates:
    """The incomplete states of one server, by space and digest; the oldest are forgotten when there are too many."""

    def __init__(self) -> None:
        self._states: dict[tuple[str, str], PendingState] = {}

    def note_state(self, space: str, digest: str, state: PendingState) -> None:
        """Remember a state until its contents have arrived."""
        self._states.pop((space, digest), None)
        self._states[space, digest] = state
        while len(self._states) > 1 and sum(len(pending.data) for pending in self._states.values()) > _MOST_OF_LISTS:
            del self._states[next(iter(self._states))]

    def find_state(self, space: str, digest: str) -> PendingState | None:
        """Return a state; None: the server does not know it, or not any more."""
        return self._states.get((space, digest))

    def forget_state(self, space: str, digest: str) -> None:
        """Forget a state, whose contents are complete."""
        self._states.pop((space, digest), None)

    def list_contents(self) -> set[bytes]:
        """Return the contents that the states name."""
        return {content for state in self._states.values() for content in state.sizes}


async def _read_in_time(
    chunks: AsyncIterator[bytes], relay: _Relay, limits: UploadLimits, bound: asyncio.Timeout
) -> None:
    now = asyncio.get_running_loop().time
    size = checked = renewed = 0
    async for chunk in chunks:
        size += len(chunk)
        if size - renewed >= _RENEWS_PATIENCE:
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
        if self._size >= _HANDLED_AT_ONCE:
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
