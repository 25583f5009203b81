"""Who may use which state of a project: a table of spaces beside the snapshots of a team's server.

The contents of all users are stored once. A space is what one user, or one team project, has proven to have: a content
enters it when its bytes came from there, and a state when all of its contents are in it. What is in no space of a user
does not exist for this user: the server asks for its bytes again, and answers as if it were not stored.

The table holds no content. Without it nobody has anything, and clients send their files again.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import threading
from collections.abc import Collection, Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from riseml.base.errors import StoreError
from riseml.base.records import dataclass

_TABLE = "spaces.db"
_PATIENCE = 60.0  # seconds to wait for another thread's transaction
_PER_QUERY = 500  # contents in one query
_SCHEMA = """
CREATE TABLE IF NOT EXISTS contents (space TEXT, hash BLOB, PRIMARY KEY (space, hash)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS states (space TEXT, digest TEXT, PRIMARY KEY (space, digest)) WITHOUT ROWID;
"""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ProjectSpaces:
    """The spaces of one caller."""

    own: str  # gets what the caller sends: `user:paul`, or `project:vision`
    shared: tuple[str, ...] = ()  # whose states the caller may use, too

    @property
    def readable(self) -> tuple[str, ...]:
        """The spaces whose states the caller may use."""
        return (self.own, *self.shared)


def name_user_space(user: str) -> str:
    """Return the name of a user's own space."""
    return f"user:{user}"


def name_project_space(project: str) -> str:
    """Return the name of the space that the members of a team project share."""
    return f"project:{project}"


class SpaceTable:
    """The table in one folder, which belongs to one server. The first use makes the file."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / _TABLE
        self._making = threading.Lock()
        self._is_made = False

    def add_contents(self, space: str, contents: Iterable[bytes]) -> None:
        """Note that a space has these contents."""
        with self._connect() as table:
            table.executemany(
                "INSERT OR IGNORE INTO contents VALUES (?, ?)", [(space, content) for content in contents]
            )

    def find_contents(self, space: str, contents: Collection[bytes]) -> frozenset[bytes]:
        """Return those of these contents that a space has."""
        hashes = list(contents)
        owned: set[bytes] = set()
        with self._connect() as table:
            for start in range(0, len(hashes), _PER_QUERY):
                part = hashes[start : start + _PER_QUERY]
                query = f"SELECT hash FROM contents WHERE space = ? AND hash IN ({','.join('?' * len(part))})"  # marks
                owned.update(row[0] for row in table.execute(query, (space, *part)))
        return frozenset(owned)

    def add_state(self, space: str, digest: str) -> None:
        """Note that a space has a state, all of whose contents it has."""
        with self._connect() as table:
            table.execute("INSERT OR IGNORE INTO states VALUES (?, ?)", (space, digest))

    def has_state(self, spaces: Collection[str], digest: str) -> bool:
        """Return True when one of these spaces has a state."""
        with self._connect() as table:
            rows = table.execute("SELECT space FROM states WHERE digest = ?", (digest,)).fetchall()
        return any(row[0] in spaces for row in rows)

    def forget_state(self, digest: str) -> None:
        """Forget a state, which is not stored any more."""
        if self._path.exists():
            with self._connect() as table:
                table.execute("DELETE FROM states WHERE digest = ?", (digest,))

    def forget_all_contents_but(self, live: Collection[bytes]) -> None:
        """Forget the contents that are not stored any more: all but these."""
        if self._path.exists():
            with self._connect() as table:
                rows = table.execute("SELECT DISTINCT hash FROM contents").fetchall()
                dead = [row for row in rows if row[0] not in live]
                table.executemany("DELETE FROM contents WHERE hash = ?", dead)

    @contextmanager
    def _connect(self) -> Iterator[sqlite3.Connection]:
        """Open the table for one transaction; make it before the first one, and again when it is damaged then."""
        try:
            with self._making:
                if not self._is_made:
                    self._make_table()
                    self._is_made = True
            with closing(sqlite3.connect(self._path, timeout=_PATIENCE)) as table, table:
                yield table
        except sqlite3.Error as error:
            raise StoreError(
                f"the table of who may use which files, {self._path}, cannot be used: {error}",
                "free some space, or check the disk",
            ) from error

    def _make_table(self) -> None:
        try:
            self._open_table()
        except sqlite3.DatabaseError:
            log.warning("%s is damaged: clients send the files of their projects again", self._path)
            for left in self._path.parent.glob(f"{_TABLE}*"):
                left.unlink()
            self._open_table()

    def _open_table(self) -> None:
        os.close(os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
        with closing(sqlite3.connect(self._path, timeout=_PATIENCE)) as table:
            table.execute("PRAGMA journal_mode=WAL")
            table.executescript(_SCHEMA)
            table.execute("SELECT COUNT(*) FROM contents, states WHERE 0").fetchone()
