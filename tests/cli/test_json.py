"""docs/json.md against the shapes themselves: nothing may be missing there, nothing may be wrong."""

from __future__ import annotations

import re
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import pytest
from typing_extensions import is_typeddict

from riseml import wire
from tests.cli.conftest import Riseml

PAGE = (Path(__file__).parents[2] / "docs" / "json.md").read_text()
NOT_PRINTED = {"Submission", "Failure", "FailureBody", "LinesEntry"}
SHAPES = {name: shape for name, shape in vars(wire).items() if is_typeddict(shape) and name not in NOT_PRINTED}
SIMPLE = {str: "string", int: "integer", float: "number", bool: "boolean", NoneType: "null"}


def _read_page() -> dict[str, dict[str, str]]:
    """The keys of each shape with their types, as the page says."""
    sections = re.split(r"^##+ (.*)$", PAGE, flags=re.MULTILINE)[1:]
    rows = re.compile(r"^\| `(\w+)` \| (.*?) \| .*\|$", re.MULTILINE)
    return {title: dict(rows.findall(text)) for title, text in zip(sections[::2], sections[1::2], strict=True)}


def _say(hint: Any) -> str:
    """A type as the page writes it."""
    if hint == wire.StateName:
        return "state"
    if get_origin(hint) is Literal:
        return " or ".join(", ".join(f"`{value}`" for value in get_args(hint)).rsplit(", ", 1))
    if get_origin(hint) in (Union, UnionType):
        return " or ".join(_say(part) for part in get_args(hint))
    if get_origin(hint) is list:
        return f"list of {_say(get_args(hint)[0])}"
    if get_origin(hint) is dict:
        value = get_args(hint)[1]
        return "object" if value is Any else f"object of {_say(value)}"
    return SIMPLE.get(hint) or str(hint.__name__)


@pytest.mark.parametrize("name", SHAPES)
def test_the_page_says_what_is_printed(name: str) -> None:
    hints = get_type_hints(SHAPES[name])
    assert _read_page().get(name) == {key: _say(hint) for key, hint in hints.items()}


def test_the_page_invents_no_shape() -> None:
    assert {title for title, rows in _read_page().items() if rows} == set(SHAPES)


def test_states_are_named_on_the_page() -> None:
    assert all(f"`{state}`" in PAGE for state in get_args(wire.StateName))


def test_every_command_with_the_option_is_on_the_page(riseml: Riseml, capsys: pytest.CaptureFixture[str]) -> None:
    riseml("-h")
    verbs = re.findall(r"^  (\w+)  ", capsys.readouterr().out, re.MULTILINE)
    for verb in [*verbs, "system info", "system clean", "server status"]:
        riseml(*verb.split(), "-h")
        has_option = "--json" in capsys.readouterr().out
        assert (re.search(rf"^\| `riseml {verb} .*--json` \|", PAGE, re.MULTILINE) is not None) == has_option or (
            verb in ("system", "server")
        )
