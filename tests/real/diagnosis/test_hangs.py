"""Real trainings that hang: the server notices it, and names the cause, without being asked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.hangs import PLAIN_HANGS, TENSORFLOW_HANGS, TORCH_HANGS, Hang
from tests.support.rig import Rig


def find_diagnosis(rig: Rig, name: str, hang: Hang) -> dict[str, Any] | None:
    """Return the experiment when it has the right diagnosis, and its remark says so."""
    shown = rig.experiment(name)
    diagnosis = shown["diagnosis"]
    if diagnosis is None or not hang.fits(diagnosis):
        return None
    return shown if any(diagnosis["sentence"] in remark["text"] for remark in shown["remarks"]) else None


def check_hangs(rig: Rig, hangs: tuple[Hang, ...]) -> None:
    """Run all of them at the same time, and wait until the server has named each cause."""
    numbers = [
        (rig.submit(hang.make_config(contained=rig.engine is not None), {"train.py": hang.program})["id"], hang)
        for hang in hangs
    ]
    for number, hang in numbers:
        shown = rig.wait(f"{hang.name}: named", lambda: find_diagnosis(rig, number, hang))  # noqa: B023  # used at once
        assert shown["state"] == "RUNNING"
        assert shown["diagnosis"]["by_stall"]
        text = Path(shown["output"], "diagnosis.txt").read_text()
        assert text.startswith(shown["diagnosis"]["sentence"])
        rig.post(f"/v1/experiments/{number}/kill")
    for number, _ in numbers:
        assert rig.wait_closed(number)["diagnosis"] is not None


def test_each_cause_is_named(rig: Rig) -> None:
    check_hangs(rig, PLAIN_HANGS)


@pytest.mark.engine
def test_each_cause_of_a_gang_is_named(tmp_path: Path, engine_url: str) -> None:
    """Some of them, in containers alone: processes would install PyTorch first. `make diagnose` runs all of them."""
    with Rig(tmp_path / "home", engine_url) as rig:
        try:
            check_hangs(rig, TORCH_HANGS[:3] + TENSORFLOW_HANGS)
            assert rig.list_left() == []
        finally:
            rig.clean_up()
