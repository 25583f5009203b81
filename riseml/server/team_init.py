"""Make the home of a server for a team: server.yml, the certificate, and the first admin with their key."""

from __future__ import annotations

import os
import re
import ssl
from collections.abc import Sequence
from pathlib import Path

from riseml.base.certificates import fingerprint_of
from riseml.base.errors import Conflict, RisemlError, UsageError
from riseml.base.records import dataclass
from riseml.base.settings import Settings
from riseml.server.clock import now
from riseml.server.home_lock import HomeLock
from riseml.server.identity import check_store_is_there, find_own_home, record_server
from riseml.server.server_file import read_server_config
from riseml.server.tls.authority import Authority
from riseml.server.tls.certificate_chain import CertificateChain
from riseml.server.tls.host_names import choose_names
from riseml.spec.server.loader import load_server_config
from riseml.spec.server.types import CertificateFiles, ServerConfig
from riseml.store.accounts import AccountStore
from riseml.store.database import Database
from riseml.store.experiments import ExperimentStore
from riseml.store.journal import ExperimentJournal
from riseml.store.key_digests import KeyDigests

_PEM = re.compile(r"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)
_HEAD = "# This file makes the server one for a team; `riseml docs server-yml` explains every key.\n"


@dataclass(frozen=True, slots=True)
class TeamRequest:
    """What the server of a team is to be."""

    listen: str  # host:port
    admin: str  # name of the first user
    names: tuple[str, ...] = ()  # host names; empty: those of this machine
    certificate: CertificateFiles | None = None  # absolute paths; None: of an authority of its own


@dataclass(frozen=True, slots=True)
class InitializedTeam:
    """The server of a team that was just made."""

    config: ServerConfig
    names: tuple[str, ...]  # that the server answers to
    fingerprint: str  # that clients compare
    secret: str  # the key of the admin, which nobody can read again


def init_team(settings: Settings, request: TeamRequest) -> InitializedTeam:
    """Make a team's server of a home. Nothing is left of a try that fails, but an authority.

    Raises:
        SpecError: a value is not allowed.
        Conflict: the home has a server.yml, or users, already.
        Refused: a server runs.
        RisemlError: the certificate cannot be used, or the store.
    """
    path = settings.server_file
    text = _write_config(request)
    config = load_server_config(text, path)
    settings.home.mkdir(parents=True, exist_ok=True, mode=0o700)
    with HomeLock(settings.home, settings.lock) as lock:
        lock.take()
        if path.exists():
            raise Conflict(f"{path} is there already", "edit it, and start the server again; nothing was changed")
        names = choose_names(config)
        fingerprint = _prepare_certificate(settings, config, names)
        _write_new(path, text)
        try:
            secret = _add_admin(settings, request.admin)
        except BaseException:
            path.unlink()
            raise
    return InitializedTeam(config, names, fingerprint, secret)


def find_fingerprint(settings: Settings) -> str:
    """Return the fingerprint that clients of a team's server compare.

    Raises:
        UsageError: the home has no server.yml.
        RisemlError: the certificate cannot be used.
    """
    config = read_server_config(settings.server_file)
    if config is None:
        raise UsageError(f"{settings.home} has no server.yml", "`riseml server init` makes the server of a team")
    return _prepare_certificate(settings, config, choose_names(config))


def _prepare_certificate(settings: Settings, config: ServerConfig, names: Sequence[str]) -> str:
    """Return the fingerprint of what the listener shows, after making it where the server has an own authority."""
    if config.certificate is None:
        authority = Authority(settings.home / "authority")
        authority.renew(names, now())
        return authority.find_fingerprint()
    CertificateChain(config.certificate)  # the same check as at the start
    chain = _PEM.findall(Path(config.certificate.cert).read_text(encoding="ascii", errors="replace"))
    return fingerprint_of(ssl.PEM_cert_to_DER_cert(chain[-1]))


def _add_admin(settings: Settings, name: str) -> str:
    """Store the first admin, and return their key."""
    check_store_is_there(settings)
    home = find_own_home(settings)
    database = Database(settings.database, f"`riseml server init`, process {os.getpid()}", home=home)
    try:
        journal = ExperimentJournal(settings.home / "experiments.journal")
        record_server(settings, ExperimentStore(database, journal).load_server_id())
        return AccountStore(database, KeyDigests(settings.home)).add_first_admin(name, now()).secret
    finally:
        database.close()


def _write_config(request: TeamRequest) -> str:
    import yaml

    values: dict[str, object] = {"listen": request.listen}
    if request.names:
        values["names"] = list(request.names)
    if request.certificate is not None:
        values["certificate"] = {"cert": request.certificate.cert, "key": request.certificate.key}
    return _HEAD + yaml.safe_dump(values, sort_keys=False, allow_unicode=True)


def _write_new(path: Path, text: str) -> None:
    try:
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "w") as file:
            file.write(text)
    except OSError as error:
        raise RisemlError(f"{path} cannot be written: {error.strerror}", "nothing was changed") from error
