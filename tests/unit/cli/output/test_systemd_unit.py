"""The systemd unit of a team's server."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from riseml.cli.output.systemd_unit import UnitFacts, list_unit
from tests.unit.cli.conftest import Riseml


def make_lines(home: str, *, private_tmp: bool = True) -> list[str]:
    return list_unit(UnitFacts(sys.executable, [("RISEML_HOME", home)], [home], private_tmp))


def test_a_unit_runs_a_standby_as_root_that_comes_back() -> None:
    lines = make_lines("/var/lib/riseml")
    assert {"User=root", "Restart=always", "KillMode=process"} <= set(lines)
    command = next(line for line in lines if line.startswith("ExecStart=")).partition("=")[2]
    assert command.endswith(" server run --standby")
    assert subprocess.run([*shlex.split(command), "--help"], capture_output=True, timeout=60).returncode == 0


# Containers have no systemd; the tests above read the same lines without it.
@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
@pytest.mark.parametrize("name", ["riseml", "a home of 100%", 'with "quotes" and \\'])
def test_systemd_finds_no_fault_in_a_unit(tmp_path: Path, name: str) -> None:
    path = tmp_path / "riseml.service"
    path.write_text("\n".join(make_lines(str(tmp_path / name))) + "\n")
    check = subprocess.run(["systemd-analyze", "verify", path], capture_output=True, text=True, timeout=60)
    assert (check.returncode, check.stderr) == (0, "")


def test_a_home_of_another_user_than_root_gets_no_unit(
    riseml: Riseml, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    environ = {"RISEML_HOME": str(home)}
    if os.geteuid() == 0:
        assert "ExecStart=" in riseml("server", "unit", environ=environ).out
        os.chown(home, 2001, 2001)
        monkeypatch.setattr(os, "geteuid", lambda: 2001)
    refusal = riseml("server", "unit", environ=environ)
    assert refusal.code == 2
    assert f"{home} is not a folder of root, and the server of a team runs as root" in refusal.err
