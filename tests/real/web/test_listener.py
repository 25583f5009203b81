"""Exploits of the web page's door: a foreign web page, or a program of another user of the machine, uses it.

The docstring of each test says what the attacker does.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import secrets
import socket
from collections.abc import Iterator
from contextlib import suppress
from urllib.parse import urlsplit, urlunsplit

import httpx
import psutil
import pytest
from playwright.sync_api import Browser
from websockets.exceptions import InvalidStatus
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Origin, Subprotocol

from riseml.base.stream_messages import Channel, ChannelData, CommandRequest, decode_message, encode_message
from tests.support.rig import Rig, single
from tests.support.waiting import DEADLINE
from tests.support.web_scene import enter, go, open_door


def make_proof(key: str, challenge: str, request: str) -> str:
    """Return a proof as the page makes it."""
    nonce = secrets.token_hex(16)
    text = f"{challenge}\n{nonce}\n{request}".encode()
    return f"{nonce}.{hmac.new(key.encode(), text, hashlib.sha256).hexdigest()}"


class Intruder:
    """Asks the port of a server: with nothing, or with what it has got hold of."""

    def __init__(self, rig: Rig) -> None:
        self.url: str = rig.post("/v1/web", {}).json()["url"]
        self.origin = self.url.partition("/enter")[0]
        self.client = httpx.Client(base_url=self.origin, timeout=DEADLINE)

    def enter(self, url: str) -> tuple[dict[str, str], str]:
        """Exchange an address for the cookie, as a header, and the page key."""
        answer = self.client.get(url)
        assert answer.status_code == 303, answer.text
        self.client.cookies.clear()
        cookie = answer.headers["set-cookie"]
        for part in ("HttpOnly", "SameSite=strict", "Path=/api"):
            assert part in cookie
        return {"Cookie": cookie.partition(";")[0]}, answer.headers["location"].partition(".")[2]

    def ask(self, method: str, path: str, headers: dict[str, str], key: str = "") -> httpx.Response:
        """Ask for something, with a proof if the intruder has a page key."""
        first = self.client.request(method, path, headers=headers)
        challenge = first.headers.get("x-riseml-challenge", "")
        proof = make_proof(key, challenge, f"{method} {path}")
        return self.client.request(method, path, headers={**headers, "X-Riseml-Proof": proof}) if key else first


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    with Rig(tmp_path_factory.mktemp("web") / "home", None) as made:
        yield made


@pytest.fixture
def intruder(rig: Rig) -> Iterator[Intruder]:
    made = Intruder(rig)
    yield made
    made.client.close()


def open_stream(
    url: str, headers: dict[str, str], origin: str | None, protocols: list[str], name: str = ""
) -> ClientConnection:
    """Open a WebSocket as a browser does, under another name of the host if one is given."""
    place = urlsplit(url)
    return connect(
        urlunsplit(("ws", name or place.netloc, place.path, "", "")),
        sock=socket.create_connection((place.hostname, place.port)),
        additional_headers=headers,
        origin=None if origin is None else Origin(origin),
        subprotocols=[Subprotocol(one) for one in protocols],
        proxy=None,
    )


def is_listening(port: int) -> bool:
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0


def test_a_foreign_name_that_leads_to_loopback(intruder: Intruder) -> None:
    """A page of evil.example lets its name lead to 127.0.0.1 (DNS rebinding), and reads with the user's browser."""
    cookie, key = intruder.enter(intruder.url)
    for name in ("evil.example", "127.0.0.1.evil.example", "localhost.evil.example:80", "127.0.0.1@evil.example", ""):
        for path in ("/", "/enter?token=x", "/api/v1/server"):
            assert intruder.ask("GET", path, {**cookie, "Host": name}, key).status_code in (400, 421)


def test_a_page_of_another_origin(rig: Rig, intruder: Intruder) -> None:
    """A page of another port sends requests with the user's cookie, and even knows the page key."""
    cookie, key = intruder.enter(intruder.url)
    for origin in ("http://127.0.0.1:9999", "http://evil.example", "null", f"{intruder.origin}.evil.example"):
        for method, path in (("GET", "/api/v1/server"), ("POST", "/api/v1/server/stop"), ("GET", "/")):
            assert intruder.ask(method, path, {**cookie, "Origin": origin}, key).status_code == 403
    no_origin = intruder.ask("POST", "/api/v1/server/stop", cookie, key)
    assert no_origin.status_code == 403, "a write says where it comes from"
    assert rig.get("/v1/server")["pid"] == rig.server_pid(), "it goes on"


