"""TensorBoard from the page: at an origin of its own, from which nothing of riseml's page or API is in reach.

The docstrings of the exploits say what the attacker does: a job whose program attacks the browser that shows it, a web
page of another site, a program of another user of the machine.
"""

from __future__ import annotations

import json
import os
import re
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect

from tests.real.streams.test_tensorboard import TENSORFLOW, WRITER
from tests.support.rig import Rig, single
from tests.support.waiting import DEADLINE
from tests.support.web_scene import AXE, WAIT, enter, show

expect.set_options(timeout=WAIT)

_START = 1000 * DEADLINE  # milliseconds in which a TensorBoard starts: it imports TensorFlow first


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    """A server whose experiment 1 runs with a hostile TensorBoard of its own."""
    folder = tmp_path_factory.mktemp("board")
    program = folder / "bin" / "tensorboard"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} {Path(__file__).with_name("hostile_board.py")} "$@"\n')
    program.chmod(0o755)
    with Rig(folder / "home", None, PATH=f"{program.parent}:{os.environ['PATH']}") as made:
        try:
            made.submit(single("exec sleep 3600", framework="tensorflow", tensorflow={"tensorboard": True}))
            made.wait_state("1", "RUNNING")
            made.wait(
                "it listens", lambda: any("listening" in line for line in made.lines("1.tensorboard", follow=False))
            )
            yield made
        finally:
            made.post("/v1/experiments/1/kill")
            made.wait_closed("1")
            made.clean_up()


class BrowserTab:
    """Asks the address of a TensorBoard, as a browser that was let in or as an attacker."""

    def __init__(self, rig: Rig) -> None:
        rig.post("/v1/web", {})
        answer = rig.post("/v1/experiments/1/address")
        assert answer.status_code == 200, answer.text
        self.url: str = answer.json()["url"]
        place = urlsplit(self.url)
        self.host = place.netloc
        self.client = httpx.Client(base_url=f"http://127.0.0.1:{place.port}", timeout=DEADLINE)
        self.cookie: dict[str, str] = {}

    def ask(self, method: str, path: str, **headers: str) -> httpx.Response:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.client.request(method, path, headers={"Host": self.host, **self.cookie, **named})

    def enter(self) -> None:
        """Exchange the address for the cookie."""
        answer = self.ask("GET", self.url.partition(self.host)[2])
        assert (answer.status_code, answer.headers["location"]) == (303, "/.riseml/")
        given = answer.headers["set-cookie"]
        assert "HttpOnly" in given
        assert "omain" not in given
        self.cookie = {"Cookie": given.partition(";")[0]}
        self.client.cookies.clear()


@pytest.fixture
def tab(rig: Rig) -> Iterator[BrowserTab]:
    made = BrowserTab(rig)
    made.enter()
    yield made
    made.client.close()


def find_report(rig: Rig) -> dict[str, Any] | None:
    """Return what the hostile page has found out; None: it has not said it yet."""
    said = [line.partition(" report ")[2] for line in rig.lines("1.tensorboard", follow=False) if " report " in line]
    return json.loads(said[-1]) if said else None


def find_faults(page: Page) -> list[str]:
    """Return what some users could not use, of the page itself."""
    found = page.evaluate(f"{AXE}; axe.run(document, {{resultTypes: ['violations'], iframes: false}})")
    return [one["id"] for one in found["violations"]]


