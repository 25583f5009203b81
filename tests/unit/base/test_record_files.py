"""Files of single experiments: a file is whole or not there, and what a killed server left is listed."""

from __future__ import annotations

from pathlib import Path

import pytest

from riseml.base.errors import StoreError
from riseml.base.record_files import RecordFiles


def test_the_file_of_an_experiment_is_replaced_in_a_private_folder(tmp_path: Path) -> None:
    files = RecordFiles(tmp_path / "notes")
    with pytest.raises(FileNotFoundError):
        files.read_text(12)
    for text in ("first", "second"):
        files.write_text(12, text)
        assert files.read_text(12) == text
    assert (tmp_path / "notes").stat().st_mode & 0o777 == 0o700
    assert [path.name for path in (tmp_path / "notes").iterdir()] == ["12.json"]
    assert (tmp_path / "notes" / "12.json").stat().st_mode & 0o777 == 0o600


def test_a_write_that_fails_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    def fail() -> None:
        assert files.read_text(12) == "first", "the new content has no name yet"
        raise OSError

    files = RecordFiles(tmp_path)
    files.write_text(12, "first")
    with pytest.raises(OSError):
        files.write_text(12, "second", before_named=fail)
    assert files.read_text(12) == "first"
    assert [record.name for record in files.list_records()] == ["12.json"]


def test_what_a_killed_server_left_is_listed_without_an_experiment(tmp_path: Path) -> None:
    files = RecordFiles(tmp_path)
    assert list(files.list_records()) == []
    files.write_text(7, "12345")
    (tmp_path / "7.0123abcd.new").write_text("12")
    (tmp_path / "README").write_text("of someone else")
    assert [(record.name, record.experiment, record.size) for record in files.list_records()] == [
        ("7.0123abcd.new", None, 2),
        ("7.json", 7, 5),
    ]


def test_a_listed_file_is_removed_and_one_that_is_gone_is_no_error(tmp_path: Path) -> None:
    files = RecordFiles(tmp_path)
    files.write_text(7, "")
    for _ in range(2):
        files.remove_record("7.json")
    assert list(files.list_records()) == []
    (tmp_path / "8.json").mkdir()
    with pytest.raises(StoreError, match=r"8\.json cannot be removed: Is a directory"):
        files.remove_record("8.json")
