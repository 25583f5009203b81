"""The list of all commands is that of the commands themselves."""

from __future__ import annotations

import inspect

import pytest

from riseml.cli import command_table
from riseml.cli.command_table import CommandPlace

PLACES = (*command_table._COMMANDS, *command_table._GROUPS)


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.name)
def test_a_summary_is_what_the_command_says_of_itself(place: CommandPlace) -> None:
    found = command_table._load_module(place)
    own = str(found.info.help if place in command_table._GROUPS else inspect.getdoc(found))
    assert " ".join(own.split("\n\n")[0].split()) == place.summary
