"""Fixtures of the command line's and the API's unit tests, used here against real stores and hosts."""

from __future__ import annotations

from tests.unit.cli.conftest import fake_server, folder, riseml, running_fake_server  # noqa: F401  # fixtures
from tests.unit.server.api.conftest import client, served_application, url  # noqa: F401  # fixtures
