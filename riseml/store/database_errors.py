"""Errors of a database in plain words: what is wrong with the store, where it is, and what to do next."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, IntegrityError, InterfaceError, OperationalError, SQLAlchemyError

from riseml.base.errors import StoreError

_CHECK_STATUS = "if a command got no answer, check with `riseml status` before you repeat it"
_LOCK_NOT_AVAILABLE = "55P03"  # code of PostgreSQL
_RESTORE = "restore it from a backup, or move it away"
_PRIMARY_CODE = 0xFF  # an extended code of SQLite has the primary code in its lowest byte


_SECRETS = frozenset({"password", "sslpassword"})  # parameters of PostgreSQL's connections


def read_address(text: str) -> URL:
    """Return the address of a store.

    Raises:
        StoreError: it is not an address. The message leaves out the text, which may have a password.
    """
    try:
        return make_url(text)
    except (ValueError, ArgumentError):
        hint = "write RISEML_STORE as postgresql://user:password@host:5432/database"
        raise StoreError("the address of the store cannot be read", hint) from None


def show_address(url: URL) -> str:
    """Return the address of a store for people: without its password, wherever it stands."""
    query = {name: "hidden" if name in _SECRETS else value for name, value in url.query.items()}
    return url.set(query=query).render_as_string(hide_password=True)


def translate_database_error(error: SQLAlchemyError, url: URL) -> StoreError | None:
    """Return the error as a `StoreError`; None when the store works and the query was wrong."""
    where = show_address(url)
    if not isinstance(error, DBAPIError):
        return StoreError(f"the store {where} is too busy to answer", "try again in a moment")
    if isinstance(error.orig, sqlite3.Error):
        return _translate_sqlite_error(error.orig, Path(url.database or ""))
    if isinstance(error, IntegrityError):
        return None
    if is_lock_timeout(error):
        return StoreError(f"the store {where} is locked by another process", "try again when it is done")
    if error.connection_invalidated or isinstance(error, (OperationalError, InterfaceError)):
        reason = (str(error.orig).strip().splitlines() or ["without a reason"])[0]
        return StoreError(
            f"the store {where} does not answer: {reason}", f"is PostgreSQL running there? {_CHECK_STATUS}"
        )
    return None


def is_lock_timeout(error: DBAPIError) -> bool:
    """Return True when PostgreSQL reports that a lock was not available in time."""
    return getattr(error.orig, "sqlstate", None) == _LOCK_NOT_AVAILABLE


def describe_full_disk(path: Path) -> StoreError:
    """Return the error of a write to SQLite's file on a full disk."""
    return StoreError(
        f"the store {path} cannot grow: its disk is full",
        f"free some space in {path.parent}; accepted experiments go on then, and `riseml kill` works before",
    )


def _translate_sqlite_error(error: sqlite3.Error, path: Path) -> StoreError | None:
    match getattr(error, "sqlite_errorcode", 0) & _PRIMARY_CODE:
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            cause = "is locked by another process"
            hint = f"`fuser {path}` names it; try again when it is done"
        case sqlite3.SQLITE_FULL:
            return describe_full_disk(path)
        case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB:
            cause = f"is damaged: {error}"
            hint = _RESTORE
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_PERM | sqlite3.SQLITE_AUTH:
            cause = f"cannot be opened: {error}"
            hint = f"make {path.parent} and what is in it yours and writable"
        case sqlite3.SQLITE_IOERR:
            cause = f"cannot be read or written: {error}"
            hint = f"is the disk of {path.parent} full or failing? {_CHECK_STATUS}"
        case _:
            return None
    return StoreError(f"the store {path} {cause}", hint)
