"""The server itself, and the whole system."""

from __future__ import annotations

from typing_extensions import TypedDict

from riseml.wire.pool import HostView


class ServerView(TypedDict):
    """The server that answers."""

    version: str  # version of riseml
    revision: str  # digest of the shapes and addresses: two servers of one version may differ
    package: str  # folder of the riseml that it runs
    id: str  # label of every container that the server starts
    pid: int  # its process
    started_at: str  # RFC 3339
    home: str  # its RISEML_HOME
    executor: str  # what runs jobs, as RISEML_EXECUTOR names it: `docker`
    note: str  # why jobs run without Docker, or why pool.yml is not usable; empty: neither
    missing_engine: str  # why no engine answers, while the user has not chosen processes: no job runs; else empty
    engine: str  # URL of the local engine; empty when pool.yml names the hosts
    output: str  # the output root of this machine
    data: str  # the data folder of this machine
    problem: str  # why the server can decide nothing now, such as a full disk; empty: it can
    active: int  # experiments that have not ended
    closing: int  # experiments that have ended, and of which something is left on a host
    searches: int  # that make further trials
    state: str  # `serving`, or `standby`: it waits to take the place of `holder`, and answers nothing else
    holder: str  # in words, for whom a standby waits; else empty
    holder_since: str  # RFC 3339: since when that one has served; empty: not known
    holder_address: str  # where clients reach that one; empty: not known


class NewTeam(TypedDict):
    """The server of a team that `riseml server init` has made."""

    file: str  # server.yml
    listen: str  # host:port
    url: str  # where users log in
    names: list[str]  # host names and addresses that the server answers to
    fingerprint: str  # that users compare: SHA256: and 43 characters
    admin: str  # name of the first user
    key: str  # of the admin; nobody can read it again


class MovedHome(TypedDict):
    """What `riseml server move` did."""

    home: str  # that is the owner of its store now
    former: str | None  # the home that was; null: it was this one already
    former_host: str | None  # the machine of the former home
    retired: bool  # the former home is on this machine, and says from now on that it is a copy
    environments_removed: bool  # those of the copy named paths of the former home, and are made again


class BackedUpHome(TypedDict):
    """What `riseml server backup` wrote."""

    file: str
    size: int  # bytes
    home: str
    store: bool  # false: the store is a PostgreSQL, which has backups of its own
    left_out: list[str]  # folders of the home that are not in it


class RestoredHome(TypedDict):
    """What `riseml server restore` made."""

    home: str
    former: str  # the home that the backup is of
    former_host: str  # its machine
    store: bool  # false: the store is a PostgreSQL, which has backups of its own
    owner: bool  # false: the restored home is a copy until `riseml server move`


class SystemView(TypedDict):
    """The server and its hosts."""

    server: ServerView
    hosts: list[HostView]
