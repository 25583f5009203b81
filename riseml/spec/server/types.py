"""The content of a server.yml: where a team's server listens, who its users are, and what they may use.

`schemas/server.schema.json` is the contract of the file; tests/unit/spec/server/test_types.py compares these classes
with it.
"""

from __future__ import annotations

import enum

from riseml.base.records import dataclass

DEFAULT_HALF_LIFE = 7 * 86400.0
"""Seconds after which a GPU hour counts half."""


@dataclass(frozen=True, slots=True)
class ListenAddress:
    """Where the server listens."""

    host: str  # an IP address or a host name, without brackets
    port: int

    @property
    def is_wildcard(self) -> bool:
        """Return True when this is every address of the machine."""
        return self.host in ("0.0.0.0", "::")

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class CertificateFiles:
    """The PEM files of the listener, as absolute paths."""

    cert: str  # the server's certificate, then those of the authorities between it and the root
    key: str  # its private key


class UserSource(enum.Enum):
    """What knows the uid of a user."""

    FILE = "file"
    SYSTEM = "system"


@dataclass(frozen=True, slots=True)
class UserId:
    """Under which ids the jobs of a user run, and to whom their outputs belong."""

    uid: int  # 1000 or more
    gid: int  # 1000 or more


@dataclass(frozen=True, slots=True)
class UsersSection:
    """The users of the machines that run jobs."""

    source: UserSource = UserSource.FILE
    ids: tuple[tuple[str, UserId], ...] = ()  # in the order of the file; empty with UserSource.SYSTEM


@dataclass(frozen=True, slots=True)
class OidcSection:
    """The provider of OpenID Connect that knows the users of the team."""

    issuer: str  # as the provider writes it
    client_id: str
    client_secret_file: str | None = None  # absolute path; None: a public client
    scopes: tuple[str, ...] = ("openid", "profile", "email")
    user_claim: str = "preferred_username"
    groups_claim: str = "groups"
    roles: tuple[tuple[str, str], ...] = ()  # a group, and its role: viewer, member or admin


class Permission(enum.Enum):
    """What a team's server does only when its admin says so."""

    PROCESS = "process"
    FALLBACK = "fallback"
    PLAINTEXT = "plaintext"
    HOST_NETWORK = "host-network"


@dataclass(frozen=True, slots=True)
class QuotaLimits:
    """The most that all experiments of one user, or of one project, use together; None: no limit."""

    gpus: int | None = None
    cpus: float | None = None  # cores
    mem: int | None = None  # MiB
    running: int | None = None  # experiments
    waiting: int | None = None  # experiments
    project_bytes: int | None = None
    log_bytes: int | None = None
    output_bytes: int | None = None


NO_LIMITS = QuotaLimits()
"""The limits of a section that server.yml does not have."""


@dataclass(frozen=True, slots=True)
class QuotaDefaults:
    """The quotas of users and projects for which no command has set another."""

    user: QuotaLimits = NO_LIMITS
    project: QuotaLimits = NO_LIMITS
    half_life: float = DEFAULT_HALF_LIFE  # seconds


@dataclass(frozen=True, slots=True)
class ServerConfig:
    """A whole server.yml. Paths are absolute."""

    listen: ListenAddress
    audit: str  # the file of the audit log
    names: tuple[str, ...] = ()  # host names and IP addresses in lower case; empty: those of this machine
    certificate: CertificateFiles | None = None  # None: of the server's own authority
    users: UsersSection = UsersSection()
    oidc: OidcSection | None = None
    allow: frozenset[Permission] = frozenset()
    images: tuple[str, ...] | None = None  # patterns; None: all images
    secrets_key: str | None = None  # a file outside of the home; None: the server keeps no secrets
    scrape_key_file: str | None = None  # None: /metrics needs the key of a user
    quotas: QuotaDefaults = QuotaDefaults()
