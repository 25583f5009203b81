"""The contents of all projects' files, each stored once under its SHA-256: packs of many contents, and a table of
places.

A content enters the table after its pack is on the disk, so that every entry has its bytes, whenever the server or the
machine stops. Every content is checked when it is read. A damaged or missing content is recorded as lost, and stored
again when a client sends it. A content that the disk cannot read at the moment does not count as lost.
"""

from __future__ import annotations

import hashlib
import logging
import os
import sqlite3
from collections.abc import Collection, Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from riseml.base.errors import EngineError, StoreError
from riseml.base.faultpoints import Point, reach
from riseml.base.records import dataclass
from riseml.files.archives.pieces import RECORD
from riseml.store.projects.packs import PACK, PART, NewPack, OpenPacks, PackedContent, PackFile, flush_folder, scan_pack

_TABLE = "contents.db"
_PATIENCE = 60.0  # seconds to wait for another thread's transaction
_READ = 1 << 18  # bytes read at once
_PER_QUERY = 500  # contents in one query
_TIMES_ASKED = 4  # read the whole table when it has at most this many rows for each requested content
_LEAST_USED = 0.5  # share of a pack's bytes in use; below it, the rest is copied to another pack
_SCHEMA = """
CREATE TABLE IF NOT EXISTS packs (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT UNIQUE, size INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS contents (
    hash BLOB PRIMARY KEY, pack INTEGER NOT NULL, at INTEGER NOT NULL, size INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS contents_of_pack ON contents (pack);
CREATE TABLE IF NOT EXISTS lost (hash BLOB PRIMARY KEY) WITHOUT ROWID;
"""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ContentPlace:
    """Where a content is."""

    pack: str  # name of the file
    at: int
    size: int


class DamagedContent(StoreError):
    """A stored content is damaged (its SHA-256 differs from its name) or missing. It is recorded as lost."""


