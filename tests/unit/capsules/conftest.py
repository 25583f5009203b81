"""A capsule in a folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from riseml.planning.capsule import write_capsule
from tests.support.archives import find_digest
from tests.unit.capsules.capsule_code import ARCHIVE
from tests.unit.planning.test_capsule import capsule_of, make


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return the folder of a capsule with its code."""
    place = tmp_path / "output" / ".riseml"
    place.mkdir(parents=True)
    capsule = capsule_of(make())
    capsule["code"]["digest"] = find_digest(ARCHIVE)
    (place / "capsule.json").write_text(write_capsule(capsule))
    (place / "project.tar").write_bytes(ARCHIVE)
    return place
