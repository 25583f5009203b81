"""What the commands do with a whole home, and what they print."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from riseml.server.home_program import main
from tests.unit.server.test_home_move import make_settings, start


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home whose server has run."""
    home = tmp_path / "home"
    start(make_settings(home))
    monkeypatch.setenv("RISEML_HOME", str(home))
    return home


def test_a_backup_and_its_restoration_are_told_as_json(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "backup"
    assert main(["backup", str(file)]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["file"], told["home"], told["store"]) == (str(file), str(home), True)
    assert told["size"] == file.stat().st_size
    monkeypatch.setenv("RISEML_HOME", str(tmp_path / "other"))
    assert main(["restore", str(file)]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["home"], told["former"], told["store"]) == (str(tmp_path / "other"), str(home), True)


def test_a_problem_is_two_lines_and_an_exit_code(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["restore", str(home / "no-such-file")]) != 0
    message, hint = capsys.readouterr().out.splitlines()
    assert message
    assert hint


def test_other_words_are_a_mistake_of_the_caller(home: Path) -> None:
    with pytest.raises(ValueError, match="these words are unknown"):
        main(["erase"])
