"""Logins of browsers at a provider of OpenID Connect, which is a real one in this process."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from oidc_provider_mock import run_server_in_thread

from riseml.base.roles import Role, Scope
from riseml.server.gate.request_caller import get_caller
from riseml.spec.server.types import OidcSection
from riseml.store.accounts import UserChange
from riseml.store.database import Database
from tests.unit.server.web.asgi import Answer
from tests.unit.server.web.team_server import HOST, ORIGIN, OTHER_NAME, START, TeamServer

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of the provider, about its own library
CLAIMS = {"preferred_username": "ann", "email": "ann@example.org", "groups": ["lab", "everyone"]}
SOME_SUBJECT = "7d2f"


class Person:
    """A browser of someone whom the provider knows."""

    def __init__(self, team: TeamServer, issuer: str, subject: str = SOME_SUBJECT) -> None:
        self.team = team
        self.issuer = issuer
        self.subject = subject
        self.cookie = ""

    def say(self, **claims: object) -> None:
        """Let the provider say this about the person."""
        httpx.put(f"{self.issuer}/users/{self.subject}", json={**CLAIMS, **claims}).raise_for_status()

    def begin(self, page: str = "/") -> str:
        """Begin a login; return where the provider asks."""
        answer = self.team.ask("GET", f"/login/provider?next={page}")
        assert answer.status == 303, answer.body
        self.cookie = answer.headers["set-cookie"].partition(";")[0]
        for part in ("__Host-riseml-login=", "HttpOnly", "Secure", "SameSite=lax", "Path=/"):
            assert part in answer.headers["set-cookie"]
        return answer.headers["location"]

    def confirm(self, url: str, action: str = "") -> str:
        """Log in at the provider; return where it sends the browser."""
        form = {"sub": self.subject} | ({"action": action} if action else {})
        location: str = httpx.post(url, data=form).headers["location"]
        return location

    def come_back(self, location: str, cookie: str | None = None) -> Answer:
        path = location.removeprefix(ORIGIN)
        return self.team.ask("GET", path, {"cookie": self.cookie if cookie is None else cookie})

    def log_in(self) -> Answer:
        return self.come_back(self.confirm(self.begin()))


@pytest.fixture(scope="module")
def issuer() -> Iterator[str]:
    with run_server_in_thread() as server:
        yield f"http://localhost:{server.server_port}"


@pytest.fixture
def section(issuer: str, tmp_path: Path) -> OidcSection:
    secret = tmp_path / "secret"
    secret.write_text("a secret of the client\n")
    roles = (("lab", "member"), ("heads", "admin"), ("guests", "viewer"))
    return OidcSection(issuer, "riseml", str(secret), roles=roles)


@pytest.fixture
def team(section: OidcSection, tmp_path: Path) -> Iterator[TeamServer]:
    database = Database(f"sqlite:///{tmp_path}/riseml.db")
    made = TeamServer(database, tmp_path, section)
    made.accounts.change_user("ann", UserChange(disabled=True))  # who was made with a key
    yield made
    database.close()


@pytest.fixture
def person(team: TeamServer, issuer: str) -> Person:
    made = Person(team, issuer)
    made.say(preferred_username="paul")
    return made


def find_problem(answer: Answer) -> str:
    assert "set-cookie" not in answer.headers
    return str(json.loads(answer.body)["error"]["message"])


def test_a_first_login_makes_the_user_with_the_highest_role_of_the_groups(team: TeamServer, person: Person) -> None:
    person.say(preferred_username="paul", groups=["guests", "heads", "lab"])
    assert json.loads(team.ask("GET", "/v1/login").body) == {"keys": True, "provider": "localhost"}
    url = person.begin("/experiments/4?x=1")
    query = parse_qs(urlsplit(url).query)
    assert query["redirect_uri"] == [f"{ORIGIN}/login/return"]
    assert query["code_challenge_method"] == ["S256"]
    assert {len(query[name][0]) for name in ("state", "nonce", "code_challenge")} == {43}
    answer = person.come_back(person.confirm(url))
    assert answer.status == 303
    place, _, session = answer.headers["location"].partition("#session=")
    assert place == "/experiments/4?x=1"
    cookies = [value.decode() for name, value in answer.messages[0]["headers"] if name == b"set-cookie"]
    cookie = next(one for one in cookies if one.startswith("__Host-riseml="))
    assert "SameSite=strict" in cookie
    assert team.ask_proven({"cookie": cookie.partition(";")[0]}, session).status == 200
    caller = get_caller(team.api.scopes[0])
    assert (caller.user, caller.role, caller.scope) == ("paul", Role.ADMIN, Scope.ADMIN)
    assert team.accounts.load_user("paul").email == "ann@example.org"
    assert team.accounts.list_keys("paul") == [], "a user of the provider has no key that nobody knows"


@pytest.mark.parametrize(
    ("claims", "sentence"),
    [
        ({"groups": []}, "'paul' may not use this server: none of their groups has a role here"),
        ({"groups": "everyone"}, "'paul' may not use this server: none of their groups has a role here"),
        ({"groups": None}, "'paul' may not use this server: none of their groups has a role here"),
        ({"preferred_username": "Paul Smith"}, "'Paul Smith' is not a name for a user"),
        ({"preferred_username": ""}, "the provider sends no claim preferred_username"),
        ({"preferred_username": "zoe"}, "zoe has no uid on this server"),
        ({"preferred_username": "ann"}, "ann is another person here"),
    ],
)
def test_who_may_not_come_in_learns_why(
    team: TeamServer, person: Person, claims: dict[str, object], sentence: str
) -> None:
    person.say(**{"preferred_username": "paul", **claims})
    assert find_problem(person.log_in()).startswith(sentence)
    assert team.sessions.list_open(START) == []
    assert [user.name for user in team.accounts.list_users()] == ["ann", "root-of-team"]


def test_a_user_belongs_to_the_person_of_the_first_login(team: TeamServer, person: Person, issuer: str) -> None:
    assert person.log_in().status == 303
    other = Person(team, issuer, "another")
    other.say(preferred_username="paul")
    assert find_problem(other.log_in()).startswith("paul is another person here")
    person.say(preferred_username="eve")
    assert find_problem(person.log_in()) == "the provider calls you eve now, and you are paul here"
    person.say(preferred_username="paul")
    team.accounts.change_user("paul", UserChange(disabled=True))
    assert find_problem(person.log_in()) == "the user paul is disabled"


def test_each_login_at_the_provider_has_a_line_of_audit(team: TeamServer, person: Person) -> None:
    person.log_in()
    session = team.sessions.list_open(START)[0].id
    person.say(preferred_username="paul", groups=[])
    person.log_in()
    person.come_back("/login/return?state=x&code=secret-code")
    at = "10.0.0.7 GET /login/return"
    assert team.list_audit() == [
        f"paul {session} {at} done 303",
        f"paul - {at} refused 403",
        f"- - {at} refused 403",
    ]


def test_the_role_follows_the_groups_at_the_next_login(team: TeamServer, person: Person) -> None:
    for groups, role in ((["lab"], Role.MEMBER), (["guests"], Role.VIEWER), (["heads", "guests"], Role.ADMIN)):
        person.say(preferred_username="paul", groups=groups)
        assert person.log_in().status == 303
        assert team.accounts.load_user("paul").role is role
    person.say(preferred_username="paul", groups=[])
    assert find_problem(person.log_in()).startswith("'paul' may not use this server")


def _open_secret(team: TeamServer, person: Person) -> str:
    answer = person.log_in()
    cookies = [value.decode() for name, value in answer.messages[0]["headers"] if name == b"set-cookie"]
    pairs = [cookie.partition(";")[0].partition("=") for cookie in cookies]
    return str(next(value for name, _, value in pairs if name == "__Host-riseml"))


@pytest.mark.parametrize("end", ["groups", "revoked"])
def test_a_refresh_ends_the_session_of_whom_the_provider_lets_in_no_more(
    team: TeamServer, person: Person, issuer: str, end: str
) -> None:
    by_secret = {"authorization": f"Bearer {_open_secret(team, person)}"}
    person.say(preferred_username="paul", groups=["heads"])
    team.now += timedelta(minutes=15)
    assert team.ask("GET", "/v1/server", by_secret).status == 200
    assert team.accounts.load_user("paul").role is Role.ADMIN
    if end == "groups":
        person.say(preferred_username="paul", groups=["everyone"])
    else:
        httpx.post(f"{issuer}/users/{person.subject}/revoke-tokens").raise_for_status()
    assert team.ask("GET", "/v1/server", by_secret).status == 200, "not asked again yet"
    team.now += timedelta(minutes=15)
    assert team.ask("GET", "/v1/server", by_secret).status == 401
    assert team.sessions.list_open(team.now, "paul") == []


def test_a_login_ends_in_the_browser_that_began_it_and_once(team: TeamServer, person: Person) -> None:
    location = person.confirm(person.begin())
    state = parse_qs(urlsplit(location).query)["state"][0]
    for cookie in ("", "__Host-riseml-login=x", person.cookie[:-1], person.cookie.replace(".", "x.", 1)):
        assert find_problem(person.come_back(location, cookie)).startswith("this browser has not begun this login")
    wrong = location.replace(state, "0" * 43)
    assert find_problem(person.come_back(wrong)).startswith("this browser has not begun this login")
    foreign = f"{location}&iss=https://evil.example"
    assert find_problem(person.come_back(foreign)) == "this login comes from another provider"
    assert find_problem(person.come_back(location.replace("code=", "code=x"))).startswith("this login is too old")
    assert person.come_back(location).status == 303
    assert "too old" in find_problem(person.come_back(location)), "a code is taken once"
    url = person.begin()
    refused = f"{person.confirm(url, 'deny')}&state={parse_qs(urlsplit(url).query)['state'][0]}"
    assert "error=access_denied" in refused
    assert find_problem(person.come_back(refused)) == "the provider has not let you in"
    late = person.confirm(person.begin())
    team.now += timedelta(minutes=10)
    assert find_problem(person.come_back(late)).startswith("this browser has not begun this login")


@pytest.mark.parametrize("page", ["//evil.example", "/\\evil.example", "https://evil.example", "x", "/%0d%0aX:x"])
def test_a_login_leads_to_a_page_of_this_server_alone(person: Person, page: str) -> None:
    answer = person.come_back(person.confirm(person.begin(page)))
    assert answer.headers["location"].partition("#")[0] == "/"


def test_a_login_under_another_name_of_the_server_begins_where_it_ends(team: TeamServer) -> None:
    answer = team.ask("GET", "/login/provider?next=/pool", host=OTHER_NAME)
    assert answer.headers["location"] == f"https://{HOST}/login/provider?next=/pool"


def test_a_provider_without_a_login_for_commands(team: TeamServer) -> None:
    answer = team.ask("POST", "/v1/login/device")
    assert find_problem(answer) == "localhost has no login for the command line"
    for body in (b"", b"{}", b'{"login": ""}'):
        assert team.ask("POST", "/v1/login/device/session", body=body).status == 400
    unknown = team.ask("POST", "/v1/login/device/session", body=b'{"login": "x"}')
    assert find_problem(unknown) == "this login is not known, or it is too old"
    assert team.ask("POST", "/v1/login/device", {"origin": "https://evil.example"}).status == 403
    lines = team.list_audit()
    assert len(lines) == 6
    assert all(
        re.fullmatch(r"- - 10.0.0.7 POST /v1/login/device(/session)? (refused|failed) 4\d\d", line) for line in lines
    )


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"issuer": "http://127.0.0.1:1"}, "the provider 127.0.0.1 does not answer: ConnectError"),
        ({"issuer": "http://sso.example.org"}, "the provider has the address 'http://sso.example.org/.well-known"),
        ({"issuer": "SLASH"}, "the provider calls itself 'http://localhost:"),
        ({"client_secret_file": "/nowhere/secret"}, "oidc.client_secret_file /nowhere/secret cannot be read: No such"),
        ({"client_id": "other"}, "this login is too old, or the provider has ended it"),
    ],
)
def test_what_is_wrong_in_server_yml_is_a_sentence(
    section: OidcSection, tmp_path: Path, change: dict[str, Any], sentence: str
) -> None:
    if change.get("issuer") == "SLASH":
        change = {"issuer": f"{section.issuer}/"}
    database = Database(f"sqlite:///{tmp_path}/riseml.db")
    person = Person(TeamServer(database, tmp_path, replace(section, **change)), section.issuer)
    person.say(preferred_username="paul")
    answer = person.team.ask("GET", "/login/provider")
    if answer.status == 303:
        url = person.begin()
        answer = person.come_back(person.confirm(url.replace("client_id=other", "client_id=riseml")))
    assert find_problem(answer).startswith(sentence)
    database.close()


@pytest.mark.parametrize(
    ("claims", "query", "sentence"),
    [
        ({"groups": []}, None, "<p>&#x27;paul&#x27; may not use this server: none of their groups has a role here."),
        ({"preferred_username": "<b>x</b>"}, None, "<p>&#x27;&lt;b&gt;x&lt;/b&gt;&#x27; is not a name for a user"),
        ({}, "state=x&code=y", "<p>"),
        ({}, "error=access_denied", "<p>"),
    ],
)
def test_a_browser_whose_login_has_failed_gets_a_page_with_a_way_back(
    team: TeamServer, person: Person, claims: dict[str, object], query: str | None, sentence: str
) -> None:
    person.say(**{"preferred_username": "paul", **claims})
    place = person.confirm(person.begin()).removeprefix(ORIGIN)
    path = place if query is None else f"/login/return?{query}"
    answer = team.ask("GET", path, {"cookie": person.cookie, "accept": "text/html,*/*;q=0.8"})
    page = answer.body.decode()
    assert answer.status in (400, 403)
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert "<h1>You are not logged in</h1>" in page and sentence in page
    assert '<a href="/login/provider">Log in again</a>' in page
    assert "<script" not in page and "{" not in page
    assert "set-cookie" not in answer.headers
