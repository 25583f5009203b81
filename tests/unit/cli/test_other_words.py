"""Words of other tools as the first word: the same command, or an answer with the right ones."""

from __future__ import annotations

import re
import shlex
from typing import Any

import pytest
from typer.main import get_command

from riseml.base.errors import UsageError
from riseml.cli import other_words
from riseml.cli.command_table import list_names
from riseml.cli.commands.completion import _list_commands
from riseml.cli.main import make_app
from riseml.cli.other_words import translate_words
from tests.unit.cli.conftest import Riseml
from tests.unit.cli.fake_server import FakeServer, make_experiment

WORDS = {*other_words._SAME, *other_words._ANSWERS, "help", "version", "-v", "-V"}
ANSWERED = sorted(other_words._ANSWERS)


@pytest.mark.parametrize(
    ("words", "same"),
    [
        ("ps -a", "status -a"),
        ("list", "status"),
        ("ls-runs -n 3", "status -n 3"),
        ("queue 4", "status 4"),
        ("describe 4 --json", "show 4 --json"),
        ("inspect 4", "show 4"),
        ("top --once", "monitor --once"),
        ("log 4 --no-follow", "logs 4 --no-follow"),
        ("stop 4 9", "kill 4 9"),
        ("cancel 4", "kill 4"),
        ("run --dry-run", "train --dry-run"),
        ("submit -f gone.yml", "train -f gone.yml"),
        ("run 4 --trials 0", "train 4 --trials 0"),
        ("stop --nope 4", "kill --nope 4"),
    ],
)
def test_a_word_with_a_safe_meaning_is_the_command(
    riseml: Riseml, fake_server: FakeServer, words: str, same: str
) -> None:
    fake_server.experiments["4"] = make_experiment()
    done = riseml(*words.split())
    asked = [*fake_server.asked]
    fake_server.reset()
    fake_server.experiments["4"] = make_experiment()
    expected = riseml(*same.split())
    assert (done, asked) == (expected, fake_server.asked)
    assert "no such command" not in done.err


@pytest.mark.parametrize("words", ["version", "-v", "-V"])
def test_the_version_has_several_spellings(riseml: Riseml, words: str) -> None:
    assert riseml(words).out == riseml("--version").out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("stop", "`riseml stop` needs the ID of an experiment"),
        ("stop --json", "`riseml stop` needs the ID of an experiment"),
        ("cancel --force", "`riseml cancel` needs the ID of an experiment"),
        ("run train.py", "takes neither a command nor a file: 'train.py'"),
        ("run python train.py", "takes neither a command nor a file: 'python'"),
        ("submit job.yaml", "takes neither a command nor a file: 'job.yaml'"),
        ("version 4", "`riseml version` prints the version, and takes nothing else"),
        ("-v status", "`riseml -v` prints the version, and takes nothing else"),
        ("-V --json", "`riseml -V` prints the version, and takes nothing else"),
        ("ps 4/x", "'4/x' is not an experiment ID"),
        ("describe 4 5", "`riseml show -h`"),
        ("top --nope", "`riseml monitor -h`"),
        ("log 4 --tail many", "`riseml logs -h`"),
        ("help up", "there is no command 'up'"),
        ("help ps 4", "status has no command '4'"),
        *((f"{word} 4", f"there is no command {word!r}") for word in ANSWERED),
    ],
)
def test_a_word_that_could_mean_several_commands_starts_and_ends_nothing(
    riseml: Riseml, fake_server: FakeServer, words: str, said: str
) -> None:
    result = riseml(*words.split())
    assert (result.code, result.out) == (2, "")
    assert fake_server.asked in ([], ["GET /server"])
    assert said in result.err
    assert "Did you mean" not in result.err
    assert len(result.err.splitlines()) == (1 if "--json" in words else 2)


@pytest.mark.parametrize("word", ANSWERED)
def test_each_answer_names_command_lines_that_the_parser_accepts(word: str) -> None:
    lines = re.findall(r"`riseml ([^`]+)`", other_words._ANSWERS[word])
    assert lines
    for line in lines:
        words = shlex.split(line)
        command: Any = get_command(make_app(words))
        while words[0] in getattr(command, "commands", {}):
            name, *words = words
            command = command.commands[name]
            command.make_context(name, list(words))
            if not words:
                break


@pytest.mark.parametrize("word", sorted(other_words._SAME))
def test_the_help_of_a_word_is_that_of_the_command(
    riseml: Riseml, capsys: pytest.CaptureFixture[str], word: str
) -> None:
    shown = []
    for words in (["help", word], [word, "-h"], [other_words._SAME[word], "--help"]):
        assert riseml(*words).code == 0
        shown.append(capsys.readouterr().out)
    assert shown[0] == shown[1] == shown[2]
    assert shown[0].startswith(f"Usage: riseml {other_words._SAME[word]} ")


def test_no_word_hides_a_command_and_completion_offers_none() -> None:
    assert not WORDS & list_names()
    assert set(other_words._SAME.values()) <= list_names()
    completed = list(_list_commands(get_command(make_app([])), ""))
    assert set(completed[0].commands) == list_names()
    hidden = {"logs": "-f", "kill": "-f", "rm": "-n", "cp": "-n", "server logs": "-f"}
    assert not any(hidden.get(each.path) in each.options for each in completed)


def test_an_unknown_word_stays_as_it_is() -> None:
    assert translate_words(["stauts", "4"]) == ["stauts", "4"]
    with pytest.raises(UsageError, match="there is no command 'delete'"):
        translate_words(["delete"])
