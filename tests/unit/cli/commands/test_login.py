"""`login` at a terminal: a login at the provider where the server offers one, else a prompt for a key."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

import pytest

from riseml.base.settings import Settings
from riseml.cli.context import CommandContext
from riseml.client.contexts import read_contexts
from riseml.server.standby.answers import StandbyApi, StandbyListener
from riseml.server.standby.turn import Awaited
from tests.unit.cli.accounts import CALLER, SECRET
from tests.unit.cli.conftest import Riseml
from tests.unit.cli.fake_server import FakeServer

OFFERS = (200, {"keys": True, "provider": "sso.example.org"})
BEGUN: dict[str, Any] = {
    "login": "x" * 43,
    "code": "WDJB-MJHT",
    "url": "https://sso.example.org/device",
    "whole_url": None,
    "expires_in": 600.0,
    "interval": 5.0,
}
CONFIRMED = {"secret": SECRET, "user": "paul", "wait": 0.0}


@pytest.fixture
def log_in(riseml: Riseml, fake_server: FakeServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Riseml:
    """Return a function that logs in at a terminal, whose user types a key when a prompt asks for it."""
    monkeypatch.setattr(CommandContext, "ask_for_secret", lambda *_: SECRET + "typed")
    fake_server.answers |= {
        "GET /whoami": (200, CALLER),
        "GET /login": OFFERS,
        "POST /login/device": (200, BEGUN),
        "POST /login/device/session": (200, CONFIRMED),
    }

    def call(*words: str, **more: Any) -> Any:
        environ = {"RISEML_HOME": str(tmp_path / "home")}
        return riseml("login", fake_server.url, "--name", "lab", *words, environ=environ, **more)

    return call


def find_key(folder: Path) -> str:
    return read_contexts(folder / "home" / "config").find("lab").key


def test_a_terminal_logs_in_at_the_provider(log_in: Riseml, fake_server: FakeServer, tmp_path: Path) -> None:
    ended = log_in(asks=True)
    assert ended.code == 0, ended.err
    assert "Open https://sso.example.org/device and type the code WDJB-MJHT\n" in ended.err
    assert find_key(tmp_path) == SECRET
    assert SECRET not in ended.out + ended.err
    assert fake_server.answered["POST /login/device/session"] == b'{"login":"' + b"x" * 43 + b'"}'


def test_a_given_key_needs_no_provider(log_in: Riseml, fake_server: FakeServer, tmp_path: Path) -> None:
    (tmp_path / "key").write_text(SECRET)
    assert log_in("--key-file", str(tmp_path / "key"), asks=True).code == 0
    assert [route for route in fake_server.asked if "login" in route] == []


@pytest.mark.parametrize(
    ("route", "answer"),
    [
        ("GET /login", (200, {"keys": True, "provider": None})),
        ("GET /login", None),
        ("POST /login/device", None),
    ],
)
def test_without_a_login_for_commands_a_prompt_asks_for_a_key(
    log_in: Riseml, fake_server: FakeServer, tmp_path: Path, route: str, answer: Any
) -> None:
    if answer is None:
        kind, status = ("NotFound", 404) if route.startswith("GET") else ("Refused", 409)
        fake_server.refuse(route, kind, "sso.example.org has no login for the command line", status=status)
    else:
        fake_server.answers[route] = answer
    ended = log_in(asks=True)
    assert ended.code == 0, ended.err
    assert find_key(tmp_path) == SECRET + "typed"
    assert ("no login for the command line: a key is needed" in ended.err) == route.startswith("POST")


@pytest.mark.parametrize(
    ("route", "answer", "sentence"),
    [
        ("POST /login/device/session", {**CONFIRMED, "secret": "a\nb"}, "the server has answered with a session that"),
        ("POST /login/device/session", {**CONFIRMED, "secret": None}, "nobody has confirmed this login in time"),
        ("POST /login/device/session", {**CONFIRMED, "secret": None, "wait": -1}, "nobody has confirmed this login"),
        ("POST /login/device", {**BEGUN, "expires_in": 0}, "nobody has confirmed this login in time"),
        ("POST /login/device", {**BEGUN, "code": None}, "code"),
        ("GET /login", {"keys": True}, "provider"),
    ],
)
def test_a_login_that_fails_keeps_nothing(
    log_in: Riseml, fake_server: FakeServer, tmp_path: Path, route: str, answer: Any, sentence: str
) -> None:
    fake_server.answers[route] = (200, answer)
    ended = log_in(asks=True)
    assert ended.code in (4, 5), ended
    assert sentence in ended.err
    assert "Traceback" not in ended.err
    assert not (tmp_path / "home" / "config").exists()
    assert len(fake_server.asked) <= 2 + 600


def test_commands_turn_to_the_server_that_has_taken_over_and_say_so_once(
    log_in: Riseml, riseml: Riseml, fake_server: FakeServer, tmp_path: Path
) -> None:
    settings = Settings(tmp_path, tmp_path / "output", tmp_path / "data")
    awaited = Awaited("process 7 on gpu1", address=fake_server.url)
    environ = {"RISEML_HOME": str(tmp_path / "home")}
    (tmp_path / "key").write_text(SECRET)
    waiting = socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{waiting.getsockname()[1]}"
    with StandbyListener(StandbyApi(settings, lambda: awaited, is_public=True), waiting):
        words = ("login", url, "--also", fake_server.url, "--name", "lab", "--key-file", str(tmp_path / "key"))
        assert riseml(*words, environ=environ).code == 0
        told = [riseml("status", environ=environ).err for _ in range(2)]
    assert told == [f"{url} does not serve now: commands go to {fake_server.url}.\n", ""]
    lab = read_contexts(tmp_path / "home" / "config").find("lab")
    assert (lab.url, lab.also) == (fake_server.url, (url,))
    assert f"Also: {url}\n" in riseml("context", "show", "lab", environ=environ).out


@pytest.mark.parametrize(
    ("also", "code", "problem"),
    [
        ("gpu2 8443", 2, "'gpu2 8443' is not the address of a server"),
        ("http://gpu2:8443", 4, "http://gpu2:8443 is not encrypted"),
        ("{url}", 2, "is given twice"),
    ],
)
def test_the_address_of_a_standby_is_checked(
    log_in: Riseml, fake_server: FakeServer, also: str, code: int, problem: str
) -> None:
    ended = log_in("--also", also.format(url=fake_server.url))
    assert ended.code == code
    assert problem in ended.err
    assert fake_server.asked == []


SESSION_SECRET = "riseml_session_" + "y" * 43


@pytest.mark.parametrize(
    ("status", "ended", "told"),
    [
        (200, True, "Logged paul out of {url}: the session has ended there.\n"),
        (401, True, "Logged paul out of {url}: the session has ended there.\n"),
        (503, False, "Forgot the key of paul at {url}.\n"),
    ],
)
def test_logout_ends_the_session_of_a_login_at_the_provider(
    log_in: Riseml, riseml: Riseml, fake_server: FakeServer, tmp_path: Path, status: int, told: str, *, ended: bool
) -> None:
    environ = {"RISEML_HOME": str(tmp_path / "home")}
    fake_server.answers["POST /login/device/session"] = (200, {**CONFIRMED, "secret": SESSION_SECRET})
    assert log_in(asks=True).code == 0
    fake_server.answers["POST /sessions/5f0c1a2b3d/end"] = (200, {"user": "paul", "sessions": []})
    if status != 200:
        kind = {401: "Unauthenticated", 503: "StoreError"}[status]
        fake_server.refuse("POST /sessions/5f0c1a2b3d/end", kind, "the store does not answer", status=status)
    done = riseml("logout", environ=environ)
    back = f"Commands go to your own server now; `riseml login {fake_server.url}` goes back.\n"
    assert (done.code, done.out) == (0, told.format(url=fake_server.url) + back)
    assert ("has not ended at" in done.err) == (not ended)
    assert "POST /sessions/5f0c1a2b3d/end" in fake_server.asked
    assert find_key(tmp_path) == ""
    again = riseml("logout", "lab", "--json", environ=environ)
    assert json.loads(again.out) == {"context": "lab", "had_key": False, "session_ended": False}


def test_logout_leaves_a_key_as_it_is(log_in: Riseml, riseml: Riseml, fake_server: FakeServer, tmp_path: Path) -> None:
    (tmp_path / "key").write_text(SECRET)
    assert log_in("--key-file", str(tmp_path / "key")).code == 0
    done = riseml("logout", environ={"RISEML_HOME": str(tmp_path / "home")})
    assert done.out.startswith(f"Forgot the key of paul at {fake_server.url}.\n")
    assert not [route for route in fake_server.asked if "sessions" in route]
