"""Completion in a real bash on a terminal, with names from a real server; without a server it is silent."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

from tests.real.e2e.console import RISEML
from tests.support.rig import Rig, single
from tests.support.terminal import open_terminal


def _answer(rig: Rig, kind: str, prefix: str) -> str:
    environ = {**rig.environ(), "_RISEML_NAMES": kind}
    done = subprocess.run([*RISEML, prefix], env=environ, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return done.stdout


def _names(rig: Rig, kind: str, prefix: str) -> list[str]:
    """Return the names; a server that is busy for half a second gives none, and is asked again."""
    return rig.wait("names come", lambda: _answer(rig, kind, prefix).split())


def test_a_shell_gets_the_names_of_experiments_and_jobs(process_rig: Rig) -> None:
    rig = process_rig
    rig.submit(single("sleep 600"))
    rig.wait_state("1", "RUNNING")
    rig.submit(single("true", parameters={"lr": [1, 2]}))
    for member in ("2.1", "2.2"):
        rig.wait_closed(member)
    assert _names(rig, "all", "") == ["1", "2"]
    assert _names(rig, "running", "") == ["1"]
    assert _names(rig, "all", "1.t") == ["1.train"]
    assert _names(rig, "all", "2.") == [f"2.{one}" for one in ("1", "1.build", "1.train", "2", "2.build", "2.train")]
    assert _names(rig, "all", "2.2.t") == ["2.2.train"]
    assert _answer(rig, "all", "9.") == _answer(rig, "all", "$(touch x)") == ""
    rig.post("/v1/experiments/1/kill")
    rig.wait_closed("1")


def test_bash_on_a_terminal_completes_a_job_with_the_tab_key(process_rig: Rig, tmp_path: Path) -> None:
    rig = process_rig
    rig.submit(single("true"))
    rig.wait_closed("1")
    script = subprocess.run([*RISEML, "completion", "bash"], capture_output=True, text=True, check=True).stdout
    (tmp_path / "rc").write_text(f"PS1='ready> '\n{script}")
    (tmp_path / "inputrc").write_text("set enable-bracketed-paste off\nset bell-style none\n")
    path = f"{Path(RISEML[0]).parent}:{os.environ['PATH']}"
    bash = ["bash", "--rcfile", str(tmp_path / "rc"), "-i"]
    environ = {**rig.environ(), "PATH": path, "TERM": "dumb", "INPUTRC": str(tmp_path / "inputrc")}

    def completes(line: str, completed: str) -> bool:
        """Return what the tab key does to a line. From a server that is busy for half a second it gets no name."""
        with open_terminal(bash, tmp_path, environ, (80, 10)) as terminal:
            terminal.wait_for("the prompt", lambda screen: "ready>" in screen.lines())
            terminal.press(f"{line}\t#")  # the shell shows the # when it has handled the tab
            terminal.wait_for("the key is done", lambda screen: any("#" in one for one in screen.lines()))
            return f"ready> {completed} #" in terminal.screen.lines()

    rig.wait("the job", lambda: completes("riseml logs 1.t", "riseml logs 1.train"))
    rig.wait("the option", lambda: completes("riseml logs 1.train --no-f", "riseml logs 1.train --no-follow"))


def test_completion_starts_no_server(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    environ = {**os.environ, "RISEML_HOME": str(home), "_RISEML_NAMES": "all"}
    done = subprocess.run(shlex.split(f"{RISEML[0]} 4"), env=environ, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr, os.listdir(home)) == ("", "", [])
