"""A newcomer installs riseml into an empty environment, and has three curves of three projects some minutes later."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from uv import find_uv_bin

from tests.real.e2e.console import Console
from tests.support.waiting import DEADLINE

IMAGE = "riseml-test/base:py311"
SCRIPT = Path(__file__).with_name("first_minutes.sh")
ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("executor", ["process", "docker"])
def test_a_newcomer_has_three_curves(make_console: Callable[..., Console], tmp_path: Path, executor: str) -> None:
    console = make_console(RISEML_EXECUTOR=executor, RISEML_BUILD_NETWORK="host")
    folder = tmp_path / "newcomer"
    folder.mkdir()
    result = subprocess.run(
        [SCRIPT, ROOT, folder, find_uv_bin(), IMAGE],
        env=console.environ(),
        capture_output=True,
        text=True,
        check=False,
        timeout=20 * DEADLINE,
    )
    assert result.returncode == 0, (result.stdout, result.stderr)
    assert result.stdout.startswith("ai-toaster "), "the package has the examples"
    assert re.findall(r"^Wrote riseml\.yml for project (\w+)", result.stdout, re.MULTILINE) == [
        "descent",
        "walk",
        "keras",
    ]
    assert len(re.findall(r"^Experiment \d FINISHED", result.stdout, re.MULTILINE)) == 3
    for metric in ("train_loss", "mean_reward", "loss"):
        assert re.search(rf"^{metric}\n +┌─", result.stdout, re.MULTILINE), f"a curve of {metric}"
    assert "run         python main.py --lr {{lr}} --epochs {{epochs}} --save-dir" in result.stdout
    assert console.run("ls", "output://2").out.split() == ["riseml-configuration.yml", "walk.txt"]
