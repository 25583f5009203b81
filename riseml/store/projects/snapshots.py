"""Snapshots: the states of projects, by digest. Each is a manifest; the contents of all files are in `contents`, once.

The server computes the digest from the manifest and the name of each content from the bytes that it got, and does not
trust the digest that a client names. The first upload of a digest stays: a later one changes nothing. A manifest
appears when every content that it names is on the disk.

On a team's server each caller has spaces (`riseml.store.projects.spaces`), and what is in none of them does not exist
for the caller. Without spaces, everything belongs to the one user of the server.
"""

from __future__ import annotations

import hashlib
import logging
import math
import os
import re
import threading
from collections import Counter
from collections.abc import AsyncIterator, Collection, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path

from riseml.base.errors import NotFound, TooLarge, UsageError
from riseml.base.faultpoints import Point, reach
from riseml.base.records import dataclass
from riseml.base.settings import DEFAULT_UPLOAD_LIMIT
from riseml.files.archives.entries import ArchiveEntry, EntryKind
from riseml.files.archives.manifest import (
    digest_manifest,
    list_contents,
    load_manifest,
    measure_manifest,
    read_manifest,
    write_manifest,
)
from riseml.files.archives.pieces import INCOMING
from riseml.files.archives.project_files import ProjectFiles
from riseml.planning.image import Manifest
from riseml.store.projects.contents import ContentStore
from riseml.store.projects.packs import flush_folder
from riseml.store.projects.part_files import make_part_file, refuse_full_disk
from riseml.store.projects.spaces import ProjectSpaces, SpaceTable
from riseml.store.projects.stored_files import StateContents, StateTexts, StoredFiles
from riseml.store.projects.uploads import (
    PATIENCE,
    ContentReceiver,
    IncomingPacks,
    PendingState,
    PendingStates,
    StreamReceiver,
    UploadLimits,
    WrittenBytes,
    read_chunks,
    receive_tar,
    save_upload,
)

_DIGEST = re.compile(r"[0-9a-f]{64}")
_MANIFEST = ".manifest"
_FORMER_TAR = ".tar"
_FORMER_LISTS = (".files", ".json")
"""Suffixes of the files of earlier versions: a tar and its list. They are checked and stored in the present form at
their next use."""

_SUM = 32  # bytes of the SHA-256 at the end of a manifest's file

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class StoredSnapshot:
    """A snapshot that is on the server."""

    digest: str  # SHA-256 in hex
    size: int  # bytes of the contents that no other snapshot has
    used: float  # when it was last uploaded or requested, in seconds since 1970


