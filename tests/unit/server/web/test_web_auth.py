"""The gate of the page: what reaches the API has the right host, origin, cookie and proof; all else is refused."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

import pytest

from riseml.server.gate.request_caller import get_caller
from riseml.server.web.access import WebAccess, WebSession
from riseml.server.web.assets import PAGE, Asset
from riseml.server.web.loopback_entrance import LoopbackEntrance
from riseml.server.web.proxied_app_auth import ProxiedAppAuth
from riseml.server.web.proxied_apps import ProxiedApps
from riseml.server.web.web_auth import CHALLENGE, PROOF, WebAuth
from tests.support.callers import ME
from tests.unit.server.web.asgi import HOST, Answer, AnsweringApi, call, make_scope
from tests.unit.server.web.sessions import open_session, prove

ORIGIN = f"http://{HOST}"
FROM_PAGE = {"origin": ORIGIN}
NO_HEADERS: Mapping[str, str] = {}
ASSETS = {PAGE: Asset(b"<html>", "text/html"), "a/app.js": Asset(b"1;", "text/javascript")}


class EventDecision:
    """The gate of one server with one session, and the API behind it."""

    def __init__(self, folder: Path) -> None:
        self.api = AnsweringApi()
        self.access = WebAccess(folder / "web.json")
        proxied_apps = ProxiedAppAuth(self.api, ProxiedApps(self.access.sign), {}, lambda session: ME)
        entrance = LoopbackEntrance(self.access, 4711, lambda session: ME)
        self.application = WebAuth(self.api, entrance, ASSETS, proxied_apps)
        self.session: WebSession = open_session(self.access)
        self.cookie = {"cookie": f"riseml-4711={self.session.cookie}"}

    def ask(
        self, method: str, address: str, headers: Mapping[str, str] = NO_HEADERS, body: bytes = b"", host: str = HOST
    ) -> Answer:
        """Return the answer to a request."""
        return call(self.application, make_scope(method, address, headers, host), body)

    def ask_proven(
        self, method: str, address: str, headers: Mapping[str, str] = NO_HEADERS, body: bytes = b""
    ) -> Answer:
        """Return the answer to a request of the page, with its cookie and proof."""
        request = f"{method} {address}" + (f"\n{hashlib.sha256(body).hexdigest()}" if body else "")
        proof = {PROOF: prove(self.access, self.session, request)}
        return self.ask(method, address, {**self.cookie, **proof, **headers}, body)


@pytest.fixture
def gate(tmp_path: Path) -> EventDecision:
    return EventDecision(tmp_path)


def test_a_proven_request_reaches_the_api_below_its_own_path(gate: EventDecision) -> None:
    answer = gate.ask_proven("GET", "/api/v1/experiments?limit=5")
    assert (answer.status, answer.body) == (200, b"api:")
    scope = gate.api.scopes[0]
    assert get_caller(scope) == ME
    assert (scope["path"], scope["raw_path"], scope["query_string"]) == (
        "/v1/experiments",
        b"/v1/experiments",
        b"limit=5",
    )
    changed = gate.ask_proven("POST", "/api/v1/experiments/4/kill", FROM_PAGE, b"{}")
    assert changed.body == b"api:{}", "the API gets the body that was checked"


@pytest.mark.parametrize("address", ["/", "/experiments/4", "/static/a/app.js", "/static/none.js", "/enter?token=x"])
def test_no_answer_can_be_framed_or_run_a_foreign_script(gate: EventDecision, address: str) -> None:
    headers = gate.ask("GET", address).headers
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert "script-src 'self'" in headers["content-security-policy"]
    assert (headers["x-frame-options"], headers["x-content-type-options"]) == ("DENY", "nosniff")


def test_files_of_the_page_need_no_session(gate: EventDecision) -> None:
    page, script = gate.ask("GET", "/experiments/4"), gate.ask("GET", "/static/a/app.js")
    assert (page.body, page.headers["cache-control"]) == (b"<html>", "no-store")
    assert (script.body, script.headers["cache-control"]) == (b"1;", "max-age=31536000, immutable")
    assert gate.ask("GET", "/static/../web.json").status == 404
    assert gate.ask("POST", "/", FROM_PAGE).status == 405


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost:4711", 200),
        ("[::1]:4711", 200),
        ("127.0.0.1", 200),
        ("evil.example", 421),
        ("127.0.0.1.evil.example", 421),
        ("127.0.0.1:4711@evil.example", 421),
        ("", 421),
    ],
)
def test_only_names_of_loopback_are_answered(gate: EventDecision, host: str, status: int) -> None:
    assert gate.ask("GET", "/", host=host).status == status


@pytest.mark.parametrize(
    ("method", "headers", "status"),
    [
        ("GET", {"origin": ORIGIN}, 200),
        ("GET", {}, 200),
        ("GET", {"origin": "http://evil.example"}, 403),
        ("GET", {"origin": "null"}, 403),
        ("POST", {"origin": ORIGIN}, 200),
        ("POST", {}, 403),
        ("POST", {"origin": "http://127.0.0.1:4712"}, 403),
    ],
)
def test_another_page_can_send_nothing(gate: EventDecision, method: str, headers: dict[str, str], status: int) -> None:
    assert gate.ask_proven(method, "/api/v1/experiments", headers).status == status
    assert len(gate.api.scopes) == (status == 200)


def test_the_api_needs_the_cookie_and_the_proof(gate: EventDecision) -> None:
    address = "/api/v1/experiments"
    bare = gate.ask("GET", address)
    assert (bare.status, CHALLENGE in bare.headers) == (401, False)
    unproven = gate.ask("GET", address, gate.cookie)
    assert (unproven.status, unproven.headers[CHALLENGE]) == (401, gate.access.proofs.challenge)
    proof = {PROOF: prove(gate.access, gate.session, f"GET {address}")}
    for other in ("/api/v1/server", f"{address}?all=true"):
        assert gate.ask("GET", other, gate.cookie | proof).status == 401, "it is for another request"
    assert gate.ask("GET", address, proof).status == 401, "without the cookie"
    assert gate.ask("GET", address, gate.cookie | proof).status == 200
    assert gate.ask("GET", address, gate.cookie | proof).status == 401, "a proof is good once"
    assert len(gate.api.scopes) == 1


def test_a_proof_is_for_its_body(gate: EventDecision) -> None:
    proof = prove(gate.access, gate.session, f"POST /api/v1/pool\n{hashlib.sha256(b'{}').hexdigest()}")
    headers = {**gate.cookie, **FROM_PAGE, PROOF: proof}
    assert gate.ask("POST", "/api/v1/pool", headers, b'{"x": 1}').status == 401
    assert gate.ask("POST", "/api/v1/pool", headers, b"{}").status == 200


@pytest.mark.parametrize(
    ("address", "status"),
    [("/api/v1/web", 403), ("/api/v1/web/sessions", 403), ("/api/v2/x", 404), ("/api", 404), ("/api/apps/4/", 404)],
)
def test_what_is_not_for_the_page_is_refused_with_a_proof_too(gate: EventDecision, address: str, status: int) -> None:
    assert gate.ask_proven("GET", address).status == status
    assert gate.api.scopes == []


@pytest.mark.parametrize(("size", "status"), [(4 << 20, 200), ((4 << 20) + 1, 413)])
def test_a_long_order_is_not_read_to_its_end(gate: EventDecision, size: int, status: int) -> None:
    assert gate.ask_proven("POST", "/api/v1/experiments", FROM_PAGE, b"x" * size).status == status


def test_a_token_is_exchanged_for_a_cookie_that_no_script_reads(gate: EventDecision) -> None:
    token = gate.access.make_token()
    answer = gate.ask("GET", f"/enter?token={token}")
    assert (answer.status, answer.headers["location"].partition("=")[0]) == (303, "/#session")
    cookie = answer.headers["set-cookie"]
    assert cookie.startswith("riseml-4711=")
    assert all(word in cookie for word in ("HttpOnly", "Path=/api", "SameSite=strict"))
    assert gate.ask("GET", f"/enter?token={token}").status == 403, "it lets one browser in"
    assert gate.ask("HEAD", f"/enter?token={gate.access.make_token()}").status == 403


def open_stream(gate: EventDecision, path: str, headers: dict[str, str], *protocols: str) -> Answer:
    scope = {**make_scope("GET", path, headers, HOST), "type": "websocket", "subprotocols": list(protocols)}
    return call(gate.application, scope)


COMMAND = "/api/v1/experiments/4.master/command"


def test_the_page_opens_a_stream_into_a_job(gate: EventDecision) -> None:
    proof = prove(gate.access, gate.session, f"CONNECT {COMMAND}")
    headers = {**gate.cookie, "origin": ORIGIN, "sec-websocket-protocol": f"riseml, riseml-proof.{proof}"}
    answer = open_stream(gate, COMMAND, headers, "riseml", f"riseml-proof.{proof}")
    assert answer.messages == [{"type": "websocket.accept", "subprotocol": "riseml"}]
    forwarded = {name for name, _ in gate.api.scopes[0]["headers"]}
    assert (gate.api.scopes[0]["path"], forwarded) == ("/v1/experiments/4.master/command", {b"host", b"cookie"})


@pytest.mark.parametrize(
    ("path", "origin", "count"),
    [
        (COMMAND, "", 1),
        (COMMAND, "http://evil.example", 1),
        (COMMAND, ORIGIN, 0),
        ("/api/v1/experiments/4/port", ORIGIN, 1),
    ],
    ids=["no origin", "another page", "no proof", "another stream"],
)
def test_no_other_stream_is_opened(gate: EventDecision, path: str, origin: str, count: int) -> None:
    proofs = [f"riseml-proof.{prove(gate.access, gate.session, f'CONNECT {path}')}"] * count
    headers = {**gate.cookie, **({"origin": origin} if origin else {})}
    answer = open_stream(gate, path, headers, "riseml", *proofs)
    assert answer.messages == [{"type": "websocket.close", "code": 1008}]
    assert gate.api.scopes == []
