"""The revision of `riseml.wire` changes with every shape and address."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from riseml.base import wire_revision


@pytest.mark.parametrize("changed", ["wire/experiments.py", "client/server_client.py"])
def test_the_revision_is_that_of_every_shape_and_address(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changed: str
) -> None:
    before = wire_revision.read_revision()
    for name in ("wire", "client"):
        shutil.copytree(Path(wire_revision.find_package()) / name, tmp_path / name)
    monkeypatch.setattr(wire_revision, "__file__", str(tmp_path / "base" / "wire_revision.py"))
    assert wire_revision.read_revision() == before
    with (tmp_path / changed).open("a") as module:
        module.write("\n\nclass New(TypedDict):\n    field: str\n")
    assert wire_revision.read_revision() != before
