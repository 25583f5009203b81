"""`init --convert` shows what an earlier file becomes, asks, and keeps the earlier text."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.unit.cli.conftest import Riseml

EARLIER = "# mine\ndeploy:\n  image: a  # any\n  run: python t.py\n  input: x\n"
CONVERTED = "# mine\nproject: project\ntrain:\n  image: a  # any\n  run: python t.py\n  # input: x\n"


@pytest.fixture
def earlier(folder: Path) -> Path:
    file = folder / "riseml.yml"
    file.write_text(EARLIER)
    return file


def test_a_yes_writes_the_new_text_and_keeps_the_earlier_one(
    riseml: Riseml, earlier: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def confirm(text: str, *, err: bool) -> bool:
        asked.append(text)
        return len(asked) > 1

    monkeypatch.setattr("typer.confirm", confirm)
    earlier.chmod(0o640)
    refused = riseml("init", "--convert", asks=True)
    assert (refused.code, earlier.read_text()) == (4, EARLIER)
    assert "-deploy:\n+project: project\n+train:\n" in refused.out
    assert "note: `input` is a comment now: riseml serves no models\n" in refused.err
    result = riseml("init", "--convert", asks=True)
    assert (result.code, asked) == (0, ["Write riseml.yml?"] * 2)
    assert earlier.read_text() == CONVERTED
    assert earlier.with_name("riseml.yml.old").read_text() == EARLIER
    assert earlier.stat().st_mode & 0o777 == 0o640
    assert "the earlier text is in riseml.yml.old" in result.err
    assert sorted(path.name for path in earlier.parent.iterdir()) == ["riseml.yml", "riseml.yml.old", "train.py"]
    again = riseml("init", "--convert", "-y")
    assert (again.code, again.out) == (0, "riseml.yml is a file of this version: nothing to convert.\n")


def test_without_a_terminal_only_y_converts_and_no_earlier_text_is_replaced(riseml: Riseml, earlier: Path) -> None:
    earlier.with_name("riseml.yml.old").write_text("another")
    refused = riseml("init", "--convert")
    assert (refused.code, earlier.read_text()) == (4, EARLIER)
    assert "-y converts without a question" in refused.err
    result = riseml("init", "--convert", "-y", "--json")
    assert json.loads(result.out) == {"file": "riseml.yml", "project": "project", "old": "riseml.yml.old2"}
    assert earlier.with_name("riseml.yml.old").read_text() == "another"
    assert earlier.with_name("riseml.yml.old2").read_text() == EARLIER


def test_validate_and_train_name_the_command_and_print_no_escape(riseml: Riseml, earlier: Path) -> None:
    for verb in ("validate", "train"):
        result = riseml(verb)
        assert result.code == 2
        assert "`riseml init --convert` rewrites the file for this version" in result.err
        assert "\\x0a" not in result.err


@pytest.mark.parametrize(
    ("text", "words", "code", "said"),
    [
        ("deploy:\n  image: a\n", (), 2, "riseml.yml (converted):2:1: error: train.run: is missing"),
        ("deploy: [\n", (), 2, "cannot convert; nothing was written"),
        (EARLIER, ("-f", "none.yml"), 3, "there is no file none.yml"),
        (EARLIER, ("--framework", "jax"), 2, "--convert takes no --framework"),
    ],
)
def test_what_cannot_be_converted_is_named_and_stays(
    riseml: Riseml, earlier: Path, text: str, words: tuple[str, ...], code: int, said: str
) -> None:
    earlier.write_text(text)
    result = riseml("init", "--convert", "-y", *words)
    assert (result.code, earlier.read_text()) == (code, text)
    assert said in result.err
    assert not earlier.with_name("riseml.yml.old").exists()
