"""What users type: the experiment that a command without an ID means."""

from __future__ import annotations

from pathlib import Path

from tests.unit.cli.conftest import Riseml
from tests.unit.cli.fake_server import FakeServer, finish


def test_logs_without_an_id_are_those_of_the_last_experiment_of_the_project(
    riseml: Riseml, fake_server: FakeServer
) -> None:
    finish(fake_server)
    result = riseml("logs", "--tail", "5", "--since", "10m")
    assert result.code == 0
    assert "hello" in result.out
    assert "GET /experiments?all=true&project=ai-toaster&limit=1&companions=false" in fake_server.asked
    asked = next(question for question in fake_server.asked if "/logs" in question)
    assert "tail=5" in asked
    assert "since=20" in asked


def test_the_project_name_may_be_written_in_any_yaml(riseml: Riseml, fake_server: FakeServer, folder: Path) -> None:
    finish(fake_server)
    (folder / "riseml.yml").write_text('{"project": "toaster", "train": {"image": "x", "run": "true"}}')
    assert riseml("logs").code == 0
    assert "GET /experiments?all=true&project=toaster&limit=1&companions=false" in fake_server.asked
    (folder / "riseml.yml").write_text("train: {}\n")
    result = riseml("logs")
    assert result.code == 2
    assert "does not say `project: NAME`" in result.err
    assert "riseml validate" in result.err


def test_a_project_without_experiments_is_an_error(riseml: Riseml) -> None:
    result = riseml("logs")
    assert result.code == 3
    assert "project ai-toaster has no experiment yet" in result.err
