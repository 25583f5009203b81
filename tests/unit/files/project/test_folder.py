"""The project folder and its riseml.yml."""

from __future__ import annotations

from pathlib import Path

import pytest

from riseml.base.errors import NotFound, UsageError
from riseml.files.project.folder import find_project, find_project_name, read_config
from tests.unit.files.project.builders import fill_folder


def test_a_project_is_found_by_its_file_or_its_folder(tmp_path: Path) -> None:
    fill_folder(tmp_path, "riseml.yml", "sub/other.yml", "sub/riseml.yml")
    assert find_project(tmp_path).file == tmp_path / "riseml.yml"
    assert find_project(tmp_path, Path("sub/other.yml")).folder == tmp_path / "sub"
    assert find_project(tmp_path, Path("sub")).file == tmp_path / "sub" / "riseml.yml"


def test_a_file_in_a_folder_below_belongs_to_the_project_above(tmp_path: Path) -> None:
    fill_folder(tmp_path, "riseml.yml", "conf/deep/a.yml", "own/riseml.yml", "own/conf/b.yml")
    assert find_project(tmp_path, Path("conf/deep/a.yml")).folder == tmp_path
    assert find_project(tmp_path, Path("own/conf/b.yml")).folder == tmp_path / "own"
    assert find_project(tmp_path / "conf", Path("deep/a.yml")).folder == tmp_path / "conf" / "deep", (
        "no riseml.yml there"
    )
    assert find_project(tmp_path / "own", Path("../conf/deep/a.yml")).folder.resolve() == tmp_path / "conf" / "deep"
    assert find_project(tmp_path / "own", tmp_path / "conf" / "deep" / "a.yml").folder == tmp_path / "conf" / "deep"


def test_a_missing_project_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    with pytest.raises(NotFound) as raised:
        find_project(tmp_path / "a" / "b")
    assert "riseml init" in (raised.value.hint or "")
    fill_folder(tmp_path, "riseml.yml")
    with pytest.raises(NotFound) as raised:
        find_project(tmp_path / "a" / "b")
    assert "`cd ../..`" in (raised.value.hint or "")
    with pytest.raises(NotFound, match=r"no file gone\.yml"):
        find_project(tmp_path, Path("gone.yml"))


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("project: a-b_c.d\n", "a-b_c.d"),
        ("# x\n\nproject:   'toast'  # mine\r\ntrain:\n", "toast"),
        ('train:\n  run: |\n    project: no\nproject: "yes"\n', "yes"),
    ],
)
def test_the_project_name_is_found_without_parsing_yaml(text: str, name: str) -> None:
    assert find_project_name(text) == name


@pytest.mark.parametrize("text", ["", "train: {}\n", "project: a\nproject: b\n", "project: [a]\n", "{project: a}\n"])
def test_a_project_name_written_in_another_way_needs_yaml(text: str) -> None:
    assert find_project_name(text) is None


def test_a_file_that_is_not_utf8_is_named_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "riseml.yml").write_bytes(b"project: a\n# \xff\n")
    with pytest.raises(UsageError, match=r"riseml\.yml:2: this is not UTF-8"):
        read_config(find_project(tmp_path))
