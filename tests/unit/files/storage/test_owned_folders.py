"""Output folders: made by descriptor, for their owner alone. Exploits with a second user: tests/exploits."""

from __future__ import annotations

import os
import stat
from pathlib import Path, PurePosixPath

import pytest

from riseml.base.errors import EngineError
from riseml.files.storage.owned_folders import open_owned_folder, replace_file
from riseml.model import Owner
from tests.support.root import only_root

ME = Owner("paul", os.geteuid(), os.getegid())
OTHER = Owner("alice", 54_321, 54_322)
BELOW = PurePosixPath("paul/toaster/1")

# `make unit` needs no root; `make test` as root skips nothing here.


def prepare(root: Path, owner: Owner = ME) -> None:
    with open_owned_folder(root, BELOW, owner) as folder:
        replace_file(folder, "record", b"text", owner)


def refusal(root: Path, owner: Owner = ME) -> str:
    with pytest.raises(EngineError) as raised:
        prepare(root, owner)
    assert raised.value.permanent
    assert raised.value.hint is not None
    assert "RISEML_OUTPUT" in raised.value.hint
    return raised.value.message


def modes(root: Path) -> list[int]:
    return [stat.S_IMODE(path.stat().st_mode) for path in (root / BELOW, *(root / BELOW).parents[:2])]


def test_every_folder_that_is_made_is_for_its_owner_alone(tmp_path: Path) -> None:
    prepare(tmp_path / "new" / "root")
    assert modes(tmp_path / "new" / "root") == [0o700] * 3
    assert (tmp_path / "new" / "root" / BELOW / "record").read_text() == "text"


def test_folders_of_an_earlier_version_keep_their_mode_and_their_files(tmp_path: Path) -> None:
    (tmp_path / BELOW).mkdir(parents=True, mode=0o755)
    (tmp_path / BELOW / "checkpoint").write_text("step 100")
    (tmp_path / BELOW / "record").write_text("an older one")
    prepare(tmp_path)
    assert modes(tmp_path) == [0o755] * 3
    assert (tmp_path / BELOW / "checkpoint").read_text() == "step 100"
    assert (tmp_path / BELOW / "record").read_text() == "text"


def test_the_root_itself_may_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "root").symlink_to("disk")
    prepare(tmp_path / "root")
    assert (tmp_path / "disk" / BELOW / "record").exists()


@pytest.mark.parametrize("part", [0, 1, 2])
@pytest.mark.parametrize(("kind", "words"), [("link", "is a link, made by"), ("file", "is not a folder, made by")])
def test_a_link_or_a_file_below_the_root_is_refused(tmp_path: Path, part: int, kind: str, words: str) -> None:
    root, elsewhere = tmp_path / "root", tmp_path / "elsewhere"
    elsewhere.mkdir()
    at = root.joinpath(*BELOW.parts[: part + 1])
    at.parent.mkdir(parents=True)
    at.symlink_to(elsewhere) if kind == "link" else at.touch()
    assert f"{at} {words} " in refusal(root)
    assert list(elsewhere.iterdir()) == []


@pytest.mark.parametrize("part", [0, 1, 2])
def test_a_folder_in_which_every_user_may_replace_the_next_one_is_refused(tmp_path: Path, part: int) -> None:
    at = tmp_path.joinpath(*BELOW.parts[:part])
    at.mkdir(parents=True, exist_ok=True)
    at.chmod(0o777)
    assert f"every user may replace what is in {at} (mode 0777" in refusal(tmp_path)
    at.chmod(0o1777)
    prepare(tmp_path)


def test_a_link_that_a_job_left_in_place_of_the_record_is_replaced(tmp_path: Path) -> None:
    prepare(tmp_path)
    victim = tmp_path / "victim"
    victim.write_text("untouched")
    for name in ("record", ".record.new"):
        (tmp_path / BELOW / name).unlink(missing_ok=True)
        (tmp_path / BELOW / name).symlink_to(victim)
    prepare(tmp_path)
    assert victim.read_text() == "untouched"
    assert (tmp_path / BELOW / "record").read_text() == "text"
    assert not (tmp_path / BELOW / "record").is_symlink()


@only_root
def test_root_makes_folders_and_files_for_another_user(tmp_path: Path) -> None:
    prepare(tmp_path, OTHER)
    for path in (tmp_path / BELOW, *(tmp_path / BELOW).parents[:2], tmp_path / BELOW / "record"):
        assert (path.stat().st_uid, path.stat().st_gid) == (OTHER.uid, OTHER.gid)


@only_root
@pytest.mark.parametrize("part", [0, 1, 2])
def test_a_part_of_another_user_is_refused(tmp_path: Path, part: int) -> None:
    (tmp_path / BELOW).mkdir(parents=True)
    at = tmp_path.joinpath(*BELOW.parts[: part + 1])
    os.chown(at, 77_777, -1)
    assert refusal(tmp_path, OTHER) == f"OUTPUT_DIR is not safe: {at} belongs to uid 77777"


@only_root
def test_nothing_but_an_empty_private_folder_of_root_is_given_away(tmp_path: Path) -> None:
    top = tmp_path / BELOW.parts[0]
    top.mkdir(mode=0o700)  # as a server that was killed between two calls leaves it
    prepare(tmp_path, OTHER)
    assert top.stat().st_uid == OTHER.uid
    os.chown(top, 0, 0)  # not empty any more
    prepare(tmp_path, OTHER)
    assert top.stat().st_uid == 0