class ContentStore:
    """The contents below one folder, which belongs to one server.

    Args:
        folder: is created when it is missing; what a server that was killed left there is removed.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._open_table()
        self._compare_with_disk()

    def find_places(self, contents: Collection[bytes]) -> dict[bytes, ContentPlace]:
        """Return the places of these contents; missing contents are left out."""
        hashes = list(contents)
        places = dict[bytes, ContentPlace]()
        with self._connect() as table:
            for start in range(0, len(hashes), _PER_QUERY):
                part = hashes[start : start + _PER_QUERY]
                query = (
                    "SELECT hash, name, at, contents.size FROM contents JOIN packs ON packs.id = pack"
                    f" WHERE hash IN ({','.join('?' * len(part))})"  # marks alone
                )
                places |= {content: ContentPlace(*place) for content, *place in table.execute(query, part)}
        return places

    def find_sizes(self, contents: Collection[bytes]) -> dict[bytes, int]:
        """Return the bytes of each of these contents; missing contents are left out."""
        hashes = list(contents)
        sizes = dict[bytes, int]()
        with self._connect() as table:
            if len(hashes) > _PER_QUERY:  # reading the whole table is faster, unless it has many more rows
                most = _TIMES_ASKED * len(hashes)
                rows = table.execute("SELECT hash, size FROM contents LIMIT ?", (most,)).fetchall()
                if len(rows) < most:
                    every = dict(rows)
                    return {content: every[content] for content in hashes if content in every}
            for start in range(0, len(hashes), _PER_QUERY):
                part = hashes[start : start + _PER_QUERY]
                query = f"SELECT hash, size FROM contents WHERE hash IN ({','.join('?' * len(part))})"  # marks alone
                sizes.update(table.execute(query, part))
        return sizes

    def find_lost(self) -> frozenset[bytes]:
        """Return the contents that were stored, and are damaged or missing."""
        with self._connect() as table:
            return frozenset(row[0] for row in table.execute("SELECT hash FROM lost"))

    def read_contents(self, contents: Iterable[bytes]) -> Iterator[Iterator[bytes]]:
        """Yield each of these contents in pieces. Read its pieces before the next content.

        Raises:
            DamagedContent: one is damaged or gone; while it is read.
            EngineError: one cannot be read at the moment, and is kept; while it is read.
        """
        contents = list(contents)
        places = self.find_places(contents)
        with OpenPacks(self.folder) as packs:
            for content in contents:
                yield self._read_content(packs, content, places.get(content))

    def read_text(self, content: bytes) -> str:
        """Return a small content as text.

        Raises:
            DamagedContent: it is damaged or gone.
            EngineError: it cannot be read at the moment.
        """
        return "".join(b"".join(pieces).decode("utf-8", "replace") for pieces in self.read_contents([content]))

    def add_pack(self, pack: NewPack, instead: int | None = None) -> None:
        """Wait until a complete pack is on the disk, give it its name, and enter its contents; stored ones keep their
        places.

        Args:
            pack: the pack.
            instead: the number of the pack that this one replaces in the table; None: none.

        Raises:
            StoreError: the table cannot be written.
            OSError: the disk is full.
        """
        pack.flush()
        path = pack.path.with_suffix(PACK)
        os.replace(pack.path, path)
        try:
            flush_folder(self.folder)
            reach(Point.PACK_NAMED)
            with self._connect() as table:
                if instead is not None:
                    table.execute("DELETE FROM contents WHERE pack = ?", (instead,))
                    table.execute("DELETE FROM packs WHERE id = ?", (instead,))
                self._enter_contents(table, path.name, pack.size, pack.contents)
        except (OSError, StoreError):
            path.unlink(missing_ok=True)  # no table names it, and it takes room on a disk that may be full
            raise

    def remove_all_but(self, live: Collection[bytes]) -> int:
        """Remove every content but these, and return the bytes that the disk got back.

        Raises:
            StoreError: the table cannot be written.
            OSError: the disk is full.
        """
        before = self._count_bytes()
        with self._connect() as table:
            for name in ("contents", "lost"):
                dead = [row for row in table.execute(f"SELECT hash FROM {name}") if row[0] not in live]
                table.executemany(f"DELETE FROM {name} WHERE hash = ?", dead)  # names from above
            packs = table.execute(
                f"SELECT packs.id, name, packs.size, COALESCE(SUM(contents.size + {RECORD.size}), 0)"
                " FROM packs LEFT JOIN contents ON pack = packs.id GROUP BY packs.id"
            ).fetchall()
        for number, name, size, used in packs:
            if used < size * _LEAST_USED:
                with suppress(EngineError):  # the pack cannot be read now: leave it until the next sweep
                    self._shrink_pack(number, name)
        return before - self._count_bytes()

    def _shrink_pack(self, number: int, name: str) -> None:
        """Copy the remaining contents of a pack to a new one, and remove the pack."""
        with self._connect() as table:
            rows = table.execute("SELECT hash, size FROM contents WHERE pack = ? ORDER BY at", (number,)).fetchall()
        with PackFile(self.folder) as fresh:
            for (_, size), pieces in zip(rows, self.read_contents([row[0] for row in rows]), strict=True):
                fresh.begin_content(size)
                try:
                    for piece in pieces:
                        fresh.add_bytes(piece)
                except DamagedContent:  # it is noted as lost
                    fresh.drop_content()
                else:
                    fresh.keep_content()
            moved = fresh.finish()
            if moved is not None:
                self.add_pack(moved, instead=number)
        with self._connect() as table:
            table.execute("DELETE FROM packs WHERE id = ?", (number,))
        (self.folder / name).unlink(missing_ok=True)

    def _count_bytes(self) -> int:
        return sum(path.stat().st_size for path in self.folder.glob(f"*{PACK}"))

    def _read_content(self, packs: OpenPacks, content: bytes, place: ContentPlace | None) -> Iterator[bytes]:
        """Yield the pieces of a content; the last piece only when the SHA-256 of the whole is right."""
        if place is None:
            raise self._record_loss(content)
        digest = hashlib.sha256()
        at = place.at
        end = place.at + place.size
        last_piece = b""
        while at < end:
            piece = self._read_piece(packs, place.pack, at, min(end - at, _READ))
            if not piece:
                break
            digest.update(piece)
            if last_piece:
                yield last_piece
            last_piece = piece
            at += len(piece)
        if digest.digest() != content:
            moved = self.find_places([content]).get(content)
            # pieces of a long content have been yielded already
            if moved is None or moved == place or at > place.at + _READ:
                raise self._record_loss(content)
            yield from self._read_content(packs, content, moved)
            return
        yield last_piece

    def _read_piece(self, packs: OpenPacks, pack: str, at: int, size: int) -> bytes:
        try:
            return packs.read(pack, at, size)
        except FileNotFoundError:
            return b""
        except OSError as error:  # an error of the disk, or too many open files: the bytes may be good, so keep them
            log.warning("%s cannot be read: %s", self.folder / pack, error.strerror)
            raise EngineError(
                f"the server cannot read the files of a project: {error.strerror}", "see the server's log"
            ) from error

    def _record_loss(self, content: bytes) -> DamagedContent:
        log.warning("the content %s of a project's file is damaged or gone", content.hex())
        with self._connect() as table:
            table.execute("DELETE FROM contents WHERE hash = ?", (content,))
            table.execute("INSERT OR IGNORE INTO lost VALUES (?)", (content,))
        return DamagedContent(
            f"the content {content.hex()[:12]} of a project's file is damaged on the server",
            "run `riseml train` again: it sends the file again",
        )

    @staticmethod
    def _enter_contents(table: sqlite3.Connection, name: str, size: int, contents: Iterable[PackedContent]) -> None:
        number = table.execute("INSERT INTO packs (name, size) VALUES (?, ?)", (name, size)).lastrowid
        rows = [(packed.content, number, packed.at, packed.size) for packed in contents]
        table.executemany("INSERT OR IGNORE INTO contents VALUES (?, ?, ?, ?)", rows)
        table.executemany("DELETE FROM lost WHERE hash = ?", [row[:1] for row in rows])

    @contextmanager
    def _connect(self) -> Iterator[sqlite3.Connection]:
        """Open the table for one transaction."""
        try:
            with closing(sqlite3.connect(self.folder / _TABLE, timeout=_PATIENCE)) as table, table:
                yield table
        except sqlite3.Error as error:
            raise StoreError(
                f"the table of the projects' files, {self.folder / _TABLE}, cannot be used: {error}",
                "free some space, or check the disk; a server that starts rebuilds a damaged table",
            ) from error

    def _open_table(self) -> None:
        """Create the table when it is missing, and rebuild it from the packs when it is damaged."""
        path = self.folder / _TABLE
        fresh = not path.exists()
        with suppress(sqlite3.DatabaseError):
            self._make_table(path)
            if not fresh:
                return
        for left in [] if fresh else self.folder.glob(f"{_TABLE}*"):
            left.unlink()
        with self._connect():
            self._make_table(path)
        for pack in self.folder.glob(f"*{PACK}"):
            log.warning("the table of the projects' files was damaged or gone: %s is read again", pack.name)
            contents = tuple(scan_pack(pack))
            with self._connect() as table:
                self._enter_contents(table, pack.name, pack.stat().st_size, contents)

    @staticmethod
    def _make_table(path: Path) -> None:
        with closing(sqlite3.connect(path, timeout=_PATIENCE)) as table:
            table.execute("PRAGMA journal_mode=WAL")
            table.executescript(_SCHEMA)
            table.execute("SELECT COUNT(*) FROM packs, contents, lost WHERE 0").fetchone()

    def _compare_with_disk(self) -> None:
        """Remove packs that are not in the table, and record the contents of missing packs as lost."""
        with self._connect() as table:
            sizes = dict(table.execute("SELECT name, size FROM packs"))
            for name, size in sizes.items():
                path = self.folder / name
                if not path.exists() or path.stat().st_size != size:
                    log.warning("%s is gone or has another size: its files are sent again", path)
                    query = "SELECT hash FROM contents JOIN packs ON id = pack WHERE name = ?"
                    table.execute(f"INSERT OR IGNORE INTO lost {query}", (name,))  # texts of this module
                    table.execute(f"DELETE FROM contents WHERE hash IN ({query})", (name,))
                    table.execute("DELETE FROM packs WHERE name = ?", (name,))
                    sizes = {other: bytes_ for other, bytes_ in sizes.items() if other != name}
        for path in (*self.folder.glob(f"*{PART}"), *self.folder.glob(f"*{PACK}")):
            if path.name not in sizes:
                path.unlink()
