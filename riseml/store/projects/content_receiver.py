"""Contents that arrive from a client: written to packs while they come, and entered pack by pack.

Contents that arrived before a broken connection are kept, so that a client continues where it stopped.
"""

from __future__ import annotations

from collections.abc import Collection
from concurrent.futures import Future, ThreadPoolExecutor

from riseml.files.archives.pieces import PieceReader, RecordReader
from riseml.store.projects.contents import ContentStore
from riseml.store.projects.packs import PackFile
from riseml.store.projects.uploads import WrittenBytes

_PACK = 1 << 25  # bytes of a pack, before the next one begins; a larger content is in a pack alone


class ContentReceiver:
    """Takes contents one after the other.

    A thread waits for the disk while the next pack is written.

    Args:
        store: gets them.
        contents: SHA-256 of the contents to keep, each of them once; None: all.
    """

    def __init__(self, store: ContentStore, contents: Collection[bytes] | None = None) -> None:
        self._store = store
        self._contents = contents
        self._received: set[bytes] = set()
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
        if content in self._received or (self._contents is not None and content not in self._contents):
            pack.drop_content()
        else:
            pack.keep_content()
            self._received.add(content)
        if pack.size >= _PACK:
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
