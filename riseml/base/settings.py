"""The settings of the server and the commands: one frozen value, read from environment variables at one place.

docs/settings.md lists the variables for users. There is no settings file.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import field
from enum import Enum
from pathlib import Path
from typing import Final, Literal

from riseml.base.errors import Refused, UsageError
from riseml.base.names import SUBNETS
from riseml.base.records import dataclass
from riseml.base.sizes import SIZE_HINT, BadSize, parse_size

DEFAULT_ENGINE = "unix:///var/run/docker.sock"
DEFAULT_LOST_AFTER = 300.0  # seconds
DEFAULT_BUILD_TIME = 6 * 3600.0  # seconds; compiling a large library on a few cores takes hours
DEFAULT_IDLE_AFTER = 1800.0  # seconds
DEFAULT_TAKEOVER_AFTER = 10.0  # seconds
DEFAULT_CLEAN_ABOVE = 85  # per cent of a disk
DEFAULT_LOG_LIMIT = 512 * 2**20  # bytes
DEFAULT_UPLOAD_LIMIT = 16 * 2**30  # bytes
MOST_LOG = 2 * 2**30  # bytes; the largest RISEML_LOG_LIMIT: hosts keep only about twice as much of a job's output
HEARTBEAT_HEADER = "riseml-heartbeat"
"""The header in which a server says how many seconds, at most, are between two entries of a log that it sends."""

MOST_TAIL = 10_000_000  # lines; the most that a reader may request as the tail of a log

PLAINTEXT_VARIABLE = "RISEML_ALLOW_PLAINTEXT"
"""The variable that allows code and secrets to travel without TLS."""

ExecutorName = Literal["docker", "process", "slurm"]
"""What runs jobs: containers of a Docker Engine, processes of this machine, or a Slurm cluster."""

DOCKER: Final = "docker"
PROCESS: Final = "process"
SLURM: Final = "slurm"

_LEAST_BUILD_MEM = 64 * 2**20  # bytes; pip alone needs about as much
_POSTGRES = "postgresql+psycopg"
_LONGEST = 1e9  # seconds, 31 years; added to any date it stays within what datetime can hold
_LONGEST_SOCKET = 100  # bytes; the kernel's limit for a unix socket path is 108, and `standby.sock` has one more


class LogFormat(Enum):
    """How the server writes its own log."""

    TEXT = "text"
    JSON = "json"  # one object a line


class LogForm(Enum):
    """How `train` and `logs` print the log of an experiment."""

    BRIEF = "brief"  # a state is one line
    CLASSIC = "classic"  # as RiseML printed it: with times, reasons and exit codes


@dataclass(frozen=True, slots=True)
class Settings:
    """Where things are and how the server behaves. The comment of each field names its variable and its unit."""

    home: Path  # RISEML_HOME: the folder of the server's socket, store and logs
    output: Path  # RISEML_OUTPUT: the folder of all experiments' outputs
    data: Path  # RISEML_DATA: the folder that jobs read as /data
    engine: str = DEFAULT_ENGINE  # DOCKER_HOST: the URL of the local Docker Engine
    # DOCKER_TLS_VERIFY and DOCKER_CERT_PATH: the folder with ca.pem, cert.pem and key.pem for an `engine` at tcp://;
    # None: no TLS
    engine_certificates: Path | None = None
    subnets: str = SUBNETS  # CIDR; the networks of experiments are taken from this range; no variable
    build_network: str = "default"  # RISEML_BUILD_NETWORK: of `install` steps; `host` where the bridge reaches nothing
    build_mem: int | None = None  # RISEML_BUILD_MEM: bytes; None: see `executors.build_limits`
    build_time: float = DEFAULT_BUILD_TIME  # RISEML_BUILD_TIME: seconds that the build of an environment may take
    # RISEML_CLEAN_ABOVE: per cent of a disk above which the server makes room, unless pool.yml says it; None: never
    clean_above: int | None = DEFAULT_CLEAN_ABOVE
    lost_after: float = DEFAULT_LOST_AFTER  # RISEML_LOST_AFTER: seconds until a silent host counts as lost
    idle_after: float = DEFAULT_IDLE_AFTER  # RISEML_IDLE_AFTER: seconds until an idle server ends
    # RISEML_TAKEOVER_AFTER: seconds without a sign of life after which a standby takes the place of a server
    takeover_after: float = DEFAULT_TAKEOVER_AFTER
    poll: float = 2.0  # seconds between two passes of the loop when nothing wakes it; no variable
    executor: ExecutorName | None = None  # RISEML_EXECUTOR: what runs jobs; None: see `choose_executor`
    # RISEML_STORE: SQLAlchemy's URL of a PostgreSQL, perhaps with a password; None: the store is a file in `home`
    store: str | None = field(default=None, repr=False)
    log_format: LogFormat = LogFormat.TEXT  # RISEML_LOG_FORMAT: of server.log
    log_form: LogForm = LogForm.BRIEF  # RISEML_LOG: how commands print the log of an experiment
    log_limit: int = DEFAULT_LOG_LIMIT  # RISEML_LOG_LIMIT: bytes that one job may take in its log
    output_limit: int | None = None  # RISEML_OUTPUT_LIMIT: bytes that the output of one experiment may take; None: all
    upload_limit: int = DEFAULT_UPLOAD_LIMIT  # RISEML_UPLOAD_LIMIT: the most bytes of one project's archive
    # RISEML_LOCAL: this machine's own folder, for the socket and the log of the server, where servers of several
    # machines share `home`; None: `home`
    local: Path | None = None
    # `secrets_key` of server.yml: the file of the key that seals secrets; None: `variables.key` of the home
    secrets_key: Path | None = None

    @property
    def socket(self) -> Path:
        """The server's unix socket; in a private folder of /tmp when the path of the home is too long for a socket."""
        folder = self.local or self.home
        path = folder / "server.sock"
        if len(os.fsencode(path)) <= _LONGEST_SOCKET:
            return path
        import hashlib

        short = hashlib.sha256(os.fsencode(folder)).hexdigest()[:16]
        return Path("/tmp") / f"riseml-{os.getuid()}-{short}" / "server.sock"

    @property
    def standby_socket(self) -> Path:
        """The unix socket of a server that waits to take the place of the one at `socket`."""
        return self.socket.with_name("standby.sock")

    @property
    def snapshots(self) -> Path:
        """The folder with the states of projects and the contents of their files."""
        return self.home / "snapshots"

    @property
    def log(self) -> Path:
        """The server's own log."""
        return (self.local or self.home) / "server.log"

    @property
    def former_log(self) -> Path:
        """The part of the server's own log before `log`."""
        return (self.local or self.home) / "server.log.1"

    @property
    def lock(self) -> Path:
        """The file that the one server of this home keeps locked."""
        return self.home / "server.lock"

    @property
    def pool_file(self) -> Path:
        """The file with the hosts that experiments may use; without it, this machine is the pool."""
        return self.home / "pool.yml"

    @property
    def server_file(self) -> Path:
        """The file that makes the server one for a team; without it, the server answers its own user alone."""
        return self.home / "server.yml"

    @property
    def is_team(self) -> bool:
        """True for the server of a team, whose users do not trust each other."""
        return self.server_file.exists()

    @property
    def key_file(self) -> Path:
        """The file of the key that seals secrets and variables in the store."""
        return self.secrets_key or self.home / "variables.key"

    @property
    def former_key_file(self) -> Path | None:
        """The file of keys that sealed before server.yml named another one; None: it names none."""
        return None if self.secrets_key is None else self.home / "variables.key"

    @property
    def database(self) -> str:
        """SQLAlchemy's URL of the store."""
        return self.store or f"sqlite:///{self.home / 'riseml.db'}"

    @property
    def identity(self) -> Path:
        """The file with the id of this home's server. A store with another id belongs to another home."""
        return self.home / "server.id"


