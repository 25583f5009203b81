"""The server of a team that the tests of its promises share."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.team.team_server import Team, open_team


@pytest.fixture(scope="session")
def team() -> Iterator[Team]:
    """A running server with an admin, two members and a viewer. Jobs are processes, which its server.yml allows."""
    home = Path(tempfile.mkdtemp(prefix="riseml-team-"))  # short: the path of a unix socket is
    try:
        with open_team(home) as running:
            yield running
    finally:
        shutil.rmtree(home, ignore_errors=True)
