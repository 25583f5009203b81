"""The home that a store belongs to. A copy of a home, or of a store, must not touch what the original has started.

A row of `facts` says where the home is (`home_location`). A server whose home is elsewhere is refused before it asks
any host; `riseml server move` makes its home the owner.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import sqlalchemy as sa

from riseml.base.errors import StoreError
from riseml.base.home_location import HomeLocation, is_other_folder, read_text
from riseml.base.records import dataclass
from riseml.store.schema import facts

_HOME = "home"  # name of the row among the facts
_LOCKED = 5.0  # seconds to wait while another process has locked the file


@dataclass(frozen=True, slots=True)
class OwnHome:
    """The home of the server that opens a store."""

    location: HomeLocation
    server: str | None = None  # id of the home's server; None: no server has used the home
    is_shared: bool = False  # servers of several machines share its folder


def load_home_record(connection: sa.Connection) -> HomeLocation | None:
    """Return where the home of a store was when its server last started; None: no server has said it yet."""
    text = connection.execute(sa.select(facts.c.value).where(facts.c.name == _HOME)).scalar()
    return None if text is None else read_text(text)


def load_server_id(connection: sa.Connection) -> str | None:
    """Return the id of a store's server; None: no server has used the store."""
    server = connection.execute(sa.select(facts.c.value).where(facts.c.name == "server")).scalar()
    return None if server is None else str(server)


def check_home_record(connection: sa.Connection, own: OwnHome) -> None:
    """Refuse a home that is not the one that the store belongs to.

    Raises:
        StoreError: the store is that of another server, or the home or the store is a copy.
    """
    home = own.location
    server = load_server_id(connection)
    if own.server is not None and server not in (None, own.server):
        raise StoreError(
            f"the store is that of server {str(server)[:8]}, and {home.path} is the home of server {own.server[:8]}",
            "restore the store, or set RISEML_STORE or RISEML_HOME right; to start afresh, remove "
            f"{home.path}/server.id",
        )
    owner = load_home_record(connection)
    if owner is None or home.is_same_home(owner) or (own.is_shared and home.is_shared_home(owner)):
        return
    where = _describe_owner(owner, home)
    use = f"to use that one, set RISEML_HOME={owner.path}; " if is_original_there(owner, home) else ""
    if home.is_shared_home(owner):
        use = "if servers of both machines share this folder, set RISEML_LOCAL for both (`riseml docs reliability`); "
    raise StoreError(
        f"RISEML_HOME {home.path} is a copy: its experiments belong to {where}",
        f"{use}if this home lives on instead of it, run `riseml server move` here; until then riseml touches nothing",
    )


def make_other_store_error(own: OwnHome) -> StoreError:
    """Return the error of a store without tables of riseml, in a home that had one with experiments."""
    path = own.location.path
    return StoreError(
        f"the store has nothing of riseml, and {path} had another one",
        f"restore the store, or set RISEML_STORE or RISEML_HOME right; to start afresh, remove {path}/server.id",
    )


def write_home_record(connection: sa.Connection, home: HomeLocation) -> None:
    """Record that a store belongs to a home."""
    text = home.write_text()
    before = connection.execute(sa.select(facts.c.value).where(facts.c.name == _HOME)).scalar()
    if before is None:
        connection.execute(facts.insert().values(name=_HOME, value=text))
    elif before != text:
        connection.execute(facts.update().where(facts.c.name == _HOME).values(value=text))


def write_home_into_file(store: Path, home: HomeLocation) -> None:
    """Record in the file of a store that no server uses that it belongs to a home. The tables stay as they are.

    Raises:
        StoreError: the file cannot be written, or is not a store.
    """
    try:
        with closing(sqlite3.connect(store, timeout=_LOCKED)) as connection, connection:
            values = (_HOME, home.write_text())
            connection.execute("INSERT OR REPLACE INTO facts (name, value) VALUES (?, ?)", values)
    except sqlite3.Error as error:
        raise StoreError(f"the store {store} cannot be written: {error}", "make it writable, or remove it") from error


def is_original_there(owner: HomeLocation, home: HomeLocation) -> bool:
    """Return True when another folder than `home` is where the home of the store was, on this machine."""
    return home.is_on_machine_of(owner) and is_other_folder(owner.path, home)


def _describe_owner(owner: HomeLocation, home: HomeLocation) -> str:
    if not home.is_on_machine_of(owner):
        return f"the home {owner.path} on the machine {owner.host or 'of another id'}"
    if home.path == owner.path:
        return "another folder, which was at this path before"
    state = "still there" if is_other_folder(owner.path, home) else "gone"
    return f"the home {owner.path} of this machine, which is {state}"
