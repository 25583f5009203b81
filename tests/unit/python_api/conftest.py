"""The fixtures of commands: programs ask the same server."""

from tests.unit.cli.conftest import client, fake_server, folder, riseml, running_fake_server

__all__ = ["client", "fake_server", "folder", "riseml", "running_fake_server"]
