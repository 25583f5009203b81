"""The start of a supervisor, which answers once the main process runs."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from riseml.base.errors import EngineError
from riseml.executors.supervision import supervisor
from riseml.executors.supervision.job_records import load_record
from riseml.executors.supervision.start import start_supervisor
from tests.support.waiting import DEADLINE


def make_order(folder: Path, command: tuple[str, ...]) -> dict[str, object]:
    return {
        "folder": str(folder),
        "workdir": str(folder),
        "command": command,
        "environment": {"PATH": os.defpath},
        "identity": {"server": "s", "title": "ann.4.train", "marker": f"m{folder}", "gpus": ()},
    }


def test_a_job_runs_when_the_start_returns_and_a_second_start_changes_nothing(tmp_path: Path) -> None:
    order = make_order(tmp_path, ("/bin/sh", "-c", "until [ -e go ]; do sleep 0.01; done; exit 3"))
    start_supervisor("ann.4.train", order, f"m{tmp_path}")
    first = load_record(tmp_path)
    assert first is not None
    assert first.started_at is not None
    start_supervisor("ann.4.train", order, f"m{tmp_path}")
    second = load_record(tmp_path)
    assert second is not None
    assert (second.pid, second.main) == (first.pid, first.main)
    (tmp_path / "go").touch()
    subprocess.run(["flock", tmp_path / "lock", "true"], check=True, timeout=DEADLINE)
    ended = load_record(tmp_path)
    assert ended is not None
    assert ended.exit_code == 3


@pytest.mark.parametrize(
    ("program", "message"),
    [
        ("cat >&-; exit 1", "the supervisor of ann.4.train ended without an answer"),
        ("cat >/dev/null; printf 'failed: no space'", "the supervisor of ann.4.train failed: no space"),
    ],
)
def test_a_supervisor_that_cannot_start_its_job_says_why(
    program: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "make_command", lambda _: ["/bin/sh", "-c", program])
    with pytest.raises(EngineError) as raised:
        start_supervisor("ann.4.train", make_order(tmp_path, ("true",)), f"m{tmp_path}")
    assert raised.value.message == message


def test_a_program_that_is_not_there_is_an_error_of_the_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor, "make_command", lambda _: [str(tmp_path / "none")])
    with pytest.raises(EngineError, match=r"supervisor of ann\.4\.train did not start"):
        start_supervisor("ann.4.train", make_order(tmp_path, ("true",)), f"m{tmp_path}")
