"""Where experiments run: on the hosts of pool.yml, or only here (local mode), and which executor ran them last."""

from __future__ import annotations

import os
from pathlib import Path

from riseml.base.errors import StoreError, advise_on_write
from riseml.base.records import dataclass
from riseml.base.states import Network
from riseml.spec.pool.types import DiskSpec, PoolSpec

_LAST_EXECUTOR_FILE = "server.executor"  # in RISEML_HOME


@dataclass(frozen=True, slots=True)
class LocalMode:
    """No pool.yml is in force: this machine is the only host."""

    executor: str  # `docker` or `process`, as RISEML_EXECUTOR names it
    note: str = ""  # why jobs run as processes although RISEML_EXECUTOR does not ask for it; empty otherwise
    undecided: bool = False  # True when no engine answered, and the user has not chosen processes


@dataclass(frozen=True, slots=True)
class PoolMode:
    """The hosts of pool.yml are in force: Docker Engines, or one cluster, which names no hosts."""

    spec: PoolSpec


HostMode = LocalMode | PoolMode


def choose_network(mode: HostMode) -> Network:
    """Return the network of gangs on several hosts. BRIDGE means that no gang spans several hosts."""
    match mode:
        case LocalMode():
            return Network.BRIDGE
        case PoolMode(spec):
            alone = len(spec.hosts) <= 1 and spec.network is Network.OVERLAY  # a cluster takes whole gangs
            return Network.BRIDGE if alone else spec.network


def encrypts_networks(mode: HostMode) -> bool:
    """Return True when networks across hosts are encrypted."""
    match mode:
        case LocalMode():
            return True
        case PoolMode(spec):
            return spec.encrypted


def shares_output(mode: HostMode) -> bool:
    """Return True when every host sees the same output folders."""
    match mode:
        case LocalMode():
            return True
        case PoolMode(spec):
            return len(spec.hosts) <= 1 or spec.output is not None


def find_registry(mode: HostMode) -> str | None:
    """Return the registry that moves environments between hosts, `host[:port]/path`; None when the pool has none."""
    match mode:
        case LocalMode():
            return None
        case PoolMode(spec):
            return spec.registry


def find_clean_above(mode: HostMode, default: int | None) -> int | None:
    """Return the per cent of a disk above which the server makes room; None: it never does.

    Args:
        mode: where experiments run.
        default: what the server's settings say.
    """
    match mode:
        case PoolMode(PoolSpec(disk=DiskSpec(clean_above))):
            return clean_above
        case _:
            return default


def read_last_executor(home: Path) -> str | None:
    """Return the executor that the server of this home used last, as RISEML_EXECUTOR names it: waiting
    experiments were accepted for it. None when only an older version has run here.
    """
    try:
        return (home / _LAST_EXECUTOR_FILE).read_text("utf-8", "replace").strip()
    except OSError:
        return None


def record_executor(home: Path, name: str) -> None:
    """Remember the executor, before the first experiment is accepted for it.

    Raises:
        StoreError: the home cannot be written.
    """
    if read_last_executor(home) == name:
        return
    fresh = home / f"{_LAST_EXECUTOR_FILE}.new"
    try:
        with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600), "w") as file:
            file.write(f"{name}\n")
        fresh.replace(home / _LAST_EXECUTOR_FILE)
    except OSError as error:
        raise StoreError(f"{home} cannot be written: {error.strerror}", advise_on_write(error)) from error