def test_a_hostile_program_reaches_nothing_from_the_browser(rig: Rig, browser: Browser) -> None:
    """The program of a job runs scripts in the user's browser, which has a session of riseml's page."""
    page = enter(browser, rig)
    show(page, "/experiments/1")
    assert find_faults(page) == []
    page.get_by_role("link", name="TensorBoard", exact=True).click()
    page.wait_for_url(re.compile(r"^http://1-[0-9a-f]{40}\.localhost:\d+/\.riseml/$"))
    expect(page.frame_locator("#program").get_by_role("heading", name="hostile board")).to_be_visible()
    seen = rig.wait("it reports what it found", lambda: find_report(rig))
    assert find_faults(page) == []
    assert seen.pop("cookie") == "", "neither the page's cookie nor that of this address"
    assert seen.pop("keys") == "", "the page key is another origin's"
    assert seen.pop("own api") == "404 nothing here", "it asks itself"
    assert seen.pop("enter") == "404 nothing here"
    assert seen.pop("own cookie") in ("", f"riseml-{urlsplit(page.url).port}=tossed"), "at most one of its own"
    assert seen.pop("frame") in ("nothing", "read "), "the page is not shown in a frame"
    assert seen.pop("opener") == "null"
    assert {name: said for name, said in seen.items() if not said.startswith("refused")} == {}
    assert rig.experiment("1")["state"] == "RUNNING"
    page.go_back()
    expect(page.locator("#connection")).to_have_text("live")
    assert page.url.startswith("http://127.0.0.1:"), "its session goes on"
    page.context.close()


def test_a_foreign_page_and_a_program_without_the_cookie(rig: Rig, tab: BrowserTab) -> None:
    """They know the address, which a program can give away; or they guess one, or bring what another host gave."""
    mine = dict(tab.cookie)
    assert tab.ask("GET", "/echo").status_code == 200, "who has the cookie may pass"
    for origin in (
        "http://evil.example",
        "null",
        f"http://127.0.0.1:{urlsplit(tab.url).port}",
        f"http://x.{tab.host}",
    ):
        for method in ("GET", "POST"):
            assert tab.ask(method, "/report", Origin=origin).status_code == 403
    assert tab.ask("POST", "/report").status_code == 403, "a write says where it comes from"
    for site in ("cross-site", "same-site"):
        assert tab.ask("GET", "/echo", Sec_Fetch_Site=site, Sec_Fetch_Mode="no-cors").status_code == 403
        assert (
            tab.ask("GET", "/", Sec_Fetch_Site=site, Sec_Fetch_Mode="navigate", Sec_Fetch_Dest="iframe").status_code
            == 403
        )
    assert tab.ask("GET", "/worker.js", Service_Worker="script").status_code == 403
    assert tab.ask("GET", tab.url.partition(tab.host)[2]).status_code == 403, "an address is good once"
    tab.cookie = {}
    for path in (
        "/",
        "/echo",
        "/.riseml/",
        "/.riseml/proxied_app.js",
        "/.riseml/presence",
        "/.riseml/enter?token=x",
        "/%2eriseml/enter",
    ):
        answer = tab.ask("GET", path)
        assert answer.status_code == 403, path
        assert "set-cookie" not in answer.headers
    tab.cookie = mine
    label, _, rest = tab.host.partition(".")
    for name in (f"2{label[1:]}.{rest}", f"{label[:-1]}.{rest}", f"1.{rest}", f"x.{rest}"):
        assert tab.ask("GET", "/echo", Host=name).status_code in (403, 421), name
    for name in (f"{tab.host}.evil.example", f"{label}.evil.example", f"a.{tab.host}", f"{tab.host}@x"):
        assert tab.ask("GET", "/echo", Host=name).status_code in (400, 421), name
    api = tab.client.get("/api/v1/server", headers=mine)
    assert api.status_code == 401, "the cookie opens nothing of the page"
    assert tab.client.get("/apps/1/echo", headers=mine).headers["content-type"].startswith("text/html"), "the page"
    assert tab.client.get("/api/apps/1/echo", headers=mine).status_code == 404


