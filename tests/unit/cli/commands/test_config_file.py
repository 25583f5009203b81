"""`init` and `validate`, which need no server."""

from __future__ import annotations

import json
import resource
from pathlib import Path

import pytest

from riseml.frameworks import registry
from riseml.frameworks.plain import Plain
from tests.unit.cli.conftest import Riseml
from tests.unit.cli.fake_server import FakeServer


def test_init_writes_a_file_that_is_valid(riseml: Riseml, tmp_path: Path) -> None:
    place = tmp_path / "My toaster!"
    place.mkdir()
    result = riseml("init", where=place)
    assert (result.code, result.err) == (0, "")
    said = (
        "Wrote riseml.yml for project My-toaster. `riseml train` runs it as it is; then put your program into `run`.\n"
    )
    assert result.out == said
    valid = riseml("validate", where=place)
    assert (valid.code, valid.err) == (0, "")


def test_init_takes_the_name_of_the_project_and_of_the_file(riseml: Riseml, tmp_path: Path) -> None:
    result = riseml("init", "-n", "lj_riseml", "--config-file", "other.yml", "--json", where=tmp_path)
    assert json.loads(result.out) == {"file": "other.yml", "old": None, "project": "lj_riseml"}
    assert "project: lj_riseml\n" in (tmp_path / "other.yml").read_text()
    assert riseml("validate", "--config-file", "other.yml", where=tmp_path).code == 0


def test_init_leaves_no_part_of_a_file_on_a_full_disk(riseml: Riseml, tmp_path: Path) -> None:
    place = tmp_path / "toaster"
    place.mkdir()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, limits[1]))
    try:
        result = riseml("init", where=place)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert (result.code, result.out) == (4, "")
    assert result.err.startswith("error: cannot write riseml.yml: ")
    assert list(place.iterdir()) == []


def test_validate_says_that_train_would_refuse_a_framework(
    riseml: Riseml, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "FRAMEWORKS", (Plain(),))
    train = "framework: tensorflow, tensorflow: {horovod: {workers: 2}}, image: x, run: y"
    (tmp_path / "riseml.yml").write_text(f"project: p\ntrain: {{{train}}}\n")
    result = riseml("validate", where=tmp_path)
    assert result.code == 0
    assert "cannot run the framework 'horovod'" in result.err


def test_validate_shows_every_problem_with_its_line(riseml: Riseml, folder: Path) -> None:
    (folder / "riseml.yml").write_text("project: a\ntrain:\n  image: x\n  rum: python x.py\n  concurrency: many\n")
    result = riseml("validate")
    assert (result.code, result.out) == (2, "")
    assert "    4 |   rum: python x.py\n      |   ^\n" in result.err
    assert "riseml.yml:5:" in result.err
    shapes = riseml("validate", "--json")
    assert shapes.code == 2
    assert {"file", "line", "column", "path", "problem", "hint", "severity"} == set(json.loads(shapes.out)[0])


def test_validate_needs_no_server(riseml: Riseml, fake_server: FakeServer) -> None:
    riseml("validate")
    assert fake_server.asked == []
