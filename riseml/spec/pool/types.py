"""The content of a pool.yml: the hosts that experiments may use, and what they share.

`schemas/pool.schema.json` is the contract of the file; tests/unit/spec/test_pool.py compares these classes with it.
"""

from __future__ import annotations

import enum

from riseml.base.names import HostName
from riseml.base.records import dataclass
from riseml.base.states import Network

Pairs = tuple[tuple[str, str], ...]
"""Names and values in the order of the file."""


@dataclass(frozen=True, slots=True)
class Tls:
    """The PEM files of a TLS connection, as absolute paths."""

    ca: str  # the authority that signed the engine's certificate
    # the client's certificate; empty: the client has none (only DOCKER_CERT_PATH allows that, pool.yml does not)
    cert: str
    key: str  # the client's private key; empty like `cert`


@dataclass(frozen=True, slots=True)
class HostSpec:
    """One Docker Engine."""

    name: HostName
    url: str  # `unix:///path`, `ssh://user@host[:port][/path]` or `tcp://host:port`; parts: `parse_engine_url`
    address: str = ""  # where the other hosts reach it; empty for a local engine that is the only host
    gpus: tuple[str, ...] | None = None  # device ids; None: all that the host has
    labels: Pairs = ()
    cpus: float | None = None  # cores that jobs may use; None: all
    mem: int | None = None  # MiB that jobs may use; None: all
    tls: Tls | None = None  # certificates for a tcp URL; None: `insecure`, or another scheme
    insecure: bool = False  # a tcp url without TLS
    identity: str | None = None  # absolute path of ssh's private key; None: what ssh itself uses
    known_hosts: str | None = None  # absolute path of ssh's pinned host keys; None: the file in riseml's home


@dataclass(frozen=True, slots=True)
class Volume:
    """A Docker volume that every host creates with the same driver and options."""

    name: str
    driver: str = "local"
    options: Pairs = ()


DEFAULT_CACHE = 50 * 1024
"""MiB of data that the server keeps."""


@dataclass(frozen=True, slots=True)
class CacheSpec:
    """The cache of data."""

    size: int = DEFAULT_CACHE  # MiB
    folder: str | None = None  # a path that the server and all hosts see; None: in the server's home


@dataclass(frozen=True, slots=True)
class DiskSpec:
    """When the server makes room on disks."""

    clean_above: int | None  # per cent of a disk; None: it removes nothing by itself


SLURM_CLUSTER = HostName("slurm")
"""The only host of a pool.yml with `engine: slurm`."""

CLUSTER_FOLDER = "slurm"
"""The folder in RISEML_HOME that the cluster of this machine shares, where no pool.yml names one."""


class EngineKind(enum.Enum):
    """What runs the jobs of a pool."""

    DOCKER = "docker"
    SLURM = "slurm"


class BuildPlace(enum.Enum):
    """Where the environments of a cluster are made."""

    NODE = "node"
    SERVER = "server"


@dataclass(frozen=True, slots=True)
class SlurmSpec:
    """A Slurm cluster: what is added to each sbatch, and the folder that all nodes share."""

    folder: str  # absolute path, the same on the server's machine and on all nodes
    partition: str = ""  # empty here and below: no such option is given
    account: str = ""
    qos: str = ""
    constraint: str = ""
    reservation: str = ""
    time_limit: float | None = None  # seconds; None: that of the partition
    setup: tuple[str, ...] = ()  # shell lines before the roles start
    prefix: tuple[str, ...] = ()  # words before the command of each role
    options: tuple[str, ...] = ()  # more options of each sbatch, `--name` or `--name=value`
    step_options: tuple[str, ...] = ()  # more options of the srun of each role
    python: str = "python3"  # Python of the nodes
    gpu_packages: bool = False  # environments get packages for GPUs
    build_on: BuildPlace = BuildPlace.NODE
    login: str = ""  # where Slurm's commands run, `ssh://user@host[:port]`; empty: on the server's machine
    identity: str | None = None  # key file for `login`, as for a host
    known_hosts: str | None = None  # likewise


@dataclass(frozen=True, slots=True)
class PoolSpec:
    """A whole pool.yml."""

    hosts: tuple[HostSpec, ...]  # empty with `slurm`
    output: str | Volume | None = None  # a path that all hosts mount, or a volume; None: a folder of each host
    data: str | Volume | None = None  # a path that all hosts mount, or a volume; None: a folder of each host
    data_cache: CacheSpec = CacheSpec()
    disk: DiskSpec | None = None  # None: as the server's settings say
    network: Network = Network.OVERLAY
    encrypted: bool = True  # what jobs send from host to host on an overlay
    registry: str | None = None  # where environments are stored: `host[:port]/path`
    engine: EngineKind = EngineKind.DOCKER
    slurm: SlurmSpec | None = None  # section of `engine: slurm`
