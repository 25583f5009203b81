"""`riseml server move`: a home that was copied, restored or moved to another machine becomes the owner of its store.

The former home is retired first, where this machine has it, so that at no moment both may act: its store says from then
on that it belongs to the new home.
"""

from __future__ import annotations

import sqlite3
from contextlib import ExitStack, closing
from pathlib import Path

from riseml.base.errors import NotFound, Refused
from riseml.base.home_location import HomeLocation, find_location
from riseml.base.records import dataclass
from riseml.base.settings import Settings
from riseml.executors.kinds import count_running_processes
from riseml.executors.this_machine.removal import remove_tree
from riseml.server.home_lock import HomeLock
from riseml.server.identity import read_identity
from riseml.store.database import Database
from riseml.store.home_record import (
    is_original_there,
    load_home_record,
    load_server_id,
    write_home_into_file,
    write_home_record,
)

_LOCKED = 5.0  # seconds to wait for the store of the former home


@dataclass(frozen=True, slots=True)
class HomeMove:
    """What `move_home` did."""

    former: HomeLocation | None  # the home that the store belonged to; None: it belonged to no other one
    retired: bool  # the former home is there, and says from now on that it is a copy
    environments: bool  # the environments of the copy were removed: they name paths of the former home


def move_home(settings: Settings) -> HomeMove:
    """Make the home of these settings the owner of its store.

    Raises:
        NotFound: the home has no store.
        Refused: a server of this home or of the former one runs, or jobs run as processes of the former one.
        StoreError: a store cannot be used.
    """
    if settings.store is None and not (settings.home / "riseml.db").exists():
        raise NotFound(f"{settings.home} has no store, so that there is nothing to move", "set RISEML_HOME to the home")
    location = find_location(settings.home)
    with ExitStack() as stack:
        stack.enter_context(HomeLock(settings.home, settings.lock)).take()
        database = stack.enter_context(closing(Database(settings.database, f"`riseml server move` of {location.path}")))
        with database.read_transaction() as connection:
            former = load_home_record(connection)
            server = load_server_id(connection)
        if former is None or location.is_same_home(former):
            _record_owner(database, location)
            return HomeMove(None, retired=False, environments=False)
        retired = False
        if is_original_there(former, location) and _is_home_of(Path(former.path), server):
            retired = _retire_home(stack, Path(former.path), location)
        _record_owner(database, location)
    outdated = settings.home / "environments"
    remove = former.path != location.path and outdated.is_dir()
    if remove:
        remove_tree(outdated)
    return HomeMove(former, retired, remove)


def _record_owner(database: Database, home: HomeLocation) -> None:
    with database.write_transaction() as connection:
        write_home_record(connection, home)


def _is_home_of(home: Path, server: str | None) -> bool:
    """Return True when a folder is a home of this server, and not one that was made at the same place later."""
    return server is not None and server in (read_identity(home / "server.id"), _read_server_id(home / "riseml.db"))


def _retire_home(stack: ExitStack, home: Path, owner: HomeLocation) -> bool:
    """Let the store of a former home say that it belongs to `owner`. The lock is held until the stack is closed."""
    stack.enter_context(HomeLock(home, home / "server.lock")).take()
    running = count_running_processes(home)
    if running:
        raise Refused(
            f"processes write into {home}: {running} of its jobs run there",
            "wait for their end there, or kill them with its RISEML_HOME; then move",
        )
    path = home / "riseml.db"
    if not path.exists():  # its store is a PostgreSQL, which the caller writes
        return True
    write_home_into_file(path, owner)
    return True


def _read_server_id(path: Path) -> str | None:
    """Return the id of the server of a store's file; None: it has none, or is not a store."""
    if not path.exists():
        return None
    try:
        with closing(sqlite3.connect(path, timeout=_LOCKED)) as connection:
            row = connection.execute("SELECT value FROM facts WHERE name = 'server'").fetchone()
    except sqlite3.Error:
        return None
    return None if row is None else str(row[0])
