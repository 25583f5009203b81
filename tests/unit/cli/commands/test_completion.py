"""`completion`: a script for each shell, which the shell itself can read."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest

from tests.unit.cli.conftest import Riseml


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_script_is_of_its_shell(riseml: Riseml, shell: str) -> None:
    script = riseml("completion", shell).out
    assert f"`riseml completion {shell}`" in script
    program = shutil.which(shell)
    if program is not None:
        subprocess.run([program, "-n"], input=script, text=True, check=True, env={"PATH": os.environ["PATH"]})
