"""A program runs experiments on a team's server, where its user has logged in: a pipeline, and what it may not see."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import riseml
from tests.support.waiting import DEADLINE
from tests.team.team_server import Team

SPEC: riseml.SpecDict = {
    "project": "from-python",
    "train": {
        "image": "python:3.11",
        "resources": {"cpus": 0.1, "mem": "16MiB"},
        "run": "echo 7 > $OUTPUT_DIR/w",
    },
}
READS = 'test "$(cat $RISEML_INPUT_MODEL)" = 7 && echo seven'


def become(team: Team, user: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this process be a program of a user who has logged in."""
    for name, value in team.log_in(user, folder / user).items():
        monkeypatch.setenv(name, value)


def test_a_program_pipes_runs_on_a_teams_server_and_others_do_not_see_them(
    team: Team, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    become(team, "paul", tmp_path, monkeypatch)
    run = riseml.submit(SPEC, executor="process", message="by a program")
    reader = riseml.submit(
        SPEC, settings={"train.run": READS}, executor="process", inputs={"model": run.output.url("w")}, after=run
    )
    assert reader.wait(DEADLINE).state == "FINISHED"
    assert "seven" in [line.text for line in reader.logs()]
    assert reader.view().get("after") == [run.id]
    assert run.output.read_text("w") == "7\n"
    assert run.id in [found.id for found in riseml.runs(project="from-python")]

    become(team, "ann", tmp_path, monkeypatch)
    named = f"paul.{run.id}"
    looks: list[Callable[[], object]] = [
        lambda: riseml.get(named),
        lambda: riseml.submit(SPEC, executor="process", after=named),
        lambda: riseml.submit(SPEC, executor="process", inputs={"model": f"output://{named}"}),
    ]
    for look in looks:
        with pytest.raises(riseml.NotFound) as raised:
            look()
        assert str(raised.value) == f"there is no experiment {named}"
        assert raised.value.__notes__ == ["hint: `riseml status -a` lists all of yours"]