class SnapshotStore:
    """The snapshots below one folder, which belongs to one server. A snapshot is stored completely or not at all.

    Args:
        folder: is created when it is missing; what an upload that was cut off left there is removed.
        most: bytes that the files of a project, or an upload, may have.
        patience: seconds in which 1 MiB of an upload must arrive, or its end.
    """

    def __init__(self, folder: Path, most: int = DEFAULT_UPLOAD_LIMIT, patience: float = PATIENCE) -> None:
        self._folder = folder
        self._limits = UploadLimits(folder, most, patience)
        self._changing = threading.RLock()  # guards adding and removing snapshots
        self._pending = PendingStates()
        self._uploads = 0  # archives and packs that are being stored
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        for left in folder.glob("*.part"):
            left.unlink()
        self._contents = ContentStore(folder / "contents")
        self._incoming = IncomingPacks(folder / INCOMING, self._contents, self._limits)
        self._spaces = SpaceTable(folder)

    def has_snapshot(self, digest: str, spaces: ProjectSpaces | None = None) -> bool:
        """Return True when the snapshot is stored. The call counts as a use, so that a clean-up keeps the snapshot for
        a while.

        Args:
            digest: of the snapshot.
            spaces: of the caller, here and below; None: the server itself asks, or its only user.

        Raises:
            UsageError: the text is not a digest.
        """
        return self._find_readable(digest, spaces) is not None

    def find_files(self, digest: str, spaces: ProjectSpaces | None = None) -> ProjectFiles | None:
        """Return the files of a snapshot; None: it is not there.

        Raises:
            UsageError: the text is not a digest.
        """
        data = self._find_readable(digest, spaces)
        return None if data is None else StoredFiles(self._contents, data, self._read_manifest)

    def load_manifest(self, digest: str, spaces: ProjectSpaces | None = None) -> Manifest:
        """Return the list of a snapshot's files, for planning.

        Raises:
            NotFound: the snapshot is not on the server.
        """
        data = self._load_manifest(digest, spaces)
        return Manifest(StateContents(data), StateTexts(self._contents, data))

    def list_files(self, digest: str) -> tuple[ArchiveEntry, ...]:
        """Return the files, links and empty folders of a project's state, each file with the SHA-256 of its content.

        Raises:
            NotFound: the snapshot is not on the server.
            UsageError: the text is not a digest.
        """
        return load_manifest(self._load_manifest(digest))

    def measure_files(self, digest: str) -> int:
        """Return the bytes of all files of a project's state.

        Raises:
            NotFound: the snapshot is not on the server.
            UsageError: the text is not a digest.
        """
        return measure_manifest(self._load_manifest(digest))[1]

    def list_snapshots(self) -> list[StoredSnapshot]:
        """Return every snapshot that is there."""
        named: dict[str, set[bytes]] = {}
        for path in sorted(self._folder.glob(f"*{_MANIFEST}")):
            data = self._read_manifest(path.stem)
            if data is not None:
                named[path.stem] = list_contents(data)
        uses = Counter(content for contents in named.values() for content in contents)
        places = self._contents.find_places(uses)
        snapshots = [
            StoredSnapshot(
                digest,
                sum(places[content].size for content in contents if uses[content] == 1 and content in places),
                self._manifest_path(digest).stat().st_mtime,
            )
            for digest, contents in named.items()
        ]
        return sorted([*snapshots, *self._list_former(named)], key=lambda snapshot: snapshot.digest)

    def remove_snapshot(self, digest: str, last_use: float = math.inf) -> bool:
        """Remove a snapshot, if it is there. `sweep_contents` gives the disk its bytes back. False: it was used after
        `last_use`, in seconds since 1970, and stays."""
        path = self._manifest_path(digest)
        with self._changing:
            if is_idle := not path.exists() or path.stat().st_mtime <= last_use:
                self._spaces.forget_state(digest)
                path.unlink(missing_ok=True)
                self._remove_former(digest)
            return is_idle

    def sweep_contents(self) -> int:
        """Remove the contents that no snapshot names, and return the bytes that the disk got back.

        Nothing is removed while an archive or a pack is being stored. What is removed between two packs of a client is
        missing when its manifest comes, and the client sends it again.

        Raises:
            StoreError: the table of contents cannot be written, or the disk is full.
        """
        with self._changing, refuse_full_disk(self._folder):
            if self._uploads:
                return 0
            live = self._pending.list_contents()
            for path in self._folder.glob(f"*{_MANIFEST}"):
                data = self._read_manifest(path.stem)
                live |= list_contents(data) if data is not None else set()
            freed = self._incoming.remove_old() + self._contents.remove_all_but(live)
            self._spaces.forget_all_contents_but(live)
            return freed

    def give_state(self, digest: str, spaces: ProjectSpaces, receiver: str) -> None:
        """Give a state of a project, with its contents, to another space: that of a team project.

        Raises:
            NotFound: the caller does not have the state.
            UsageError: the text is not a digest.
        """
        data = self._load_manifest(digest, spaces)
        self._spaces.add_contents(receiver, list_contents(data))
        self._spaces.add_state(receiver, digest)

    def receive_manifest(self, digest: str, data: bytes, spaces: ProjectSpaces | None = None) -> list[str]:
        """Store a state of a project whose contents are all stored; otherwise return the missing ones (SHA-256, hex).

        A content that the space of the caller lacks counts as missing.

        Raises:
            UsageError: the manifest is malformed, holds something else than files, folders and links inside the
                project, or has another digest.
            TooLarge: it has too many bytes or files.
            StoreError: the disk is full.
        """
        self._check_digest(digest)
        entries = read_manifest(data)
        self._check_state(digest, entries)
        sizes = _list_sizes(entries)
        with self._changing, refuse_full_disk(self._folder):
            missing = self._find_missing(sizes, spaces)
            if missing:
                self._pending.note_state(_name_space(spaces), digest, PendingState(data, sizes))
            else:
                self._keep_manifest(digest, data, spaces)
            return missing

    async def receive_contents(
        self, digest: str, chunks: AsyncIterator[bytes], spaces: ProjectSpaces | None = None
    ) -> list[str]:
        """Store contents of the state whose manifest came before, and return those that are still missing.

        Contents that arrived before a broken connection stay. Contents that the manifest does not name, or that are
        stored already, are dropped.

        Raises:
            NotFound: the server does not know the manifest, or not any more.
            UsageError: the stream is malformed.
            TooLarge, TooSlow, StoreError: as for `receive_archive`.
        """
        import asyncio

        self._check_digest(digest)
        pending = self._pending.find_state(_name_space(spaces), digest)
        if pending is None:
            raise NotFound("the server does not know the list of these files", "run the command again")
        with refuse_full_disk(self._folder):
            stored_sizes = await asyncio.to_thread(self._find_sizes, pending.sizes, spaces)
            lacking = pending.sizes.keys() - stored_sizes.keys()
            receiver = ContentReceiver(self._contents, lacking, is_even=spaces is not None)
            try:
                # Two clients may send the same contents at once, so some of these may be stored already.
                written = WrittenBytes(self._limits, pending.sent_size)
                stream = StreamReceiver(receiver, max(pending.sizes.values()), written)
                await read_chunks(chunks, stream.feed, self._limits)
            finally:
                await asyncio.to_thread(receiver.close)
                await asyncio.to_thread(self._note_contents, receiver.received, spaces)
            return await asyncio.to_thread(self._finish_pending, digest, pending, spaces)

    def _finish_pending(self, digest: str, pending: PendingState, spaces: ProjectSpaces | None) -> list[str]:
        with self._changing:
            missing = self._find_missing(pending.sizes, spaces)
            if not missing:
                self._keep_manifest(digest, pending.data, spaces)
                self._pending.forget_state(_name_space(spaces), digest)
            return missing

    def take_pack(self, name: str, spaces: ProjectSpaces | None = None) -> None:
        """Keep the contents of a pack that a client on this machine wrote. A sweep removes those that no list names.

        Raises:
            NotFound, UsageError, TooLarge, StoreError: see `IncomingPacks.take_pack`.
        """
        with refuse_full_disk(self._folder), self._counted_upload():
            self._note_contents(self._incoming.take_pack(name), spaces)

    async def receive_archive(
        self, digest: str, chunks: AsyncIterator[bytes], spaces: ProjectSpaces | None = None
    ) -> None:
        """Store an uploaded tar, unless a snapshot with this digest is there already.

        Raises:
            UsageError: it is not a plain tar, holds something else than files, folders and links inside the project, or
                has another digest.
            TooLarge: it has too many bytes or files.
            TooSlow: it came to a stop.
            StoreError: the disk is full.
        """
        import asyncio

        self._check_digest(digest)  # before anything is read
        with refuse_full_disk(self._folder), make_part_file(self._folder) as upload:
            await save_upload(chunks, upload, self._limits)
            await asyncio.to_thread(self._keep_archive, digest, upload, spaces)

    def _keep_archive(self, digest: str, archive: Path, spaces: ProjectSpaces | None = None) -> None:
        """Store the checked files of an archive when they have this digest; otherwise keep nothing of it."""
        try:
            with self._counted_upload():
                with closing(ContentReceiver(self._contents, is_even=spaces is not None)) as receiver:
                    entries = receive_tar(archive, receiver)
                self._check_state(digest, entries)
                with self._changing:
                    self._note_contents(receiver.received, spaces)
                    self._keep_manifest(digest, write_manifest(entries), spaces)
        except BaseException:
            self.sweep_contents()
            raise

    @contextmanager
    def _counted_upload(self) -> Iterator[None]:
        with self._changing:
            self._uploads += 1
        try:
            yield
        finally:
            with self._changing:
                self._uploads -= 1

    def _check_state(self, digest: str, entries: tuple[ArchiveEntry, ...]) -> None:
        computed = digest_manifest(entries)
        if computed != digest:
            raise UsageError(
                f"the project's files have the digest {computed}, and were sent as {digest}",
                "run the command again: a file may have changed on the way",
            )
        if sum(entry.size for entry in entries) > self._limits.most:
            raise self._limits.make_refusal()

    def _note_contents(self, contents: Collection[bytes], spaces: ProjectSpaces | None) -> None:
        """Note that the caller has sent the bytes of these contents."""
        if spaces is not None:
            self._spaces.add_contents(spaces.own, contents)

    def _find_sizes(self, contents: Collection[bytes], spaces: ProjectSpaces | None) -> dict[bytes, int]:
        """Return the bytes of each of these contents that is stored, and that the caller has sent before."""
        if spaces is not None:
            contents = self._spaces.find_contents(spaces.own, contents)
        return self._contents.find_sizes(contents)

    def _find_missing(self, sizes: Mapping[bytes, int], spaces: ProjectSpaces | None) -> list[str]:
        """Return the missing contents (SHA-256, hex), in the order of the files.

        Raises:
            UsageError: a file has another size than its content.
        """
        stored_sizes = self._find_sizes(sizes.keys(), spaces)
        wrong = next((content for content, size in stored_sizes.items() if size != sizes[content]), None)
        if wrong is not None:
            raise UsageError(f"a file has another size than its content {wrong.hex()}", "run the command again")
        return [content.hex() for content in sizes if content not in stored_sizes]

    def _keep_manifest(self, digest: str, data: bytes, spaces: ProjectSpaces | None) -> None:
        """Give a manifest its name, unless it is there already, and note that the caller has the state."""
        if self._read_manifest(digest) is None:
            with make_part_file(self._folder) as part:
                with part.open("wb") as file:
                    file.write(data + hashlib.sha256(data).digest())
                    file.flush()
                    os.fsync(file.fileno())
                os.replace(part, self._manifest_path(digest))
            flush_folder(self._folder)
            reach(Point.PROJECT_KEPT)
        os.utime(self._manifest_path(digest))
        self._remove_former(digest)
        if spaces is not None:
            self._spaces.add_state(spaces.own, digest)

    def _load_manifest(self, digest: str, spaces: ProjectSpaces | None = None) -> bytes:
        data = self._find_readable(digest, spaces)
        if data is None:
            raise NotFound(f"the project's files {digest[:12]} are not on the server", "run `riseml train` again")
        return data

    def _find_readable(self, digest: str, spaces: ProjectSpaces | None) -> bytes | None:
        """Return the manifest of a state that the caller has, as `_find_manifest` does."""
        self._check_digest(digest)
        if spaces is not None and not self._spaces.has_state(spaces.readable, digest):
            return None
        return self._find_manifest(digest)

    def _find_manifest(self, digest: str) -> bytes | None:
        """Return the manifest of a state whose contents are all stored, and note its use; None: there is none."""
        data = self._read_manifest(digest)
        if data is None:
            return self._read_manifest(digest) if self._adopt_former(digest) else None
        lost = self._contents.find_lost()
        if lost and lost & list_contents(data):
            return None
        os.utime(self._manifest_path(digest))
        return data

    def _read_manifest(self, digest: str) -> bytes | None:
        """Return a manifest; None: it is missing or damaged. A damaged one is stored again when a client sends it."""
        path = self._manifest_path(digest)
        try:
            stored = path.read_bytes()
        except FileNotFoundError:
            return None
        data = stored[:-_SUM]
        if hashlib.sha256(data).digest() == stored[-_SUM:]:
            return data
        log.warning("%s is damaged, and is not used", path)
        return None

    def _adopt_former(self, digest: str) -> bool:
        """Convert the snapshot that an earlier version stored under a digest. Return False when there is none."""
        tar = self._former_paths(digest)[0]
        if not tar.exists():
            return False
        try:
            with refuse_full_disk(self._folder):
                self._keep_archive(digest, tar)
        except (UsageError, TooLarge, FileNotFoundError) as error:
            log.warning("the files that an earlier version stored as %s are not used: %s", digest[:12], error)
            return False
        return True

    def _list_former(self, manifests: dict[str, set[bytes]]) -> Iterator[StoredSnapshot]:
        for tar in self._folder.glob(f"*{_FORMER_TAR}"):
            if tar.stem not in manifests and _DIGEST.fullmatch(tar.stem):
                listing = max((path for path in self._former_paths(tar.stem) if path.exists()), key=os.path.getmtime)
                yield StoredSnapshot(tar.stem, tar.stat().st_size, listing.stat().st_mtime)

    def _remove_former(self, digest: str) -> None:
        for path in self._former_paths(digest):
            path.unlink(missing_ok=True)

    def _former_paths(self, digest: str) -> list[Path]:
        return [self._manifest_path(digest).with_suffix(suffix) for suffix in (_FORMER_TAR, *_FORMER_LISTS)]

    def _manifest_path(self, digest: str) -> Path:
        return self._folder / f"{self._check_digest(digest)}{_MANIFEST}"

    @staticmethod
    def _check_digest(digest: str) -> str:
        if not _DIGEST.fullmatch(digest):
            raise UsageError(f"{digest[:80]!r} is not the digest of a project", "it is a SHA-256 in hex")
        return digest


def _name_space(spaces: ProjectSpaces | None) -> str:
    return "" if spaces is None else spaces.own


def _list_sizes(entries: Iterable[ArchiveEntry]) -> dict[bytes, int]:
    """Return the size of each content, in the order of the files.

    Raises:
        UsageError: two files with one content have other sizes.
    """
    sizes: dict[bytes, int] = {}
    for entry in entries:
        if entry.kind is EntryKind.FILE and sizes.setdefault(bytes.fromhex(entry.content), entry.size) != entry.size:
            raise UsageError(f"{entry.path!r} has another size than its content", "run the command again")
    return sizes
