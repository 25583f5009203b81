"""The log of an environment that a node makes, as the server reads it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from riseml.base.errors import EngineError
from riseml.executors.environments import build_log
from riseml.executors.slurm import node_environments
from riseml.executors.slurm.job_queue import QueueAnswer
from riseml.model import Image
from tests.support.builds import make_environment_request


def follow(place: Path, log: bytes) -> list[str]:
    """Return the lines of a build that has failed."""
    (place / "log").write_bytes(log)
    (place / "end.json").write_text(json.dumps({"error": "install step 1 failed"}))
    lines: list[str] = []
    order = make_environment_request(place.with_suffix(""), Image("python:3.11", ("make",)), lines)
    follower = node_environments._BuildFollower(order, "riseml-build-x", "7")
    with pytest.raises(EngineError, match="install step 1 failed"):
        follower.follow(lambda: QueueAnswer((), (), 0.0))
    return lines


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Return the folder of a build."""
    folder = tmp_path / "environment.build"
    folder.mkdir()
    return folder


def test_the_last_line_of_a_build_needs_no_end(place: Path) -> None:
    assert follow(place, b"--> make\nmake: no such target") == ["--> make", "make: no such target"]


def test_a_line_without_an_end_is_not_kept_whole(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_environments, "_READ_SIZE", 10)
    monkeypatch.setattr(build_log, "_LONGEST_LINE", 20)
    assert follow(place, b"one\ntwo\n" + b"x" * 1000) == ["one", "two", "x" * 20]
