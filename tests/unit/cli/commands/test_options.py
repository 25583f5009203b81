"""Options that several commands take."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.main import get_command
from typer.testing import CliRunner

from riseml.cli.commands.options import FileOption, IdArgument, JsonOption, ParameterOption, SettingOption
from riseml.cli.main import make_app
from tests.unit.cli.conftest import Riseml
from tests.unit.cli.fake_server import FakeServer, make_experiment

app = typer.Typer()


@app.command()
def show(
    identity: IdArgument = None,
    *,
    file: FileOption = None,
    json: JsonOption = False,
    parameters: ParameterOption = None,
    settings: SettingOption = None,
) -> None:
    assert file is None or isinstance(file, Path)
    typer.echo(repr((identity, file and str(file), json, parameters, settings)))


@pytest.mark.parametrize(
    ("words", "values"),
    [
        ([], (None, None, False, None, None)),
        (["4", "-f", "a b.yml", "--json"], ("4", "a b.yml", True, None, None)),
        (["-p", "lr=1", "--parameter", "n=2"], (None, None, False, ["lr=1", "n=2"], None)),
        (["--set", "a=1", "--set", "b=2"], (None, None, False, None, ["a=1", "b=2"])),
    ],
    ids=["none", "a file", "parameters", "settings"],
)
def test_options_have_one_form_in_every_command(words: list[str], values: tuple[object, ...]) -> None:
    assert CliRunner().invoke(app, words).output == f"{values!r}\n"


def test_an_empty_path_is_not_the_working_directory() -> None:
    refused = CliRunner().invoke(app, ["--file", ""])
    assert refused.exit_code == 2


MEANINGS = {
    "-a": {"--all"},
    "-d": {"--detach"},
    "-f": {"--file"},
    "-g": {"--gpu"},
    "-l": {"--long"},
    "-m": {"--message"},
    "-n": {"--last", "--project-name", "--rows", "--tail"},  # `riseml init -n NAME` is RiseML 1.x's own
    "-p": {"--parameter"},
    "-r": {"--recursive"},
    "-R": {"--recursive"},
    "-t": {"--tty"},
    "-u": {"--all-users", "--user"},
    "-w": {"--watch"},
    "-y": {"--yes"},
}


def _list_options(command: Any) -> Iterator[Any]:
    yield from (parameter for parameter in command.params if parameter.param_type_name == "option")
    for child in getattr(command, "commands", {}).values():
        yield from _list_options(child)


def test_a_letter_has_one_meaning_in_every_command() -> None:
    """`-n` is a number of rows or lines, and `-f` a file. Letters that had another meaning are hidden."""
    seen: dict[str, set[str]] = defaultdict(set)
    for option in _list_options(get_command(make_app([]))):
        if not option.hidden:
            for letter in (name for name in option.opts if not name.startswith("--")):
                seen[letter].add(next(name for name in option.opts if name.startswith("--")))
    assert seen == MEANINGS


@pytest.mark.parametrize(
    ("words", "letter", "option"),
    [
        ("logs 9 -f", "-f", "--follow"),
        ("server logs -f", "-f", "--follow"),
        ("cp -n x data://", "-n", "--dry-run"),
        ("rm -n data://x", "-n", "--dry-run"),
        ("pool remove gpu1 -f", "-f", "--force"),
    ],
)
def test_an_old_letter_goes_on_for_a_release_and_says_so(riseml: Riseml, words: str, letter: str, option: str) -> None:
    elsewhere = {"RISEML_SERVER": "http://127.0.0.1:9"} if words.startswith("server") else None
    old = riseml(*words.split(), environ=elsewhere)
    new = riseml(*(option if word == letter else word for word in words.split()), environ=elsewhere)
    assert old.err == f"warning: {letter} for {option} ends with the next release; write {option}\n{new.err}"
    assert (old.code, old.out) == (new.code, new.out)


def test_the_letters_of_riseml_1_go_on(riseml: Riseml, fake_server: FakeServer) -> None:
    fake_server.experiments["4"] = make_experiment()
    old, new = riseml("kill", "-f", asks=True), riseml("kill", "--force", asks=True)
    assert old == new
    assert (new.code, new.err) == (0, "")
