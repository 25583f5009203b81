"""Who may use a proxied app: the browser that was let in reaches the program of a job, which reaches nothing itself."""

from __future__ import annotations

import hashlib
import hmac
from functools import partial

import pytest

from riseml.server.web.assets import Asset
from riseml.server.web.proxied_app_auth import OWN_PLACE, PRESENCE, ProxiedAppAuth, find_label
from riseml.server.web.proxied_apps import ProxiedApps
from tests.support.callers import ME
from tests.unit.server.web.asgi import Answer, AnsweringApi, call, make_scope

FRAME = {"index.html": Asset(b"<html>", "text/html"), "frame.js": Asset(b"1;", "text/javascript")}


class Admission:
    """The admission to one proxied app, and the programs behind it."""

    def __init__(self) -> None:
        self.api = AnsweringApi()
        self.proxied_apps = ProxiedApps(lambda text: hmac.new(b"key", text.encode(), hashlib.sha256).hexdigest())
        self.application = ProxiedAppAuth(self.api, self.proxied_apps, FRAME, lambda session: ME)
        self.invitation = self.proxied_apps.invite("144.3")
        self.label = self.invitation.label
        self.origin = f"http://{self.label}.localhost:4711"

    def ask(self, method: str, address: str, label: str = "", **headers: str) -> Answer:
        """Return the answer to a request; `_` in the name of a header stands for `-`."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        host = label or self.label
        scope = make_scope(method, address, named, f"{host}.localhost:4711")
        return call(partial(self.application, label=host), scope)

    def admit(self) -> dict[str, str]:
        """Let a browser in, and return its cookie."""
        answer = self.ask("GET", f"{OWN_PLACE}enter?token={self.proxied_apps.invite('144.3').token}")
        return {"cookie": answer.headers["set-cookie"].partition(";")[0]}


@pytest.fixture
def gate() -> Admission:
    return Admission()


@pytest.mark.parametrize(
    ("host", "label"),
    [
        ("4-ab.localhost:4711", "4-ab"),
        ("4-ab.localhost", "4-ab"),
        ("localhost:4711", None),
        ("127.0.0.1:4711", None),
        ("4-ab.localhost.evil.example", None),
        ("x.4-ab.localhost", None),
    ],
)
def test_a_label_is_the_host_of_a_proxied_app(host: str, label: str | None) -> None:
    scope = make_scope("GET", "/", {}, host)
    assert find_label(scope) == label
    assert find_label({**scope, "headers": scope["headers"] * 2}) is None, "two names are none"


def test_a_token_is_exchanged_for_a_cookie_of_this_host_alone(gate: Admission) -> None:
    address = f"{OWN_PLACE}enter?token={gate.invitation.token}"
    answer = gate.ask("GET", address)
    assert (answer.status, answer.headers["location"]) == (303, OWN_PLACE)
    cookie = answer.headers["set-cookie"]
    assert ("HttpOnly" in cookie, "domain" in cookie.lower()) == (True, False)
    assert gate.ask("GET", address).status == 403, "it was used"
    assert gate.ask("POST", address, origin=gate.origin).status == 403


def test_the_program_gets_the_requests_of_an_admitted_browser(gate: Admission) -> None:
    cookie = gate.admit()
    assert gate.ask("GET", "/").status == 403, "without the cookie"
    assert gate.api.scopes == []
    for address in ("/", "/data/runs", PRESENCE):
        assert gate.ask("GET", address, **cookie).body == b"api:"
    assert [scope["path"] for scope in gate.api.scopes] == [
        "/apps/144.3/",
        "/apps/144.3/data/runs",
        f"/apps/144.3{PRESENCE}",
    ]


def test_the_frame_is_riseml_s_own(gate: Admission) -> None:
    cookie = gate.admit()
    assert gate.ask("GET", OWN_PLACE, **cookie).body == b"<html>"
    assert gate.ask("GET", f"{OWN_PLACE}frame.js", **cookie).body == b"1;"
    assert gate.ask("GET", f"{OWN_PLACE}none", **cookie).status == 404
    assert gate.ask("POST", OWN_PLACE, origin=gate.origin, **cookie).status == 404
    policy = gate.ask("GET", OWN_PLACE, **cookie).headers["content-security-policy"]
    assert "frame-ancestors 'none'" in policy
    assert gate.ask("GET", "/", **cookie).headers["content-security-policy"] != policy
    assert len(gate.api.scopes) == 1


@pytest.mark.parametrize("label", ["4-" + "ab" * 20, "144-3-" + "0" * 40, "x"])
def test_a_label_that_this_server_did_not_give_has_ended(gate: Admission, label: str) -> None:
    assert gate.ask("GET", "/", label=label, **gate.admit()).status == 403
    assert gate.api.scopes == []


@pytest.mark.parametrize(
    ("method", "headers", "passes"),
    [
        ("GET", {"sec_fetch_site": "same-origin"}, True),
        ("GET", {"sec_fetch_site": "none"}, True),
        ("GET", {"sec_fetch_site": "cross-site"}, False),
        ("GET", {"sec_fetch_site": "cross-site", "sec_fetch_mode": "navigate", "sec_fetch_dest": "document"}, True),
        ("GET", {"sec_fetch_site": "cross-site", "sec_fetch_mode": "navigate", "sec_fetch_dest": "iframe"}, False),
        ("GET", {"service_worker": "script"}, False),
        ("GET", {"origin": "http://evil.example"}, False),
        ("POST", {}, False),
        ("POST", {"origin": "own", "sec_fetch_site": "same-origin"}, True),
        ("POST", {"origin": "own", "sec_fetch_site": "same-site"}, False),
    ],
)
def test_another_page_reaches_the_program_by_a_link_alone(
    gate: Admission, method: str, headers: dict[str, str], *, passes: bool
) -> None:
    named = {name: gate.origin if value == "own" else value for name, value in headers.items()}
    answer = gate.ask(method, "/data", **named, **gate.admit())
    assert (answer.status == 200, len(gate.api.scopes)) == (passes, passes)


def test_a_program_opens_no_websocket(gate: Admission) -> None:
    scope = {**make_scope("GET", "/", {}, f"{gate.label}.localhost"), "type": "websocket"}
    answer = call(partial(gate.application, label=gate.label), scope)
    assert answer.messages == [{"type": "websocket.close", "code": 1008}]
