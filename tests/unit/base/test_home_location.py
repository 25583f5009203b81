"""Where a home is: the same folder under other names, and texts of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from riseml.base.home_location import HomeLocation, find_location, is_other_folder, read_text


def test_a_link_to_a_home_is_the_home(tmp_path: Path) -> None:
    home, link = tmp_path / "home", tmp_path / "link"
    home.mkdir()
    link.symlink_to(home)
    assert find_location(link) == find_location(home)


def test_a_renamed_home_is_the_same_home(tmp_path: Path) -> None:
    home, renamed = tmp_path / "home", tmp_path / "renamed"
    home.mkdir()
    before = find_location(home)
    home.rename(renamed)
    assert find_location(renamed).is_same_home(before)
    home.mkdir()
    assert not find_location(renamed).is_same_home(before), "something is at its former path"


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"path": "/x", "inode": "many", "device": 1}'])
def test_a_text_that_is_no_location_is_none(text: str) -> None:
    assert read_text(text) is None
    location = HomeLocation("/gone/home", 7, 40, "machine", ("52:54:00:00:00:01",), "node1")
    assert read_text(location.write_text()) == location


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        ({"machine": "a"}, {"machine": "a"}, True),
        ({"machine": "a"}, {"machine": "b"}, False),
        ({"machine": "a"}, {}, True),
        ({"cards": ("x", "y")}, {"cards": ("y", "z")}, True),
        ({"cards": ("x",)}, {"cards": ("z",)}, False),
        ({"cards": ("x",)}, {}, True),
        ({"machine": "a", "cards": ("x",)}, {"machine": "a", "cards": ("z",)}, False),
    ],
)
def test_what_is_not_known_tells_no_machines_apart(
    first: dict[str, Any], second: dict[str, Any], *, same: bool
) -> None:
    here, there = HomeLocation("/home", 7, 40, **first), HomeLocation("/home", 7, 40, **second)
    assert here.is_on_machine_of(there) == there.is_on_machine_of(here) == same


def test_a_path_without_anything_holds_no_other_folder(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    location = find_location(home)
    assert not is_other_folder(str(home), location)
    assert not is_other_folder(str(tmp_path / "gone"), location)
    assert is_other_folder(str(tmp_path), location)
    (tmp_path / "loop").symlink_to("loop")
    assert is_other_folder(str(tmp_path / "loop"), location), "what cannot be looked at may be another one"