def read_settings(environ: Mapping[str, str]) -> Settings:
    """Return the settings of this user.

    Example: `read_settings(os.environ).socket`.

    Raises:
        UsageError: a variable has a value that cannot be used.
        Refused: DOCKER_HOST names an engine without TLS, and RISEML_ALLOW_PLAINTEXT does not allow that.
    """
    home = Path(environ.get("RISEML_HOME") or "~/.riseml").expanduser().absolute()
    return Settings(
        home=home,
        output=_read_path(environ, "RISEML_OUTPUT", home / "output"),
        data=_read_path(environ, "RISEML_DATA", home / "data"),
        engine=_read_engine(environ),
        engine_certificates=_find_engine_certificates(environ),
        build_network=environ.get("RISEML_BUILD_NETWORK") or "default",
        build_mem=_read_build_mem(environ),
        build_time=_read_seconds(environ, "RISEML_BUILD_TIME", DEFAULT_BUILD_TIME),
        clean_above=_read_clean_above(environ),
        lost_after=_read_seconds(environ, "RISEML_LOST_AFTER", DEFAULT_LOST_AFTER),
        idle_after=_read_seconds(environ, "RISEML_IDLE_AFTER", DEFAULT_IDLE_AFTER),
        takeover_after=_read_seconds(environ, "RISEML_TAKEOVER_AFTER", DEFAULT_TAKEOVER_AFTER),
        executor=_read_executor(environ),
        store=_read_store(environ),
        local=_read_local(environ, home),
        log_format=_read_log_format(environ),
        log_form=_read_log_form(environ),
        log_limit=_read_log_limit(environ),
        output_limit=_read_output_limit(environ),
        upload_limit=_read_upload_limit(environ),
    )


