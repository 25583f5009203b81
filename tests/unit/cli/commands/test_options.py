"""Options that several commands take."""

from __future__ import annotations

from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from riseml.cli.commands.options import FileOption, IdArgument, JsonOption, ParameterOption, SettingOption

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