def test_a_program_of_another_user_without_a_token(rig: Rig, intruder: Intruder) -> None:
    """Another user of the machine connects to the port: to each route of the API, without cookie, key or token."""
    for route in rig.get("/openapi.json")["paths"]:
        path = "/api" + re.sub(r"{\w+}", "1", route)
        answer = intruder.ask("GET", path, {})
        assert answer.status_code in (401, 403, 404), path
    assert intruder.ask("GET", "/api/openapi.json", {}).status_code == 401
    for path in ("/enter", "/enter?token=", "/enter?token=guess", "/static/..%2f..%2fapp.py", "/static/index.html"):
        answer = intruder.client.get(path)
        assert answer.status_code in (403, 404), path
        assert "set-cookie" not in answer.headers
    policy = intruder.client.get("/").headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy


def test_a_request_whose_head_has_no_end(rig: Rig, intruder: Intruder) -> None:
    """Another user of the machine sends a header that never ends, so that the server holds all of it in memory."""
    place = urlsplit(intruder.origin)
    with socket.create_connection((place.hostname, place.port), timeout=DEADLINE) as one, suppress(ConnectionError):
        one.sendall(b"GET / HTTP/1.1\r\nX-Header: ")
        for _ in range(256):
            one.sendall(b"x" * 65_536)
        pytest.fail("the server read 16 MiB of a header")
    assert rig.get("/v1/server")["pid"] == rig.server_pid(), "it goes on"


def test_a_cookie_that_leaked_to_another_port(intruder: Intruder) -> None:
    """The browser sends cookies of 127.0.0.1 to every port; a program of another user listens at one, and gets it."""
    cookie, key = intruder.enter(intruder.url)
    assert intruder.ask("GET", "/api/v1/server", cookie, key).status_code == 200, "who has both halves may pass"
    assert intruder.ask("GET", "/api/v1/server", cookie).status_code == 401
    assert intruder.ask("GET", "/api/v1/server", {}, key).status_code == 401
    assert intruder.ask("GET", "/api/v1/server", cookie, "0" * 64).status_code == 401
    tampered = {"Cookie": cookie["Cookie"].replace(".1", ".2", 1)}
    assert intruder.ask("GET", "/api/v1/server", tampered, key).status_code == 401
    first = intruder.ask("GET", "/api/v1/server", cookie, key).request.headers["X-Riseml-Proof"]
    other = intruder.client.get("/api/v1/system", headers={**cookie, "X-Riseml-Proof": first})
    assert other.status_code == 401, "a proof is good for its request alone"


def test_an_address_that_is_used_again(intruder: Intruder) -> None:
    """Another person finds the address in the history of the browser, or in a message."""
    intruder.enter(intruder.url)
    again = intruder.client.get(intruder.url)
    assert again.status_code == 403
    assert "set-cookie" not in again.headers


@pytest.mark.parametrize("named", ["x.y", "x"])
def test_a_foreign_page_that_names_a_session_in_an_address(rig: Rig, browser: Browser, named: str) -> None:
    """A foreign web page leads the browser to the page, with a session of its own choice in the address."""
    page = enter(browser, rig)
    read = "localStorage.getItem('riseml-session')"
    held, origin = page.evaluate(read), page.evaluate("location.origin")
    page.goto("about:blank")
    go(page, lambda: f"{origin}/#session={named}")
    page.wait_for_function("location.hash === ''")
    assert page.evaluate(read) == held
    page.locator("#connection[data-connection=live]").wait_for()
    go(page, lambda: open_door(rig))
    page.locator("#connection[data-connection=live]").wait_for()
    assert page.evaluate(read) not in (held, None), "a session of the server is taken"
    page.context.close()


