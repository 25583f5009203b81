"""server.yml on disk."""

from __future__ import annotations

from pathlib import Path

import pytest

from riseml.base.errors import UsageError
from riseml.server.server_file import read_server_config
from riseml.spec.yaml.problems import SpecError


def test_a_home_without_the_file_has_no_team(tmp_path: Path) -> None:
    assert read_server_config(tmp_path / "server.yml") is None


def test_a_file_becomes_its_values(tmp_path: Path) -> None:
    path = tmp_path / "server.yml"
    path.write_text("listen: 127.0.0.1:8443\n")
    config = read_server_config(path)
    assert config is not None and str(config.listen) == "127.0.0.1:8443"


def test_a_file_with_a_problem_and_a_folder_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "server.yml"
    path.write_text("listen: here\n")
    with pytest.raises(SpecError, match=r"server.yml:1:9 listen: "):
        read_server_config(path)
    (tmp_path / "folder").mkdir()
    with pytest.raises(UsageError, match="cannot be read: Is a directory"):
        read_server_config(tmp_path / "folder")
