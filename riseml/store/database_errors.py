"""What a database's refusal means for people: what is wrong with the store, where it is, what to do next."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from sqlalchemy import URL
from sqlalchemy.exc import DBAPIError, IntegrityError, InterfaceError, OperationalError, SQLAlchemyError

from riseml.errors import StoreError

_LOOK = "if the answer to a command was lost, look with `riseml status` before you repeat it"
_RESTORE = "restore it from a backup, or move it away"
_PRIMARY = 0xFF  # SQLite's extended codes carry the primary one in their lowest byte


def translate_database_error(error: SQLAlchemyError, url: URL) -> StoreError | None:
    """The error as one of ours; None when it is no trouble of the store but a mistake of who asked."""
    where = url.render_as_string(hide_password=True)
    if not isinstance(error, DBAPIError):
        return StoreError(f"the store {where} is too busy to answer", "try again in a moment")
    if isinstance(error.orig, sqlite3.Error):
        return _explain_sqlite(error.orig, Path(url.database or ""))
    if isinstance(error, IntegrityError):
        return None
    if _is_locked(error):
        return StoreError(f"the store {where} is locked by somebody else", "try again when they are done")
    if error.connection_invalidated or isinstance(error, (OperationalError, InterfaceError)):
        said = (str(error.orig).strip().splitlines() or ["no further word"])[0]
        return StoreError(f"the store {where} does not answer: {said}", f"is PostgreSQL running there? {_LOOK}")
    return None


def _is_locked(error: DBAPIError) -> bool:
    return getattr(error.orig, "sqlstate", None) == "55P03"


def _explain_sqlite(error: sqlite3.Error, path: Path) -> StoreError | None:
    match getattr(error, "sqlite_errorcode", 0) & _PRIMARY:
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            said = "is locked by another process", f"`fuser {path}` names it; try again when it is done"
        case sqlite3.SQLITE_FULL:
            said = "cannot grow: its disk is full", f"free some space in {path.parent}; what was accepted goes on then"
        case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB:
            said = f"is damaged: {error}", _RESTORE
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_PERM | sqlite3.SQLITE_AUTH:
            said = f"cannot be opened: {error}", f"make {path.parent} and what is in it yours and writable"
        case sqlite3.SQLITE_IOERR:
            said = f"cannot be read or written: {error}", f"is the disk of {path.parent} full or failing? {_LOOK}"
        case _:
            return None
    return StoreError(f"the store {path} {said[0]}", said[1])
