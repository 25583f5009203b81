"""A team's listener without a socket: users, keys, sessions and logins are real, the API behind it is not."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path

from riseml.base.errors import Unauthenticated
from riseml.base.roles import Role
from riseml.model import Caller, Owner
from riseml.server.gate.audit_gate import AuditedGate
from riseml.server.gate.key_gate import KeyGate
from riseml.server.gate.session_authenticator import SessionAuthenticator, SessionParts
from riseml.server.gate.team_gate import TeamGate
from riseml.server.oidc.admission import Admission
from riseml.server.oidc.device_login import DeviceLogins
from riseml.server.oidc.page_login import PageLogins
from riseml.server.oidc.provider import Provider
from riseml.server.oidc.refresh import SessionRefresh
from riseml.server.web.assets import PAGE, Asset
from riseml.server.web.page_proofs import PageProofs
from riseml.server.web.team_entrance import ProviderLogins, TeamEntrance
from riseml.server.web.web_auth import PROOF, WebAuth
from riseml.spec.server.types import OidcSection
from riseml.store.accounts import AccountStore, User
from riseml.store.audit_log import AuditLog
from riseml.store.database import Database
from riseml.store.key_digests import KeyDigests
from riseml.store.provider_subjects import ProviderSubjects
from riseml.store.sessions import SessionStore
from riseml.store.team_projects import TeamProjectStore
from tests.unit.server.web.asgi import Answer, AnsweringApi, call, make_scope
from tests.unit.server.web.sessions import prove_with

HOST = "gpu1.example.org:8443"
ORIGIN = f"https://{HOST}"
FROM_PAGE = {"origin": ORIGIN, "user-agent": "Firefox"}
ASSETS = {PAGE: Asset(b"<html>", "text/html")}
OTHER_NAME = "gpu1:8443"
UIDS = ("ann", "eve", "paul")
START = datetime(2026, 3, 1, tzinfo=UTC)


class StoredKeys:
    """Finds the callers of keys in the store, at once."""

    def __init__(self, accounts: AccountStore) -> None:
        self._accounts = accounts
        self.failures: list[str] = []  # addresses

    def find_caller(self, token: str, address: str) -> Caller:
        holder = self._accounts.find_holder(token)
        if holder is None or not holder.is_valid(START):
            self.failures.append(address)
            raise Unauthenticated("this key is not valid")
        key = holder.key
        owner = Owner(key.user, 2001, 2001)
        return Caller(owner, holder.user.role, key.scope, holder.projects, key.project, key.id, address)


class TeamServer:
    """A team's listener, with an API behind it that answers what it gets."""

    def __init__(self, database: Database, home: Path, section: OidcSection | None = None) -> None:
        digests = KeyDigests(home)
        self.now = START
        self.accounts = AccountStore(database, digests)
        self.projects = TeamProjectStore(database)
        self.sessions = SessionStore(database, digests.compute_digest)
        self.keys = StoredKeys(self.accounts)
        self.api = AnsweringApi()
        self.accounts.add_first_admin("root-of-team", START)
        self.key = self.accounts.add_user(User("ann", Role.MEMBER, START, uid=2001)).secret
        parts = SessionParts(
            sessions=self.sessions,
            accounts=self.accounts,
            projects=self.projects,
            find_owner=lambda user: Owner(user.name, 2001, 2001),
            now=lambda: self.now,
            clock=lambda: self.now.timestamp(),
            is_admitted=lambda session, secret: self.refresh is None or self.refresh.is_admitted(session, secret),
        )
        authenticator = SessionAuthenticator(parts, self.keys)
        sign = digests.compute_digest
        self.refresh: SessionRefresh | None = None
        logins = None if section is None else self._make_logins(section, database, sign)
        entrance = TeamEntrance(authenticator, self.sessions, sign, lambda: self.now, logins)
        self.proofs: PageProofs = entrance.proofs
        page = WebAuth(self.api, entrance, ASSETS, None)
        self.audit_file = home / "audit.log"
        self.audit = AuditLog(self.audit_file)
        gate = TeamGate(KeyGate(self.api, authenticator), page)
        self.application = AuditedGate(gate, self.audit, lambda: self.now)

    def _make_logins(self, section: OidcSection, database: Database, sign: Callable[[str], str]) -> ProviderLogins:
        provider = Provider(section, time.time)
        subjects = ProviderSubjects(database)
        admission = Admission(section, self.accounts, subjects, lambda name: name in UIDS, lambda: None)
        self.refresh = SessionRefresh(provider, admission, self.sessions, lambda: self.now)
        pages = PageLogins(provider, sign, f"{ORIGIN}/login/return", lambda: self.now.timestamp())
        return ProviderLogins(provider, admission, pages, DeviceLogins(provider, lambda: self.now.timestamp()))

    def ask(
        self, method: str, path: str, headers: Mapping[str, str] | None = None, body: bytes = b"", host: str = HOST
    ) -> Answer:
        scope = {**make_scope(method, path, headers or {}, host), "client": ("10.0.0.7", 5000)}
        return call(self.application, scope, body)

    def list_audit(self) -> list[str]:
        """Return user, key, address, request and result of each line."""
        entries = reversed([line.entry for line in self.audit.read_newest()])
        return [" ".join((one.user or "-", one.key or "-", one.address, one.request, one.result)) for one in entries]

    def log_in(self, key: str) -> tuple[dict[str, str], str]:
        """Return the cookie as a header, and the session of the page."""
        answer = self.ask("POST", "/v1/login/key", FROM_PAGE, json.dumps({"key": key}).encode())
        assert answer.status == 200, answer.body
        return {"cookie": answer.headers["set-cookie"].partition(";")[0]}, json.loads(answer.body)["session"]

    def ask_proven(self, cookie: Mapping[str, str], session: str, path: str = "/api/v1/server") -> Answer:
        proof = {PROOF: prove_with(self.proofs, session.partition(".")[2], f"GET {path}")}
        return self.ask("GET", path, {**cookie, **proof})
