"""The page of a team's server: a browser logs in with a key; its session ends with the key, the user, or by hand."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from riseml.base.roles import Role, Scope
from riseml.model import Caller, Owner
from riseml.server.gate.request_caller import get_caller
from riseml.server.web.team_entrance import COOKIE
from riseml.server.web.web_auth import CHALLENGE
from riseml.store.accounts import KeyRequest, UserChange
from riseml.store.database import Database
from riseml.store.sessions import SessionKind, SessionOrigin
from tests.unit.server.web.team_server import FROM_PAGE, HOST, ORIGIN, START, TeamServer


@pytest.fixture
def team(tmp_path: Path) -> Iterator[TeamServer]:
    database = Database(f"sqlite:///{tmp_path}/riseml.db")
    yield TeamServer(database, tmp_path)
    database.close()


def test_a_browser_logs_in_with_a_key_and_may_do_what_the_key_may(team: TeamServer) -> None:
    team.projects.add_project("vision", START)
    team.projects.put_member("vision", "ann", Role.MAINTAINER)
    key = team.accounts.add_key(KeyRequest("ann", Scope.READ, "vision"), START)
    answer = team.ask("POST", "/v1/login/key", FROM_PAGE, json.dumps({"key": key.secret}).encode())
    for part in (f"{COOKIE}=riseml_session_", "HttpOnly", "Secure", "SameSite=strict", "Path=/"):
        assert part in answer.headers["set-cookie"]
    assert "Domain" not in answer.headers["set-cookie"]
    assert answer.headers["cache-control"] == "no-store"
    assert key.secret.encode() not in answer.body
    cookie = {"cookie": answer.headers["set-cookie"].partition(";")[0]}
    session = json.loads(answer.body)["session"]
    assert team.ask_proven(cookie, session).body == b"api:"
    caller = get_caller(team.api.scopes[0])
    assert caller == Caller(
        owner=Owner("ann", 2001, 2001),
        role=Role.MEMBER,
        scope=Scope.READ,
        projects=(("vision", Role.MAINTAINER),),
        project="vision",
        key=session.partition(".")[0],
        address="10.0.0.7",
    )
    stored = team.sessions.list_open(START, "ann")
    assert [(one.id, one.user_agent, one.address, one.key) for one in stored] == [
        (caller.key, "Firefox", "10.0.0.7", key.key.id)
    ]


def test_a_session_of_a_key_that_is_bound_to_a_project_has_nothing_of_an_admin(team: TeamServer) -> None:
    """As a request with the key itself: else whoever finds the key of a project would log in as an admin."""
    for project in "vision", "words":
        team.projects.add_project(project, START)
        team.projects.put_member(project, "ann", Role.VIEWER)
    for role, left in ((Role.MEMBER, Role.VIEWER), (Role.ADMIN, Role.MAINTAINER)):
        team.accounts.change_user("ann", UserChange(role=role))
        cookie, session = team.log_in(team.accounts.add_key(KeyRequest("ann", project="vision"), START).secret)
        assert team.ask_proven(cookie, session).status == 200
        caller = get_caller(team.api.scopes[-1])
        assert (caller.role, caller.projects) == (Role.MEMBER, (("vision", left),))


def test_a_cookie_alone_and_a_proof_alone_do_nothing(team: TeamServer) -> None:
    cookie, session = team.log_in(team.key)
    unproven = team.ask("GET", "/api/v1/server", cookie)
    assert (unproven.status, unproven.headers[CHALLENGE]) == (401, team.proofs.challenge)
    assert team.ask_proven({}, session).status == 401
    other = team.log_in(team.key)[1]
    assert team.ask_proven(cookie, other).status == 401, "the page key of another session"
    by_key = {"cookie": f"{COOKIE}={team.key}"}
    assert team.ask_proven(by_key, session).status == 401, "a key is no cookie"
    assert team.ask("GET", "/api/v1/server", {"authorization": f"Bearer {team.key}"}).status == 401, "no session"
    assert team.api.scopes == []


def test_a_key_reaches_the_api_below_its_own_path_and_a_session_does_too(team: TeamServer) -> None:
    _, secret = team.sessions.open(SessionOrigin("ann", SessionKind.DEVICE, "riseml", "10.0.0.9"), START)
    for token in (team.key, secret):
        assert team.ask("GET", "/v1/server", {"authorization": f"Bearer {token}"}).status == 200
    assert [get_caller(scope).scope for scope in team.api.scopes] == [Scope.ADMIN, Scope.ADMIN]
    assert team.ask("GET", "/v1/server").status == 401
    assert team.ask("GET", "/v1/server", {"cookie": f"{COOKIE}={secret}"}).status == 401, "browsers use /api"


@pytest.mark.parametrize("end", ["session", "key", "user", "age", "idle"])
def test_a_session_that_has_ended_lets_its_browser_in_no_more(team: TeamServer, end: str) -> None:
    cookie, session = team.log_in(team.key)
    assert team.ask_proven(cookie, session).status == 200
    team.now += timedelta(seconds=1)
    if end == "session":
        assert team.sessions.end(session.partition(".")[0])
    elif end == "key":
        team.accounts.revoke_key(team.accounts.list_keys("ann")[0].id, team.now)
        team.now += timedelta(seconds=2)
    elif end == "user":
        team.accounts.change_user("ann", UserChange(disabled=True))
        team.now += timedelta(seconds=2)
    elif end == "age":
        team.now += timedelta(days=7)
    else:
        team.now += timedelta(hours=12)
    answers = [team.ask_proven(cookie, session) for _ in range(12)]
    assert {answer.status for answer in answers} == {401}
    assert all(CHALLENGE not in answer.headers for answer in answers)
    assert team.keys.failures.count("10.0.0.7") == 0, "an open page is no attempt to guess a key"


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b"[]", 400),
        (b'{"key": 5}', 400),
        (b'{"key": ""}', 400),
        (b'{"key": "x", "user": "ann"}', 400),
        (b'{"key": "' + b"x" * 5000 + b'"}', 400),
        (b'{"key": "riseml_unknown"}', 401),
        (b'{"key": "riseml_session_unknown"}', 401),
    ],
)
def test_what_is_no_key_opens_no_session(team: TeamServer, body: bytes, status: int) -> None:
    answer = team.ask("POST", "/v1/login/key", FROM_PAGE, body)
    assert answer.status == status
    assert "set-cookie" not in answer.headers
    assert re.fullmatch(r'{"error":{"kind":.*"message":.*"hint":.*}}', answer.body.decode())
    assert team.keys.failures == (["10.0.0.7"] if status == 401 else [])


def test_a_session_opens_no_session(team: TeamServer) -> None:
    _, secret = team.sessions.open(SessionOrigin("ann", SessionKind.DEVICE, "riseml", "10.0.0.9"), START)
    answer = team.ask("POST", "/v1/login/key", FROM_PAGE, json.dumps({"key": secret}).encode())
    assert answer.status == 401
    assert len(team.sessions.list_open(START)) == 1


def test_a_page_of_another_origin_logs_nobody_in(team: TeamServer) -> None:
    cookie, _ = team.log_in(team.key)
    body = json.dumps({"key": team.key}).encode()
    for origin in ("https://evil.example", f"http://{HOST}", "null", f"{ORIGIN}.evil.example"):
        assert team.ask("POST", "/v1/login/key", {"origin": origin}, body).status == 403
        assert team.ask("GET", "/api/v1/server", {"origin": origin, **cookie}).status == 403
    assert team.ask("POST", "/v1/login/key", {}, body).status == 403, "a write says where it comes from"
    assert len(team.sessions.list_open(START)) == 1


def test_the_files_of_the_page_and_how_to_log_in_need_no_session(team: TeamServer) -> None:
    page = team.ask("GET", "/experiments/4")
    assert (page.status, page.body) == (200, b"<html>")
    assert "default-src 'none'" in page.headers["content-security-policy"]
    offers = team.ask("GET", "/v1/login")
    assert json.loads(offers.body) == {"keys": True, "provider": None}
    assert team.ask("GET", "/v1/login/other").status == 404
    assert team.ask("GET", "/enter?token=x").body == b"<html>", "no address lets a browser in"


def test_each_login_with_a_key_has_a_line_of_audit_without_the_key(team: TeamServer) -> None:
    for body in (b"", b'{"key": "riseml_unknown"}'):
        team.ask("POST", "/v1/login/key", FROM_PAGE, body)
    team.ask("POST", "/v1/login/key", {"origin": "https://evil.example"}, json.dumps({"key": team.key}).encode())
    team.ask("GET", "/v1/login", FROM_PAGE)
    _, session = team.log_in(team.key)
    at = "10.0.0.7 POST /v1/login/key"
    name = session.partition(".")[0]
    assert team.list_audit() == [
        f"- - {at} failed 400",
        f"- - {at} refused 401",
        f"- - {at} refused 403",
        f"ann {name} {at} done 200",
    ]
    written = team.audit_file.read_text()
    assert "riseml_unknown" not in written
    assert team.key not in written


def test_a_login_without_its_line_of_audit_gives_no_session(team: TeamServer) -> None:
    team.audit_file.rename(team.audit_file.with_name("moved"))
    answer = team.ask("POST", "/v1/login/key", FROM_PAGE, json.dumps({"key": team.key}).encode())
    assert answer.status == 503
    assert "set-cookie" not in answer.headers
    assert b"without a line there nothing is changed" in answer.body
    assert b"session" not in answer.body
