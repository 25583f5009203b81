"""What `train` keeps of a riseml.yml that had no problems."""

from __future__ import annotations

from pathlib import Path

import pytest

from riseml.spec.config.loader import Overrides
from riseml.submission import submitting
from riseml.submission.config_source import ConfigSource, check_config_source
from tests.unit.cli.conftest import Riseml
from tests.unit.cli.fake_server import FakeServer


def test_a_file_without_problems_is_checked_once(
    riseml: Riseml, fake_server: FakeServer, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The check is repeated for another text, for other values of the command line, and where it had a warning."""
    checks: list[str] = []

    def check(source: ConfigSource, overrides: Overrides) -> object:
        checks.append(source.text)
        return check_config_source(source, overrides)

    monkeypatch.setattr(submitting, "check_config_source", check)
    clean = f"# {folder}\n" + (folder / "riseml.yml").read_text()  # no other test has this text
    (folder / "riseml.yml").write_text(clean)
    for _ in range(2):
        assert riseml("train", "-d").code == 0
    assert checks == [clean]
    assert riseml("train", "-d", "--set", "train.resources.gpus=2").code == 0
    assert len(checks) == 2
    (folder / "riseml.yml").write_text(clean + "  parameters: {lr: 0.1}\n")
    shown = [riseml("train", "-d").err for _ in range(2)]
    assert "warning: train.parameters.lr" in shown[0]
    assert shown[0] == shown[1]
    assert len(checks) == 4
    (folder / "riseml.yml").write_text(clean)
    for kept in (fake_server.home / "cache" / "checked").iterdir():
        kept.write_bytes(kept.read_bytes()[:-1])
    assert riseml("train", "-d").code == 0
    assert len(checks) == 5, "what is damaged is not used"
