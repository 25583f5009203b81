"""The process of the user's own server: its home, its paths and its log."""

from __future__ import annotations

import sys
from pathlib import Path

import psutil
import pytest

from riseml.base.errors import Refused
from riseml.base.settings import read_settings
from riseml.submission.server_process import spawn_server
from tests.support.waiting import DEADLINE, wait_for
from tests.unit.cli.homes import make_settings


def test_a_home_that_cannot_be_used_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(Refused, match="cannot use"):
        spawn_server(make_settings(tmp_path / "file" / "home"), ())


def test_a_started_process_is_its_own_session_and_writes_to_the_log(tmp_path: Path) -> None:
    program = "import os, sys; print(os.getsid(0) == os.getpid(), os.getcwd(), sys.stdin.read() == '')"
    child = spawn_server(make_settings(tmp_path), (sys.executable, "-c", program))
    assert child.wait(DEADLINE) == 0
    assert (tmp_path / "server.log").read_text() == "True / True\n"


def test_an_ended_process_is_no_zombie_while_the_program_that_started_it_goes_on(tmp_path: Path) -> None:
    child = spawn_server(make_settings(tmp_path), (sys.executable, "-c", "pass"))
    wait_for("it is gone", lambda: not psutil.pid_exists(child.pid), DEADLINE)


def test_a_server_gets_absolute_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    settings = read_settings({"RISEML_HOME": "my home", "RISEML_OUTPUT": "out"})
    names = "RISEML_HOME", "RISEML_OUTPUT", "RISEML_DATA"
    program = f"import os; print([os.environ[name] for name in {names}])"
    assert spawn_server(settings, (sys.executable, "-c", program)).wait(DEADLINE) == 0
    assert settings.log.read_text().strip() == str(
        [str(tmp_path / "my home"), str(tmp_path / "out"), str(tmp_path / "my home" / "data")]
    )


def test_a_home_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(Refused, match="it is not a folder"):
        spawn_server(make_settings(tmp_path / "file"), ())