def read_size(environ: Mapping[str, str], name: str, default: int) -> int:
    """Return the bytes of a size in a variable: `512M`, `500MB` and `4GiB`, as in riseml.yml (`riseml.base.sizes`).

    Raises:
        UsageError: the variable holds something else, or a number without a unit.
    """
    text = environ.get(name, "").strip()
    if not text:
        return default
    try:
        size = parse_size(text)
    except BadSize as bad:
        raise UsageError(f"{name} is {text!r}, which {bad.problem}", bad.hint) from None
    if not size.prefix:
        raise UsageError(f"{name} is {text!r}, which has no unit", SIZE_HINT)
    return int(size.count_bytes())


def _read_engine(environ: Mapping[str, str]) -> str:
    text = environ.get("DOCKER_HOST") or DEFAULT_ENGINE
    if re.fullmatch(r"unix:///\S+|(tcp|https?)://[^\s/]+:\d{1,5}/?", text, re.ASCII):
        _refuse_plain_engine(text, environ)
        return text
    hint = "write unix:///var/run/docker.sock or tcp://host:2376; the first is the default"
    if text.startswith("ssh://"):
        hint = f"an engine behind ssh belongs in pool.yml: write `url: {text}` there, and unset DOCKER_HOST"
    raise UsageError(f"DOCKER_HOST is {text!r}, which is not a URL of an engine that riseml can use", hint)


def _refuse_plain_engine(engine: str, environ: Mapping[str, str]) -> None:
    """Refuse an engine over a connection that others can read and change, unless the user has allowed it.

    A port of loopback is not an exception: every user of the machine reaches it.
    """
    plain = engine.startswith("http://") or (engine.startswith("tcp://") and not _find_engine_certificates(environ))
    if not plain or allows_plaintext(environ) or environ.get("RISEML_EXECUTOR") in ("process", "slurm"):
        return
    raise Refused(
        f"DOCKER_HOST is {engine!r}, which is not encrypted: others on the network can read code and secrets, and"
        " everyone who reaches the port is root on that machine",
        "set DOCKER_TLS_VERIFY=1, and DOCKER_CERT_PATH to the folder with ca.pem, cert.pem and key.pem; or, in a"
        f" network that you trust, {PLAINTEXT_VARIABLE}=1",
    )


def allows_plaintext(environ: Mapping[str, str]) -> bool:
    """Return True when the user allows connections without TLS.

    Raises:
        UsageError: the variable has a value that cannot be used.
    """
    text = environ.get(PLAINTEXT_VARIABLE, "")
    if text not in ("", "1"):
        raise UsageError(f"{PLAINTEXT_VARIABLE} is {text!r}", "write 1, or unset it to use TLS alone")
    return text == "1"


def _find_engine_certificates(environ: Mapping[str, str]) -> Path | None:
    """Return the folder of the certificates, as Docker's command line finds it: any text in the variable means yes."""
    if not environ.get("DOCKER_TLS_VERIFY"):
        return None
    return _read_path(environ, "DOCKER_CERT_PATH", _read_path(environ, "DOCKER_CONFIG", Path("~/.docker").expanduser()))


def _read_log_limit(environ: Mapping[str, str]) -> int:
    size = read_size(environ, "RISEML_LOG_LIMIT", DEFAULT_LOG_LIMIT)
    if not 0 < size <= MOST_LOG:
        raise UsageError(f"RISEML_LOG_LIMIT is {environ['RISEML_LOG_LIMIT']!r}", "write a size from 1KiB to 2GiB")
    return size


