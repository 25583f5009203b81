"""Fixtures for what the server and a node do with the folder of a gang."""

from __future__ import annotations

from pathlib import Path

import pytest

from riseml.executors.slurm.gang_folder import GangFolder, GangFolders, GangKey
from tests.unit.executors.slurm.role_states import ROLE
from tests.unit.executors.slurm.scripted_slurm import ScriptedSlurm


@pytest.fixture
def folder(tmp_path: Path) -> GangFolder:
    """A gang of one role that runs."""
    folders = GangFolders(tmp_path)
    folders.make_experiment(4)
    made = folders.open_gang(GangKey(4, 1))
    made.make()
    order = {"token": "secret", "workdir": str(tmp_path)}
    made.write_gang({"token": "secret", "roles": [{"role": ROLE, "mem": 100}]}, {ROLE: order})
    return made


@pytest.fixture
def slurm(tmp_path: Path) -> ScriptedSlurm:
    """A Slurm whose commands are scripts of the test."""
    (tmp_path / "bin").mkdir()
    return ScriptedSlurm(tmp_path / "bin")
