"""`server`: its status, and what a stop means for searches."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from riseml import __version__
from riseml.submission import local_server
from tests.unit.cli.conftest import Riseml
from tests.unit.cli.fake_server import FakeServer


def test_a_stop_says_that_searches_make_no_trials(
    riseml: Riseml, fake_server: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped = {**fake_server.server, "active": 2, "searches": 1}
    monkeypatch.setattr(local_server, "stop_server", lambda client, settings: stopped)
    assert riseml("server", "stop").out.splitlines() == [
        f"Stopped the riseml server (process {fake_server.server['pid']}). 2 experiments go on without it.",
        "A search makes no further trial and stops none until a server runs again: any riseml command starts it.",
    ]


def test_the_server_is_shown(riseml: Riseml) -> None:
    assert f"Server: riseml {__version__}, process 7" in riseml("server", "status").out
    assert json.loads(riseml("server", "status", "--json").out)["pid"] == 7


def test_server_status_and_stop_start_no_server(riseml: Riseml, tmp_path: Path) -> None:
    home = str(tmp_path / "home")
    result = riseml("server", "status", environ={"RISEML_HOME": home})
    assert result.code == 5
    assert "no riseml server runs" in result.err
    assert riseml("server", "stop", environ={"RISEML_HOME": home}).out == f"No riseml server runs for {home}.\n"
    assert not (tmp_path / "home").exists()
