"""Who controls a folder: the check of RISEML_HOME, and of the way to it."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from riseml.base.errors import Refused
from riseml.base.folders import check_home, find_intruder, open_folder
from riseml.base.settings import read_settings
from riseml.client.exchange import read_address
from tests.support.root import only_root

OWN = frozenset({0, os.geteuid()})
NEIGHBOUR = 54_321  # a uid

# `make unit` needs no root; `make test` as root skips nothing here.


def test_a_private_home_a_readable_one_and_one_that_does_not_exist_yet_are_fine(tmp_path: Path) -> None:
    home = tmp_path / "home"
    check_home(home)
    for mode in (0o700, 0o755):
        home.mkdir(exist_ok=True)
        home.chmod(mode)
        check_home(home)


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o1777])
def test_a_home_in_which_others_may_write_is_refused(tmp_path: Path, mode: int) -> None:
    tmp_path.chmod(mode)
    with pytest.raises(Refused, match=f"other users may write .* \\(mode {mode:04o}\\)") as raised:
        check_home(tmp_path)
    assert raised.value.hint is not None
    assert f"chmod go-w {tmp_path}" in raised.value.hint


def test_a_link_to_an_own_home_is_followed_and_what_it_leads_to_is_looked_at(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "home").symlink_to("real")
    check_home(tmp_path / "home")
    (tmp_path / "real").chmod(0o777)
    with pytest.raises(Refused, match="other users may write"):
        check_home(tmp_path / "home")


def test_a_home_that_cannot_be_looked_at_is_refused(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(Refused, match="cannot be used: Too many levels of symbolic links"):
        check_home(tmp_path / "loop")


def test_a_file_in_place_of_the_socket_is_refused(tmp_path: Path) -> None:
    settings = read_settings({"RISEML_HOME": str(tmp_path)})
    settings.socket.write_text("")
    with pytest.raises(Refused, match="not your server's socket"):
        read_address(settings, {})
    settings.socket.unlink()
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(str(settings.socket))
        assert read_address(settings, {}).socket == settings.socket


@only_root
def test_what_is_in_a_public_folder_must_be_of_an_own_user(tmp_path: Path) -> None:
    public = tmp_path / "public"
    (public / "first").mkdir(parents=True)
    below = public / "first" / "missing" / "home"
    assert find_intruder(below, OWN) is None
    public.chmod(0o1777)
    assert find_intruder(below, OWN) is None
    os.chown(public / "first", NEIGHBOUR, -1)
    assert find_intruder(below, OWN) == f"{public / 'first'} belongs to uid {NEIGHBOUR}"
    public.chmod(0o755)
    assert find_intruder(below, OWN) is None


def test_in_a_public_folder_without_the_sticky_bit_every_user_can_replace_files(tmp_path: Path) -> None:
    public = tmp_path / "public"
    public.mkdir()
    public.chmod(0o777)
    for path in (public / "missing", public):
        assert (find_intruder(path / "home", OWN) or "").startswith(f"every user may replace what is in {public} ")


@only_root
def test_the_way_through_a_link_is_walked_too(tmp_path: Path) -> None:
    public = tmp_path / "public"
    (public / "first").mkdir(parents=True)
    public.chmod(0o1777)
    (tmp_path / "near").mkdir()
    (tmp_path / "near" / "link").symlink_to("../public/first")
    (tmp_path / "far").symlink_to(public / "first")
    ways = (tmp_path / "near" / "link", tmp_path / "far", tmp_path / "far" / ".." / "first")
    assert {find_intruder(way, OWN) for way in ways} == {None}
    os.chown(public / "first", NEIGHBOUR, -1)
    assert {find_intruder(way, OWN) for way in ways} == {f"{public / 'first'} belongs to uid {NEIGHBOUR}"}


def test_a_folder_is_opened_by_descriptor_and_created_if_it_is_missing(tmp_path: Path) -> None:
    above = os.open(tmp_path, os.O_RDONLY)
    try:
        for _ in ("missing", "there"):
            os.close(open_folder(above, "new", 0o700))
        assert (tmp_path / "new").stat().st_mode & 0o777 == 0o700
        (tmp_path / "link").symlink_to("new")
        (tmp_path / "file").touch()
        for name in ("link", "file"):
            with pytest.raises(OSError, match=r"Not a directory|Too many levels"):
                open_folder(above, name, 0o700)
    finally:
        os.close(above)
