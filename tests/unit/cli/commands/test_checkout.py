"""`checkout`: the code of a run in a folder, as it was when the run was submitted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from riseml.planning.capsule import write_capsule
from tests.support.archives import find_digest, pack
from tests.unit.cli.conftest import Riseml
from tests.unit.cli.fake_server import FakeServer
from tests.unit.planning.test_capsule import capsule_of, make

ARCHIVE = pack({"riseml.yml": "project: x\n", "below/train.py": "print(1)\n"})


@pytest.fixture
def capsule(folder: Path) -> Path:
    """The folder of a capsule with its code."""
    place = folder / "output" / ".riseml"
    place.mkdir(parents=True)
    capsule = capsule_of(make())
    capsule["code"]["digest"] = find_digest(ARCHIVE)
    (place / "capsule.json").write_text(write_capsule(capsule))
    (place / "project.tar").write_bytes(ARCHIVE)
    return place


def test_the_code_of_a_capsule_needs_no_server(
    riseml: Riseml, fake_server: FakeServer, folder: Path, capsule: Path
) -> None:
    done = riseml("checkout", "./output", "there")
    assert (done.code, done.out) == (0, "Wrote 2 files of ./output into there.\n"), done.err
    assert (folder / "there" / "below" / "train.py").read_text() == "print(1)\n"
    written = json.loads(riseml("checkout", "./output", "again", "--json").out)
    assert written == {"folder": "again", "digest": find_digest(ARCHIVE), "files": 2}
    assert fake_server.asked == []


def test_a_folder_with_files_is_left_alone(riseml: Riseml, folder: Path, capsule: Path) -> None:
    refused = riseml("checkout", "./output", ".")
    assert (refused.code, "is there already, and not empty" in refused.err) == (4, True)
    assert not (folder / "below").exists()


def test_code_that_nobody_has_is_an_error(riseml: Riseml, fake_server: FakeServer, folder: Path, capsule: Path) -> None:
    (capsule / "project.tar").unlink()
    refused = riseml("checkout", "./output", "there")
    assert (refused.code, (folder / "there").exists()) == (3, False)
    assert "are not in the capsule, and not on this server" in refused.err
