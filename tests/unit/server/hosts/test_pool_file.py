"""pool.yml on disk: each version is read once, and one with problems counts as read."""

from __future__ import annotations

from pathlib import Path

import pytest

from riseml.base.errors import RisemlError, UsageError
from riseml.server.hosts.pool_file import PoolFile

POOL = "hosts:\n  - {name: gpu1, url: 'unix:///var/run/docker.sock'}\n"


def test_without_a_file_there_is_nothing_to_read(tmp_path: Path) -> None:
    file = PoolFile(tmp_path / "pool.yml")
    assert (file.exists(), file.load(), file.has_changed()) == (False, None, False)


def test_a_file_that_appears_changes_or_disappears_has_changed(tmp_path: Path) -> None:
    path = tmp_path / "pool.yml"
    file = PoolFile(path)
    path.write_text(POOL)
    assert file.has_changed()
    spec = file.load()
    assert spec is not None
    assert [host.name for host in spec.hosts] == ["gpu1"]
    assert not file.has_changed()
    path.write_text(POOL + "# a comment\n")
    assert file.has_changed()
    file.mark_read()
    assert not file.has_changed()
    path.unlink()
    assert file.has_changed()
    assert file.load() is None


def test_a_version_with_problems_is_read_once(tmp_path: Path) -> None:
    path = tmp_path / "pool.yml"
    path.write_text("hosts: 4\n")
    file = PoolFile(path)
    with pytest.raises(RisemlError):
        file.load()
    assert not file.has_changed()


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "pool.yml").mkdir()
    with pytest.raises(UsageError, match=r"pool\.yml cannot be read: Is a directory"):
        PoolFile(tmp_path / "pool.yml").load()