def test_what_a_program_answers_reaches_no_further(tab: BrowserTab) -> None:
    """It answers with cookies, redirects and headers that would act on other pages, or with no HTTP at all."""
    asked = tab.ask("GET", "/echo", Referer=tab.url, Authorization="Basic x", X_Riseml_Proof="x", X_Kept="yes").json()
    assert {name.lower() for name in asked} <= {
        "host",
        "accept",
        "accept-encoding",
        "user-agent",
        "x-kept",
        "connection",
    }
    answer = tab.ask("GET", "/headers")
    assert answer.text == "<p>hello"
    for name in ("set-cookie", "refresh", "link", "clear-site-data", "access-control-allow-origin"):
        assert name not in answer.headers, name
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "default-src 'self'" in answer.headers["content-security-policy"]
    assert tab.ask("GET", "/near").headers["location"] == "/echo"
    for path in ("/away", "/page_of_riseml", "/endless_head", "/interim", "/switch", "/garbage", "/reset"):
        refused = tab.ask("GET", path, X_Port=str(urlsplit(tab.url).port))
        assert (refused.status_code, "location" in refused.headers) == (502, False), path
        assert refused.text.startswith("TensorBoard "), refused.text
    with pytest.raises(httpx.RemoteProtocolError):
        tab.ask("GET", "/short")


def test_an_answer_without_an_end_is_read_as_fast_as_the_browser_takes_it(rig: Rig, tab: BrowserTab) -> None:
    """A program sends without end; the server holds some pieces, and closes the stream when the browser does."""
    before = read_memory(rig.server_pid())
    with tab.client.stream("GET", "/endless", headers={"Host": tab.host, **tab.cookie}) as answer:
        taken = 0
        for piece in answer.iter_raw():
            taken += len(piece)
            if taken > 64 << 20:
                break
    assert read_memory(rig.server_pid()) - before < 48, "MiB"
    said = "1.tensorboard endless: the reader is gone"
    rig.wait("the program's side is closed, too", lambda: said in rig.lines("1.tensorboard", follow=False))


def read_memory(process: int) -> float:
    """Return the MiB that a process holds."""
    text = Path(f"/proc/{process}/status").read_text()
    return int(re.findall(r"^VmRSS:\s+(\d+)", text, re.M)[0]) / 1024


def test_no_other_program_answers_at_the_other_loopback_address(rig: Rig) -> None:
    """Browsers ask ::1 first for a name below localhost: another user listens there at the same port."""
    port = rig.post("/v1/web", {}).json()["port"]
    try:
        with socket.socket(socket.AF_INET6) as other:
            other.bind(("::1", port))
            pytest.fail("another program can listen there")
    except OSError:
        pass


def test_a_real_tensorboard_is_started_shown_and_ends_after_its_tab(docker_rig: Rig, browser: Browser) -> None:
    """The set's button starts a TensorBoard over both members; it ends when the tab is closed."""
    keys = {"framework": "tensorflow", "image": TENSORFLOW, "tensorflow": {"version": "2.21.0"}}
    small = {"cpus": 0.1, "mem": "512MiB"}
    both = single("python3 write.py", **keys, resources=small, parameters={"lr": [0.5, 0.25]}, concurrency=2)
    docker_rig.submit(both, {"write.py": WRITER})
    docker_rig.wait_closed("1")
    page = enter(browser, docker_rig)
    sockets: list[str] = []
    page.on("websocket", lambda socket: sockets.append(socket.url))
    show(page, "/tensorboard?of=1")
    expect(page.get_by_role("button", name="Open TensorBoard")).to_be_enabled()
    assert find_faults(page) == []
    assert len(docker_rig.get("/v1/experiments")["experiments"]) == 0, "an address alone starts nothing"
    show(page, "/experiments/1")
    page.get_by_role("link", name="TensorBoard", exact=True).click()
    origin = re.compile(r"^http://2-[0-9a-f]{40}\.localhost:\d+/\.riseml/$")
    page.wait_for_url(origin, timeout=_START, wait_until="commit")
    board = page.frame_locator("#program")
    expect(board.get_by_text("2.2 lr=0.25/run").or_(board.get_by_text("1.2 lr=0.25/run")).first).to_be_visible(
        timeout=_START
    )
    assert docker_rig.experiment("2")["state"] == "RUNNING"
    assert sockets == [], "the gate refuses every WebSocket, so TensorBoard may open none"
    docker_rig.post("/v1/experiments/2/kill")
    expect(page.get_by_role("alert")).to_contain_text("2 has ended")
    docker_rig.wait_closed("2")
    page.context.close()
