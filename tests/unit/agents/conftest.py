"""The fixtures of a client and a fake server."""

from tests.unit.cli.conftest import client, fake_server, running_fake_server

__all__ = ["client", "fake_server", "running_fake_server"]
