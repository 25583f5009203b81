"""The fixtures of commands, which submit as Python does."""

from tests.unit.cli.conftest import client, fake_server, folder, riseml, running_fake_server

__all__ = ["client", "fake_server", "folder", "riseml", "running_fake_server"]
