"""Whether a server with the settings of the environment could run jobs."""

from __future__ import annotations

from pathlib import Path

import pytest

from riseml.base.errors import Unreachable
from riseml.server import executor_check
from riseml.server.executor_check import main


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RISEML_HOME", str(tmp_path))


def test_processes_can_run_here(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("RISEML_EXECUTOR", "process")
    assert main() == 0
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(("hint", "second"), [("start it", "start it"), (None, "")])
def test_a_problem_is_two_lines_and_an_exit_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], hint: str | None, second: str
) -> None:
    def refuse(_: object) -> None:
        raise Unreachable("no engine\nanswers", hint)

    monkeypatch.setattr(executor_check, "check_executor", refuse)
    assert main() == Unreachable.exit_code
    assert capsys.readouterr().out == f"no engine answers\n{second}\n"
