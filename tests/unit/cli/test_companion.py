"""A page in a browser, and what a companion that ends or says no port means."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from queue import Queue

import pytest

from riseml.base.states import NO_PROGRAM
from riseml.cli import companion
from riseml.cli.companion import open_browser
from riseml.client.exchange import Address
from riseml.client.server_client import Client
from tests.support.waiting import DEADLINE
from tests.unit.cli.fake_server import FakeServer, end, make_experiment


def test_the_browser_gets_no_token_on_its_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: Queue[str] = Queue()
    monkeypatch.setattr(webbrowser, "open", opened.put)
    page = open_browser("http://127.0.0.1:8888/lab?token=5ec4e7&x", tmp_path / "home")
    assert opened.get(timeout=DEADLINE) == page.as_uri()
    assert page.stat().st_mode & 0o777 == 0o600
    assert "url=http://127.0.0.1:8888/lab?token=5ec4e7&amp;x" in page.read_text()


@pytest.mark.parametrize(
    ("state", "reason", "code", "said"),
    [
        ("FAILED", "BUILD_FAILED", None, "the environment has no JupyterLab, or could not be made: step 1 failed"),
        ("FAILED", "EXIT_CODE", NO_PROGRAM, "there is no JupyterLab"),
        ("FAILED", "EXIT_CODE", 1, "JupyterLab has ended before it listened (FAILED): step 1 failed"),
        ("KILLED", "KILLED_BY_USER", None, "4 was killed"),
    ],
    ids=["a build that failed", "no program", "another end", "a kill"],
)
def test_the_end_of_a_companion_says_what_is_missing(
    fake_server: FakeServer, state: str, reason: str, code: int | None, said: str
) -> None:
    """A line of the build that begins with `error: ` is not what the companion itself says."""
    fake_server.experiments["4"] = make_experiment(type="notebook", last_lines=["error: there is no JupyterLab"])
    ended = end(state, id="4", reason=reason, exit_code=code, message="step 1 failed")
    with Client(Address(fake_server.home / "server.sock")) as client:
        error = companion._make_end_error(client, ended)
    assert error.message == said


@pytest.mark.parametrize("said", ["²", "0", "99999", "-1", "1" * 5000, "", "x"])
def test_a_job_that_says_no_port_has_the_usual_one(monkeypatch: pytest.MonkeyPatch, said: str) -> None:
    asked: list[int] = []
    monkeypatch.setattr(companion, "ask_job", lambda *_: said)
    monkeypatch.setattr(companion, "find_answering_jobs", lambda _address, _jobs, port: asked.append(port))
    client = Client(Address())
    assert (companion.find_port(client, "4.notebook", 8888), asked) == (8888, [8888])
