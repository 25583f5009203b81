"""`web`: the address of the page, its sessions, and which addresses a browser gets."""

from __future__ import annotations

import json
import webbrowser

import pytest

from tests.unit.cli.conftest import Riseml
from tests.unit.cli.fake_server import FakeServer

URL = "http://127.0.0.1:4711/enter?token=a-B_1"
OPEN = {"open": True, "port": 4711, "url": URL}
SESSION = {"id": "ab12", "opened_at": "2026-08-31T07:23:46Z", "until": "2026-09-30T07:23:46Z"}


def test_the_address_is_printed_and_the_port_is_asked_for(riseml: Riseml, fake_server: FakeServer) -> None:
    fake_server.answers["POST /web"] = (200, OPEN)
    done = riseml("web", "--port", "4711")
    assert (done.code, done.out) == (0, URL + "\n")
    assert done.err == "The address lets one browser in, once, within ten minutes.\n"
    assert json.loads(riseml("web", "--json").out) == OPEN


def test_sessions_are_listed_and_ended(riseml: Riseml, fake_server: FakeServer) -> None:
    fake_server.answers["GET /web/sessions"] = (200, {"sessions": [SESSION]})
    fake_server.answers["POST /web/sessions/ab12/end"] = (200, {"sessions": []})
    shown = riseml("web", "--sessions").out
    assert shown == "ab12  opened 2026-08-31T07:23:46Z  until 2026-09-30T07:23:46Z\n"
    assert riseml("web", "--end", "ab12").out == "No browser has a session.\n"


def test_the_page_is_closed(riseml: Riseml, fake_server: FakeServer) -> None:
    fake_server.answers["POST /web/close"] = (200, {"open": False, "port": None, "url": None})
    assert riseml("web", "--stop").out == "The web page is closed.\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--stop --open", "--stop closes the page"),
        ("--stop --port 4711", "--stop closes the page"),
        ("--sessions --end ab12", "--sessions and --end take no other option"),
        ("--end ab12 --open", "--sessions and --end take no other option"),
        ("--port 0", "--port"),
    ],
)
def test_options_that_exclude_each_other_are_refused(
    riseml: Riseml, fake_server: FakeServer, words: str, said: str
) -> None:
    refused = riseml("web", *words.split())
    assert (refused.code, said in refused.err, fake_server.asked) == (2, True, []), refused.err


def test_the_page_of_another_server_is_not_opened(riseml: Riseml, fake_server: FakeServer) -> None:
    refused = riseml("web", environ={"RISEML_SERVER": fake_server.url})
    assert (refused.code, "is not your own server" in refused.err) == (2, True)
    assert not any("/web" in question for question in fake_server.asked)


@pytest.mark.parametrize(
    ("url", "opens"),
    [
        (URL, True),
        ("http://evil.example:80/enter?token=x", False),
        ("http://127.0.0.1:80/enter?token=x&next=//evil", False),
        ("file:///etc/passwd", False),
    ],
)
def test_a_browser_gets_an_address_of_this_machine_alone(
    riseml: Riseml, fake_server: FakeServer, monkeypatch: pytest.MonkeyPatch, url: str, *, opens: bool
) -> None:
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    fake_server.answers["POST /web"] = (200, {**OPEN, "url": url})
    done = riseml("web", "--open")
    assert (done.code, bool(opened)) == ((0, True) if opens else (2, False))
    assert all("token" not in page for page in opened), "other users see the words of a browser's command"
