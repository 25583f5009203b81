"""An executor that the user names and that cannot run here: the message names the other one."""

from __future__ import annotations

from pathlib import Path

import pytest

from riseml.base.errors import Unreachable
from riseml.base.settings import read_settings
from riseml.server.hosts.choose_executor import check_executor


def test_a_missing_engine_names_what_runs_without_it(tmp_path: Path) -> None:
    gone = f"unix://{tmp_path}/docker.sock"
    settings = read_settings({"RISEML_HOME": str(tmp_path), "RISEML_EXECUTOR": "docker", "DOCKER_HOST": gone})
    with pytest.raises(Unreachable) as raised:
        check_executor(settings)
    assert "`riseml train --executor process`" in (raised.value.hint or "")
