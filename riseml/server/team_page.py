"""What a team's listener answers, put together: the API for keys and sessions, the page, and logins."""

from __future__ import annotations

import pwd
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from starlette.types import ASGIApp

from riseml.model import Owner
from riseml.server.clock import now
from riseml.server.gate.key_authenticator import KeyAuthenticator
from riseml.server.gate.key_gate import KeyGate
from riseml.server.gate.scrape_key import ScrapeKey
from riseml.server.gate.session_authenticator import SessionAuthenticator, SessionParts
from riseml.server.gate.team_gate import TeamGate
from riseml.server.oidc.admission import Admission
from riseml.server.oidc.device_login import DeviceLogins
from riseml.server.oidc.page_login import PageLogins
from riseml.server.oidc.provider import Provider
from riseml.server.oidc.refresh import SessionRefresh
from riseml.server.services import Stores
from riseml.server.tls.host_names import write_host
from riseml.server.web.assets import read_assets
from riseml.server.web.team_entrance import ProviderLogins, TeamEntrance
from riseml.server.web.web_auth import WebAuth
from riseml.spec.server.types import ServerConfig, UserSource, UsersSection
from riseml.store.accounts import User


def make_team_gate(
    api: ASGIApp,
    config: ServerConfig,
    stores: Stores,
    keys: KeyAuthenticator,
    find_owner: Callable[[User], Owner],
    names: Sequence[str],
) -> ASGIApp:
    """Return what answers requests whose names and origins are right.

    Args:
        api: answers those whose caller is known.
        config: of the server.
        stores: have users, keys and sessions.
        keys: knows the callers of keys.
        find_owner: returns the uid and gid of a user's jobs.
        names: of the server; browsers come back from the provider to the first one.
    """
    sign = stores.key_digests.compute_digest
    logins = None if config.oidc is None else _make_logins(config, stores, keys, sign, names[0])
    refresh = None if logins is None else SessionRefresh(logins.provider, logins.admission, stores.sessions, now)
    parts = SessionParts(
        sessions=stores.sessions,
        accounts=stores.accounts,
        projects=stores.team_projects,
        find_owner=find_owner,
        now=now,
        is_admitted=lambda session, secret: refresh is None or refresh.is_admitted(session, secret),
    )
    authenticator = SessionAuthenticator(parts, keys)
    entrance = TeamEntrance(authenticator, stores.sessions, sign, logins=logins)
    scrape_key = None if config.scrape_key_file is None else ScrapeKey(Path(config.scrape_key_file))
    return TeamGate(KeyGate(api, authenticator, scrape_key), WebAuth(api, entrance, read_assets(), None))


def _make_logins(
    config: ServerConfig, stores: Stores, keys: KeyAuthenticator, sign: Callable[[str], str], name: str
) -> ProviderLogins | None:
    if config.oidc is None:
        return None
    provider = Provider(config.oidc, time.time)
    admission = Admission(
        config=config.oidc,
        accounts=stores.accounts,
        subjects=stores.provider_subjects,
        has_uid=lambda user: _has_uid(config.users, user),
        forget_looks=keys.forget_looks,
    )
    redirect = f"https://{write_host(name)}:{config.listen.port}/login/return"
    pages = PageLogins(provider, sign, redirect, time.time)
    return ProviderLogins(provider, admission, pages, DeviceLogins(provider, time.monotonic))


def _has_uid(users: UsersSection, name: str) -> bool:
    """Return True for a user to whom server.yml, or the system where that counts, gives a uid."""
    if name in dict(users.ids):
        return True
    if users.source is not UserSource.SYSTEM:
        return False
    try:
        return pwd.getpwnam(name).pw_uid > 0
    except KeyError:
        return False
