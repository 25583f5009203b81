"""An open folder whose files a test lists, reads, writes or removes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def root(tmp_path: Path) -> Iterator[int]:
    folder = tmp_path / "root"
    folder.mkdir()
    opened = os.open(folder, os.O_RDONLY)
    yield opened
    os.close(opened)


@pytest.fixture
def folder(root: int, tmp_path: Path) -> Path:
    return tmp_path / "root"