def _read_clean_above(environ: Mapping[str, str]) -> int | None:
    text = environ.get("RISEML_CLEAN_ABOVE", "").strip()
    if text.lower() == "false":
        return None
    if not text:
        return DEFAULT_CLEAN_ABOVE
    if not re.fullmatch(r"[1-9][0-9]", text, re.ASCII):
        raise UsageError(f"RISEML_CLEAN_ABOVE is {text!r}", "write per cent of a disk from 10 to 99, or false")
    return int(text)


def _read_build_mem(environ: Mapping[str, str]) -> int | None:
    size = read_size(environ, "RISEML_BUILD_MEM", 0)
    if environ.get("RISEML_BUILD_MEM", "").strip() and size < _LEAST_BUILD_MEM:
        raise UsageError(f"RISEML_BUILD_MEM is {environ['RISEML_BUILD_MEM']!r}", "write a size from 64MiB on")
    return size or None


def _read_output_limit(environ: Mapping[str, str]) -> int | None:
    size = read_size(environ, "RISEML_OUTPUT_LIMIT", 0)
    if environ.get("RISEML_OUTPUT_LIMIT", "").strip() and size <= 0:
        raise UsageError(f"RISEML_OUTPUT_LIMIT is {environ['RISEML_OUTPUT_LIMIT']!r}", "write a size such as 100GiB")
    return size or None


def _read_upload_limit(environ: Mapping[str, str]) -> int:
    size = read_size(environ, "RISEML_UPLOAD_LIMIT", DEFAULT_UPLOAD_LIMIT)
    if size <= 0:
        raise UsageError(f"RISEML_UPLOAD_LIMIT is {environ['RISEML_UPLOAD_LIMIT']!r}", "write a size such as 16GiB")
    return size


def _read_store(environ: Mapping[str, str]) -> str | None:
    text = environ.get("RISEML_STORE")
    if not text:
        return None
    scheme, mark, address = text.partition("://")
    if not mark or scheme not in ("postgresql", "postgres", _POSTGRES):  # the message leaves out the password
        raise UsageError(
            "RISEML_STORE is not the URL of a PostgreSQL",
            "write postgresql://user:password@host/database, or unset it to keep the store in RISEML_HOME",
        )
    return f"{_POSTGRES}://{address}"


def _read_local(environ: Mapping[str, str], home: Path) -> Path | None:
    text = environ.get("RISEML_LOCAL")
    if not text:
        return None
    path = Path(text).expanduser().absolute()
    if path == home or home in path.parents:
        raise UsageError(
            f"RISEML_LOCAL is {text!r}, in RISEML_HOME, which the servers of other machines share",
            "name a folder that only this machine has, such as /var/lib/riseml-local",
        )
    if not environ.get("RISEML_STORE"):
        raise UsageError(
            "RISEML_LOCAL is set without RISEML_STORE: servers of several machines share a PostgreSQL, not a file",
            "set RISEML_STORE to its URL; or unset RISEML_LOCAL, if only this machine has a server of RISEML_HOME",
        )
    if path.exists() and not path.is_dir():
        raise UsageError(f"RISEML_LOCAL is {text!r}, which is not a folder", "name a folder of this machine")
    return path


def _read_executor(environ: Mapping[str, str]) -> ExecutorName | None:
    match environ.get("RISEML_EXECUTOR", ""):
        case "":
            return None
        case "docker" | "process" | "slurm" as name:
            return name
        case name:
            raise UsageError(
                f"RISEML_EXECUTOR is {name!r}", "write docker, process or slurm, or unset it to let riseml choose"
            )


def _read_log_format(environ: Mapping[str, str]) -> LogFormat:
    text = environ.get("RISEML_LOG_FORMAT") or LogFormat.TEXT.value
    try:
        return LogFormat(text)
    except ValueError:
        raise UsageError(f"RISEML_LOG_FORMAT is {text!r}", "write text or json, or unset it for text") from None


def _read_log_form(environ: Mapping[str, str]) -> LogForm:
    text = environ.get("RISEML_LOG") or LogForm.BRIEF.value
    try:
        return LogForm(text)
    except ValueError:
        raise UsageError(f"RISEML_LOG is {text!r}", "write classic or brief, or unset it for brief") from None


def _read_path(environ: Mapping[str, str], name: str, default: Path) -> Path:
    return Path(environ[name]).expanduser().absolute() if environ.get(name) else default


def _read_seconds(environ: Mapping[str, str], name: str, default: float) -> float:
    text = environ.get(name)
    if not text:
        return default
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 < value <= _LONGEST:
        raise UsageError(f"{name} is {text!r}", f"write a number of seconds above 0, at most {_LONGEST:.0f}")
    return value
