"""What pool.yml says, settled: the hosts that experiments may use and what they share."""

from __future__ import annotations

from dataclasses import dataclass

from riseml.names import HostName
from riseml.states import Network

Pairs = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Tls:
    """Files of a mutual TLS connection, as absolute paths: who signed the engine, who we are."""

    ca: str
    cert: str
    key: str


@dataclass(frozen=True, slots=True)
class HostSpec:
    """One Docker Engine.

    `url` is `unix:///path`, `ssh://user@host[:port][/path]` or `tcp://host:port` (`engine_url.read_url` has its parts);
    the last one has `tls`, or `insecure` says that it has none. `address` is where the other hosts reach it; empty for
    a local engine that is alone. `gpus` are device ids. `cpus` (cores) and `mem` (MiB) hold the host's use below what
    it has; None: all of it. `identity` and `known_hosts` are absolute paths; None: what ssh itself uses, and riseml's
    own file.
    """

    name: HostName
    url: str
    address: str = ""
    gpus: tuple[str, ...] = ()
    labels: Pairs = ()
    cpus: float | None = None
    mem: int | None = None
    tls: Tls | None = None
    insecure: bool = False
    identity: str | None = None
    known_hosts: str | None = None


@dataclass(frozen=True, slots=True)
class Volume:
    """A Docker volume that every host makes with the same driver and options."""

    name: str
    driver: str = "local"
    options: Pairs = ()


@dataclass(frozen=True, slots=True)
class PoolSpec:
    """The whole file. `output` and `data`: a path that all hosts mount, a volume, or None for a folder of each host
    alone. `registry` is where environments are kept, `host[:port]/path`.
    """

    hosts: tuple[HostSpec, ...]
    output: str | Volume | None = None
    data: str | Volume | None = None
    network: Network = Network.OVERLAY
    registry: str | None = None
