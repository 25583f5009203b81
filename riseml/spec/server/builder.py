"""Build a `ServerConfig` from values that match the schema, and check the rules that a schema cannot express."""

from __future__ import annotations

from pathlib import Path

from riseml.spec.named_files import locate_file, read_file_path, read_secret_path
from riseml.spec.server.types import (
    CertificateFiles,
    ListenAddress,
    OidcSection,
    Permission,
    QuotaDefaults,
    QuotaLimits,
    ServerConfig,
    UserId,
    UserSource,
    UsersSection,
)
from riseml.spec.yaml.problems import KeyPath
from riseml.spec.yaml.values import SourceFile, read_section

_IDS: KeyPath = ("users", "ids")
_MIB = 2**20
_HIGHEST_PORT = 65535


def build_server_config(file: SourceFile, folder: Path) -> ServerConfig:
    """Return the content of a file in `folder`. Problems go to `file`; with an error among them it is unusable."""
    return ServerConfig(
        listen=_read_listen(file),
        names=_read_names(file),
        certificate=_read_certificate(file, folder),
        users=_read_users(file),
        oidc=_read_oidc(file, folder),
        allow=frozenset(Permission(text) for text in file.items_at(("allow",)).values()),
        images=tuple(file.items_at(("images",)).values()) or None,
        secrets_key=_read_secrets_key(file, folder),
        audit=locate_file(file, ("audit",), folder) or str(folder / "audit.log"),
        scrape_key_file=read_secret_path(file, ("scrape_key_file",), folder),
        quotas=_read_quotas(file),
    )


def parse_listen(text: str) -> ListenAddress:
    """Return the address of a text such as `0.0.0.0:8443` or `[::]:8443`.

    Raises:
        ValueError: it has no port between 1 and 65535.
    """
    host, colon, port = text.rpartition(":")
    if not colon or not host or not port.isdecimal() or not 1 <= int(port) <= _HIGHEST_PORT:
        raise ValueError(text)
    return ListenAddress(host.removeprefix("[").removesuffix("]").lower(), int(port))


def _read_listen(file: SourceFile) -> ListenAddress:
    text = file.value_at(("listen",))
    if text is None:
        return ListenAddress("", 0)
    try:
        return parse_listen(text)
    except ValueError:
        file.refuse(("listen",), f"a port is between 1 and {_HIGHEST_PORT}", "for example `listen: 0.0.0.0:8443`")
        return ListenAddress("", 0)


def _read_names(file: SourceFile) -> tuple[str, ...]:
    names: dict[str, KeyPath] = {}
    for path, text in file.items_at(("names",)).items():
        name = text.lower()
        if names.setdefault(name, path) != path:
            file.refuse(path, f"{name} is listed twice", "keep one of them")
    return tuple(names)


def _read_certificate(file: SourceFile, folder: Path) -> CertificateFiles | None:
    if file.value_at(("certificate",)) is None:
        return None
    cert = read_file_path(file, ("certificate", "cert"), folder)
    key = read_secret_path(file, ("certificate", "key"), folder, is_key=True)
    return CertificateFiles(cert or "", key or "")


def _read_users(file: SourceFile) -> UsersSection:
    source = file.read(("users", "from"), UserSource) or UserSource.FILE
    if (
        source is UserSource.SYSTEM
        and isinstance(file.value_at(("users",)), dict)
        and "ids" in file.value_at(("users",))
    ):
        file.refuse_key(_IDS, "contradicts `from: system`, which asks the system for each uid", "keep one of them")
    ids = tuple((str(path[-1]), user) for path in file.items_at(_IDS) if (user := _read_user(file, path)) is not None)
    _refuse_shared_uids(file, ids)
    return UsersSection(source, ids)


def _read_user(file: SourceFile, path: KeyPath) -> UserId | None:
    value = file.value_at(path)
    uid = file.value_at((*path, "uid")) if isinstance(value, dict) else value
    if not isinstance(uid, int):
        return None
    gid = file.value_at((*path, "gid")) if isinstance(value, dict) else None
    return UserId(uid, uid if gid is None else gid)


def _refuse_shared_uids(file: SourceFile, ids: tuple[tuple[str, UserId], ...]) -> None:
    """Refuse two users with one uid: each could read and change what belongs to the other."""
    owners: dict[int, str] = {}
    for name, user in ids:
        owner = owners.setdefault(user.uid, name)
        if owner != name:
            file.refuse((*_IDS, name), f"{owner} has the uid {user.uid}, too", "give each user a uid of its own")


def _read_oidc(file: SourceFile, folder: Path) -> OidcSection | None:
    path: KeyPath = ("oidc",)
    if file.value_at(path) is None:
        return None
    return read_section(
        file,
        path,
        OidcSection,
        issuer=str(file.value_at((*path, "issuer"))),
        client_id=str(file.value_at((*path, "client_id"))),
        client_secret_file=read_secret_path(file, (*path, "client_secret_file"), folder),
        scopes=_read_scopes(file, (*path, "scopes")),
        roles=tuple((str(place[-1]), role) for place, role in file.items_at((*path, "roles")).items()),
    )


def _read_scopes(file: SourceFile, path: KeyPath) -> tuple[str, ...]:
    if file.value_at(path) is None:
        return OidcSection("", "").scopes
    scopes = tuple(file.items_at(path).values())
    if "openid" not in scopes:
        file.refuse(path, "OpenID Connect needs the scope openid", "add it to the list")
    return scopes


def _read_secrets_key(file: SourceFile, folder: Path) -> str | None:
    """Return the path of a key that is not in the home; the key may be made later."""
    path: KeyPath = ("secrets_key",)
    name = locate_file(file, path, folder)
    if name is not None and path not in file.bad and Path(name).resolve().is_relative_to(folder.resolve()):
        problem = f"{name} is in riseml's home: whoever copies the home can read all secrets"
        file.refuse(path, problem, "name a file elsewhere, such as /etc/riseml/secrets.key")
    return name


def _read_quotas(file: SourceFile) -> QuotaDefaults:
    path: KeyPath = ("quotas",)
    half_life: KeyPath = (*path, "half_life")
    if file.read(half_life, float) == 0:
        file.refuse(half_life, "must be more than 0, not 0", "for example `half_life: 14d`")
    return read_section(
        file,
        path,
        QuotaDefaults,
        user=_read_limits(file, (*path, "user")),
        project=_read_limits(file, (*path, "project")),
    )


def _read_limits(file: SourceFile, path: KeyPath) -> QuotaLimits:
    return read_section(
        file,
        path,
        QuotaLimits,
        project_bytes=_read_bytes(file, (*path, "project_bytes")),
        log_bytes=_read_bytes(file, (*path, "log_bytes")),
        output_bytes=_read_bytes(file, (*path, "output_bytes")),
    )


def _read_bytes(file: SourceFile, path: KeyPath) -> int | None:
    mib = file.read(path, int)
    return None if mib is None else mib * _MIB
