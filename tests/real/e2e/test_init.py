"""What `riseml init` writes runs at once, and a file in a folder below runs in the project above."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.real.e2e.console import Console
from tests.support.rig import single


@pytest.mark.parametrize(
    ("framework", "executor", "made"), [("", "process", "result.txt"), ("tensorflow", "docker", "model.keras")]
)
def test_what_init_writes_runs_at_once(
    make_console: Callable[..., Console], framework: str, executor: str, made: str
) -> None:
    console = make_console(RISEML_EXECUTOR=executor)
    assert console.run("init", *(["--framework", framework] if framework else [])).code == 0
    result = console.run("train")
    assert result.code == 0, result
    output = result.out.rpartition("Output: ")[2].strip()
    assert Path(output, made).stat().st_size > 0
    assert "loss" in "\n".join(result.lines("train"))


def test_a_file_in_a_folder_below_runs_in_the_project_above(console: Console, project: Callable[..., Path]) -> None:
    folder = project(single("false"), **{"train.txt": "mine"})
    (folder / "conf").mkdir()
    (folder / "conf" / "a.yml").write_text(single("cat train.txt; ls conf"))
    result = console.run("train", "-f", "conf/a.yml")
    assert (result.code, result.err, result.lines("train")) == (0, "", ["minea.yml"])
    console.where = folder / "conf"
    (folder / "conf" / "only.txt").write_text("x")
    result = console.run("train", "-f", "../riseml.yml", "--set", "train.run=ls")
    assert (result.code, result.err) == (0, "note: the project is the folder ..\n")
    assert result.lines("train") == ["conf", "riseml.yml", "train.txt"]
