"""The help of every command: nothing is cut, nothing is a type of the parser, and the examples are command lines."""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pexpect
import pyte
import pytest
from typer.main import get_command

from riseml.cli.command_table import Section, list_names, list_sections
from riseml.cli.help_text import describe_range
from riseml.cli.main import make_app
from tests.unit.cli.conftest import Riseml


def _walk(command: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    yield path, command
    for name, below in getattr(command, "commands", {}).items():
        yield from _walk(below, f"{path} {name}".strip())


COMMANDS = dict(_walk(get_command(make_app([]))))
PATHS = list(COMMANDS)
EXAMPLES = [
    line for command in COMMANDS.values() for line in (command.epilog or "").split("\n") if line[:7] == "riseml "
]


def _read_help(riseml: Riseml, capsys: pytest.CaptureFixture[str], path: str) -> str:
    assert riseml(*path.split(), "--help").code == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("columns", [80, 200])
def test_no_help_is_cut(
    riseml: Riseml, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, path: str, columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    shown = _read_help(riseml, capsys, path)
    assert max(len(line) for line in shown.split("\n")) <= columns
    words = " ".join(shown.split())
    command = COMMANDS[path]
    parameters = [parameter.help for parameter in command.params if not parameter.hidden]
    texts = [command.help, *parameters, *(command.epilog or "").split("\n")]
    below = [child.help.split("\n\n")[0] for child in getattr(command, "commands", {}).values() if path]
    for text in (*texts, *below):
        assert " ".join(text.split()) in words
    assert not re.search(r"<\w+( range)?>|\[\d|\[default|\[required", shown), "a type of the parser"
    assert not re.search(r"\w-$", shown, re.MULTILINE), "an option that is divided at a hyphen"


@pytest.mark.parametrize("columns", ["80", "200"])
def test_the_list_of_commands_has_each_of_them_once_in_a_section(
    riseml: Riseml, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, columns: str
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    shown = _read_help(riseml, capsys, "")
    assert re.findall(r"^([A-Z][a-z ]+):$", shown, re.MULTILINE) == [*(each.value for each in Section), "Options"]
    listed = re.findall(r"^  ([a-z]\S*) ", shown.partition("Options:")[0], re.MULTILINE)
    assert sorted(listed) == sorted(list_names())
    words = " ".join(shown.split())
    assert all(f"{name} {summary}" in words for _, rows in list_sections() for name, summary in rows)
    assert sorted(listed) == sorted(COMMANDS[""].commands)


@pytest.mark.parametrize("path", PATHS[1:])
def test_each_help_ends_with_examples_of_its_command(path: str) -> None:
    lines = COMMANDS[path].epilog.split("\n")
    assert lines
    for line in lines:
        assert line == f"riseml {path}" or line.startswith(f"riseml {path} ")
        assert len(line) <= 76


@pytest.mark.parametrize("line", EXAMPLES)
def test_the_parser_accepts_each_example(line: str) -> None:
    words = shlex.split(line)[1:]
    command: Any = COMMANDS[""]
    context = None
    while hasattr(command, "commands") and words and words[0] in command.commands:
        command, name, words = command.commands[words[0]], words[0], words[1:]
        context = command.make_context(name, list(words), parent=context)
    assert context is not None


@pytest.mark.parametrize("path", PATHS)
def test_each_argument_and_option_is_described_in_words(path: str) -> None:
    for parameter in COMMANDS[path].params:
        if not parameter.hidden:
            assert parameter.help, parameter.name
            assert parameter.help.endswith("."), parameter.help


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [
        (0, 65535, "0 to 65535"),
        (None, 5, "at most 5"),
        (0.1, 3600, "0.1 to 3600"),
        (1, None, "at least 1"),
        (0, None, ""),
        (None, None, ""),
    ],
)
def test_a_range_is_words(low: float | None, high: float | None, said: str) -> None:
    assert describe_range(low, high) == said


@pytest.mark.parametrize("variables", [{}, {"NO_COLOR": "1"}], ids=["colour", "no colour"])
@pytest.mark.parametrize("columns", [80, 200])
@pytest.mark.parametrize("words", ["--help", "train -h", "help pool add"])
def test_the_help_on_a_terminal(words: str, columns: int, variables: dict[str, str], tmp_path: Path) -> None:
    colour = not variables
    environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "TERM": "xterm-256color", **variables}
    command = [sys.executable, "-m", "riseml.cli", *words.split()]
    child = pexpect.spawn(command[0], command[1:], env=environ, dimensions=(100, columns), timeout=60)
    received: bytes = child.read()  # type: ignore[assignment]  # spawn without an encoding reads bytes
    child.close()
    assert child.exitstatus == 0
    assert (b"\x1b[" in received) == colour
    screen = pyte.Screen(columns, 100)
    pyte.ByteStream(screen).feed(received)
    lines = [line.rstrip() for line in screen.display]
    headings = [row for row, line in enumerate(lines) if re.fullmatch(r"[A-Z][a-z ]+:", line)]
    assert len(headings) >= 2
    for row in headings:
        assert all(screen.buffer[row][column].bold == colour for column in range(len(lines[row])))
    assert max(map(len, lines)) <= min(columns - 2, 98), "longer lines are hard to read"
    assert max(map(len, lines)) > 80 or columns == 80
