"""Where things are and how the server behaves: one frozen value, read once from the environment and `settings.yml`."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from riseml.errors import UsageError

DEFAULT_ENGINE = "unix:///var/run/docker.sock"
DEFAULT_LOST_AFTER = 300.0
DEFAULT_IDLE_AFTER = 1800.0
DEFAULT_LOG_LIMIT = 512 * 2**20
MOST_LOG = 2 * 2**30
"""What a limit of logs may be at most: hosts keep a little more of a job's output, and no more."""
MOST_TAIL = 10_000_000
"""How many lines may be asked for at most as the tail of a log."""

_POSTGRES = "postgresql+psycopg"
_LONGEST = 1e9  # seconds; more than thirty years, which every calendar can add to a day
_LONGEST_SOCKET = 100  # bytes; the kernel's limit for a unix socket path is 108


@dataclass(frozen=True, slots=True)
class Settings:
    """Times are in seconds.

    `engine` is the address of the local Docker Engine; `subnets` the range that experiments' networks are taken from;
    `build_network` the network of `install` steps (an engine whose bridge reaches nothing needs `host`). `executor`
    is `docker` or `process`; None: `docker` when an engine answers. `store` is SQLAlchemy's address of a PostgreSQL,
    which may have a password in it; None: a file in `home`. `log_limit` is how many bytes of one job's output are kept.
    """

    home: Path
    output: Path
    data: Path
    engine: str = DEFAULT_ENGINE
    subnets: str = "10.213.0.0/16"
    build_network: str = "default"
    lost_after: float = DEFAULT_LOST_AFTER
    idle_after: float = DEFAULT_IDLE_AFTER
    poll: float = 2.0
    executor: str | None = None
    store: str | None = field(default=None, repr=False)
    log_limit: int = DEFAULT_LOG_LIMIT

    @property
    def socket(self) -> Path:
        """The server's unix socket; in a private folder of /tmp when the home's path is too long for one."""
        path = self.home / "server.sock"
        if len(os.fsencode(path)) <= _LONGEST_SOCKET:
            return path
        short = hashlib.sha256(os.fsencode(self.home)).hexdigest()[:16]
        return Path("/tmp") / f"riseml-{os.getuid()}-{short}" / "server.sock"

    @property
    def log(self) -> Path:
        """The server's own log."""
        return self.home / "server.log"

    @property
    def lock(self) -> Path:
        """Held by the one server of this home."""
        return self.home / "server.lock"

    @property
    def pool_file(self) -> Path:
        """The hosts that experiments may use; without it, this machine."""
        return self.home / "pool.yml"

    @property
    def database(self) -> str:
        """The store's address."""
        return self.store or f"sqlite:///{self.home / 'riseml.db'}"

    @property
    def identity(self) -> Path:
        """The id of this home's server, beside the store: a store that has another one is not this home's."""
        return self.home / "server.id"


def read_settings(environ: Mapping[str, str]) -> Settings:
    """The settings of this user.

    Raises:
        UsageError: a variable has a value that cannot be used.
    """
    home = Path(environ.get("RISEML_HOME") or "~/.riseml").expanduser().absolute()
    return Settings(
        home=home,
        output=_path(environ, "RISEML_OUTPUT", home / "output"),
        data=_path(environ, "RISEML_DATA", home / "data"),
        engine=_engine(environ),
        build_network=environ.get("RISEML_BUILD_NETWORK") or "default",
        lost_after=_seconds(environ, "RISEML_LOST_AFTER", DEFAULT_LOST_AFTER),
        idle_after=_seconds(environ, "RISEML_IDLE_AFTER", DEFAULT_IDLE_AFTER),
        executor=_executor(environ),
        store=_store(environ),
        log_limit=_log_limit(environ),
    )


def read_size(environ: Mapping[str, str], name: str, default: int) -> int:
    """The bytes that a variable names: `500MB`, `4GiB`, `1.5G`.

    Raises:
        UsageError: it holds no size.
    """
    text = environ.get(name, "").strip()
    if not text:
        return default
    found = re.fullmatch(r"(\d{1,15}(?:\.\d+)?)\s*(?:([KMGT])(iB?|B)?|B)?", text, re.ASCII | re.IGNORECASE)
    if found is None:
        raise UsageError(f"{name} is {text!r}", "give a size such as 500MB or 4GiB")
    power = "KMGT".index(found[2].upper()) + 1 if found[2] else 0
    return int(float(found[1]) * (1024 if (found[3] or "i")[0] in "iI" else 1000) ** power)


def _engine(environ: Mapping[str, str]) -> str:
    text = environ.get("DOCKER_HOST") or DEFAULT_ENGINE
    if re.fullmatch(r"unix:///\S+|(tcp|https?)://[^\s/]+:\d{1,5}/?", text, re.ASCII):
        return text
    hint = "write unix:///var/run/docker.sock or tcp://host:2375; unset, it is the first of these"
    if text.startswith("ssh://"):
        hint = f"an engine behind ssh is a host of the pool: name it in pool.yml with `url: {text}`, and unset this"
    raise UsageError(f"DOCKER_HOST is {text!r}, which is no address that riseml can reach an engine at", hint)


def _log_limit(environ: Mapping[str, str]) -> int:
    size = read_size(environ, "RISEML_LOG_LIMIT", DEFAULT_LOG_LIMIT)
    if not 0 < size <= MOST_LOG:
        raise UsageError(f"RISEML_LOG_LIMIT is {environ['RISEML_LOG_LIMIT']!r}", "give a size of 1KiB to 2GiB")
    return size


def _store(environ: Mapping[str, str]) -> str | None:
    text = environ.get("RISEML_STORE")
    if not text:
        return None
    scheme, mark, rest = text.partition("://")
    if not mark or scheme not in ("postgresql", "postgres", _POSTGRES):  # its password is nobody's business
        raise UsageError(
            "RISEML_STORE is no address of a PostgreSQL",
            "write postgresql://user:password@host/database; unset, the store is a file in RISEML_HOME",
        )
    return f"{_POSTGRES}://{rest}"


def _executor(environ: Mapping[str, str]) -> str | None:
    name = environ.get("RISEML_EXECUTOR") or None
    if name not in (None, "docker", "process"):
        raise UsageError(f"RISEML_EXECUTOR is {name!r}", "it is docker or process; unset, riseml chooses")
    return name


def _path(environ: Mapping[str, str], name: str, default: Path) -> Path:
    return Path(environ[name]).expanduser().absolute() if environ.get(name) else default


def _seconds(environ: Mapping[str, str], name: str, default: float) -> float:
    text = environ.get(name)
    if not text:
        return default
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 < value <= _LONGEST:
        raise UsageError(f"{name} is {text!r}", f"give a number of seconds above 0, and {_LONGEST:.0f} at most")
    return value