def test_a_page_that_opens_doors(intruder: Intruder) -> None:
    """A page that was let in asks for further addresses."""
    cookie, key = intruder.enter(intruder.url)
    own = {**cookie, "Origin": intruder.origin}
    for path in ("/api/v1/web", "/api/v1/web/close"):
        assert intruder.ask("POST", path, own, key).status_code == 403


def test_another_user_cannot_open_a_stream_into_a_job(rig: Rig, intruder: Intruder) -> None:
    """A page of another origin opens a WebSocket: browsers let it, and send the cookie. Or a program does."""
    cookie, key = intruder.enter(intruder.url)
    rig.submit(single("exec sleep 600"))
    rig.wait_state("1", "RUNNING")
    challenge = intruder.ask("GET", "/api/v1/server", cookie).headers["x-riseml-challenge"]
    command, port = "/api/v1/experiments/1/command", "/api/v1/experiments/1/ports/80"

    def prove(path: str, method: str = "CONNECT") -> list[str]:
        return ["riseml", f"riseml-proof.{make_proof(key, challenge, f'{method} {path}')}"]

    own = intruder.origin
    with open_stream(own + command, cookie, own, prove(command)) as stream:
        assert stream.subprotocol == "riseml"
        stream.send(encode_message(CommandRequest(("echo", "in the job"))))
        pieces = [decode_message(data) for data in stream if isinstance(data, bytes)]
    assert ChannelData(Channel.OUTPUT, b"in the job\n") in pieces, "who has both halves may pass"
    attacks = {
        "another origin": (command, cookie, "http://127.0.0.1:9999", prove(command)),
        "no origin": (command, cookie, None, prove(command)),
        "no cookie": (command, {}, own, prove(command)),
        "no proof": (command, cookie, own, ["riseml"]),
        "a proof of a request": (command, cookie, own, prove(command, "GET")),
        "a proof of another stream": (command, cookie, own, prove(port)),
        "a port": (port, cookie, own, prove(port)),
    }
    for name, (path, headers, origin, protocols) in attacks.items():
        with pytest.raises(InvalidStatus, match="403"), open_stream(own + path, headers, origin, protocols):
            pytest.fail(name)
    with pytest.raises(InvalidStatus, match="403"):
        open_stream(own + command, cookie, own, prove(command), "evil.example")
    rig.post("/v1/experiments/1/kill")
    rig.wait_closed("1")


def test_sessions_end_with_the_door_and_when_the_port_was_taken(rig: Rig, intruder: Intruder) -> None:
    """Another user takes the port while no server runs, and asks the open page for what it has."""
    cookie, key = intruder.enter(intruder.url)
    port = int(intruder.origin.rpartition(":")[2])
    kept = rig.home / "web.json"
    assert (kept.stat().st_mode & 0o777, kept.stat().st_uid) == (0o600, os.getuid())
    rig.kill()
    rig.start()
    rig.wait("the door is open again", lambda: is_listening(port))
    assert intruder.ask("GET", "/api/v1/server", cookie, key).status_code == 200, "an open page goes on"
    rig.kill()
    with socket.create_server(("127.0.0.1", port)):
        rig.start()
        rig.wait("the server has forgotten", lambda: not kept.exists())
    reopened: str = rig.post("/v1/web", {"port": port}).json()["url"]
    assert intruder.ask("GET", "/api/v1/server", cookie, key).status_code == 401
    cookie, key = intruder.enter(reopened)
    assert intruder.ask("GET", "/api/v1/server", cookie, key).status_code == 200
    assert rig.post("/v1/web/close").json() == {"open": False, "port": None, "url": None}
    assert not is_listening(port)
    rig.post("/v1/web", {"port": port})
    assert intruder.ask("GET", "/api/v1/server", cookie, key).status_code == 401
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = rig.post("/v1/web", {"port": other.getsockname()[1]})
    assert (taken.status_code, taken.json()["error"]["kind"]) == (409, "Conflict")


def test_nothing_listens_before_the_user_asks(tmp_path_factory: pytest.TempPathFactory) -> None:
    """A program of another user looks for ports of the server."""
    with Rig(tmp_path_factory.mktemp("closed") / "home", None) as quiet:
        sockets = psutil.Process(quiet.server_pid()).net_connections("inet")
        assert [one.laddr for one in sockets if one.status == psutil.CONN_LISTEN] == []
